package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
)

// route is one method of one path. The router and the document of the API (OpenAPIDocument)
// are made from the routes.
type route struct {
	method, path string // the path is a pattern of http.ServeMux
	id           string // operationId in the document, unique
	tag          string // group in the document, set by tagged
	summary      string
	scopes       auth.ScopeSet  // scopes of the tokens that it serves; the zero set serves nobody
	hook         bool           // its endpoint authenticates the sender by the secret of a trigger, not by a token
	anyQuery     bool           // unknown query parameters are ignored: an identity provider writes the URL
	params       []parameter    // other query parameters are rejected, so that a misspelled dryRun changes nothing
	body         any            // a value of the type of the request's body; nil for none
	optional     bool           // the body may be left out
	answer       any            // a value of the type of the answer as JSON, or an answerOneOf; nil for none
	status       int            // of a success; 0 is 200
	media        []media        // media types of the answer in addition to JSON
	errors       []errcode.Code // in addition to commonErrors
	protocol     protocol       // whose shapes its errors and answers have
	serve        endpoint
}

// endpoint answers a request. It returns an error only if it has written
// nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// protocol names the specification that defines a route's bodies. The zero protocol is this API.
type protocol string

// Other protocols, whose shapes the document does not repeat.
const (
	toolboxProtocol protocol = "MCP Toolbox"
	mcpProtocol     protocol = "Model Context Protocol"
	openaiProtocol  protocol = "the OpenAI API"
	authzenProtocol protocol = "the Authorization API 1.0 (AuthZEN)"
)

// answerOneOf lists one value of each type that an answer may have.
type answerOneOf []any

// media is the media type of an answer. item is a value of the type of each item of a
// stream, nil for other contents.
type media struct {
	name string
	item any
}

// parameter is a query parameter, or a header that a route reads.
type parameter struct {
	name    string
	about   string
	kind    string   // type in JSON schema; "" is string
	allowed []string // the only values; nil allows any
	header  bool
	repeats bool // it may be given several times
}

// The scopes that routes take.
var (
	operators = auth.ScopesOf(auth.ScopeOperator)
	toolUsers = auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole)
	monitors  = auth.ScopesOf(auth.ScopeOperator, auth.ScopeMetrics)
	anyToken  = auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole, auth.ScopeMetrics)
	public    = auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole, auth.ScopeMetrics, auth.ScopeNone)
)

// commonErrors are the codes that every route for authenticated senders may answer.
var commonErrors = []errcode.Code{
	errcode.InvalidArguments, errcode.Unauthenticated, errcode.InsufficientPermissions, errcode.RateLimited, errcode.Internal,
	wire.HostRefused, wire.OriginRefused, wire.BodyTooLarge,
}

// withQueryCheck returns the route's endpoint with a check of the query
// parameters.
func (r route) withQueryCheck() endpoint {
	known := slices.DeleteFunc(slices.Clone(r.params), func(p parameter) bool { return p.header })
	return func(w http.ResponseWriter, req *http.Request) error {
		if err := checkQuery(req, known); err != nil && !r.anyQuery {
			return err
		}
		return r.serve(w, req)
	}
}

// displayPath returns the path as people and documents write it: without marks of the router.
func (r route) displayPath() string {
	return strings.ReplaceAll(strings.TrimSuffix(r.path, "{$}"), "...}", "}")
}
