package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
)

// resourcePath is where a client finds out which issuers the gateway accepts (RFC 9728). The
// path of a resource follows it.
const resourcePath = "/.well-known/oauth-protected-resource"

// resourceRoutes are the metadata of the gateway, and of the endpoints of MCP.
func (a *api) resourceRoutes() []route {
	list := []route{{path: resourcePath, id: "showResource", summary: "Show which issuers the gateway accepts (RFC 9728)"}}
	for _, at := range mcpPaths {
		list = append(list, route{path: resourcePath + at.path, id: "showResourceMCP" + at.suffix, summary: "Show which issuers this endpoint of MCP accepts"})
	}
	for i := range list {
		list[i].method, list[i].scopes, list[i].answer = http.MethodGet, public, wire.Resource{}
		list[i].errors, list[i].serve = []errcode.Code{wire.RouteNotFound}, jsonEndpoint(a.showResource)
	}
	return list
}

// showResource lists the issuers of a resource. What is below the path need not exist: the
// answer is the same for every role and group.
func (a *api) showResource(r *http.Request) (any, error) {
	issuers, base := a.issuers(), auth.BaseURL(r)
	if len(issuers) == 0 || base == "" {
		return nil, routeNotFound(nil, r)
	}
	resource := wire.Resource{Resource: base + strings.TrimPrefix(r.URL.EscapedPath(), resourcePath), BearerMethods: []string{"header"}}
	for _, i := range issuers {
		resource.Issuers = append(resource.Issuers, i.URL)
		resource.Scopes = append(resource.Scopes, i.Scopes...)
	}
	slices.Sort(resource.Scopes)
	resource.Scopes = slices.Compact(resource.Scopes)
	return resource, nil
}

// withMetadata returns the error for a request without a valid token. On the endpoints of MCP
// it says where the metadata of the resource is.
func (a *api) withMetadata(r *http.Request, err error) error {
	if !isMCP(r) || auth.BaseURL(r) == "" || len(a.issuers()) == 0 {
		return err
	}
	return wire.WithMetadata(err, auth.BaseURL(r)+resourcePath+r.URL.EscapedPath())
}
