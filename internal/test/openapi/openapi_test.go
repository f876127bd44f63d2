// Package openapi checks the document of the HTTP API with a validator of OpenAPI.
package openapi_test

import (
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/rolecall/rolecall/gateway"
)

// The document is valid OpenAPI 3.1, and all its references lead somewhere.
func TestDocument_IsValid(t *testing.T) {
	document, err := libopenapi.NewDocument(gateway.OpenAPIDocument())
	if err != nil {
		t.Fatal(err)
	}
	if version := document.GetVersion(); version != "3.1.0" {
		t.Errorf("version %s, want 3.1.0", version)
	}
	if _, err := document.BuildV3Model(); err != nil {
		t.Fatal(err)
	}
	check, problems := validator.NewValidator(document)
	if problems != nil {
		t.Fatal(problems)
	}
	valid, found := check.ValidateDocument()
	for _, problem := range found {
		t.Error(problem.Message, problem.Reason)
		for _, detail := range problem.SchemaValidationErrors {
			t.Log(detail.Reason)
		}
	}
	if !valid && found == nil {
		t.Error("not valid")
	}
}
