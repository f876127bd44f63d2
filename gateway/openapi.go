package gateway

import (
	_ "embed"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/gateway/wire"
)

// openapiDocument is made from the routes and the types of package wire by the tests:
//
//	go test ./gateway -run TestOpenAPI -update
//
//go:embed openapi.json
var openapiDocument []byte

// OpenAPIDocument returns the document that describes the API in OpenAPI 3.1, as JSON. The
// gateway answers GET /api/openapi.json with it.
func OpenAPIDocument() []byte { return slices.Clone(openapiDocument) }

// showDocument answers with the document of the API.
func showDocument(w http.ResponseWriter, _ *http.Request) error {
	wire.WriteEncoded(w, http.StatusOK, slices.Clip(openapiDocument))
	return nil
}
