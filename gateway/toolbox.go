package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/toolboxapi"
)

// newToolboxAPI returns the HTTP API of MCP Toolbox.
func newToolboxAPI(config Config, limiter *mcpserver.ConcurrencyLimiter) (*toolboxapi.API, error) {
	return toolboxapi.New(toolboxapi.Config{
		Runtime: config.Runtime, Limiter: limiter, Log: config.Log, Version: config.Version, OnRefused: config.OnRefused,
	})
}

// toolboxRoutes are the HTTP API of MCP Toolbox, for a caller's own role and
// for a role that the operator names. Errors have Toolbox's form, except for
// authentication errors.
func (a *api) toolboxRoutes() (list []route) {
	for _, at := range []string{"", "/roles/{role}"} {
		list = append(list,
			route{"GET", at + "/api/toolset", "", auth.AccessCaller, handlerEndpoint(a.toolbox.ServeToolset)},
			route{"GET", at + "/api/toolset/{name...}", "", auth.AccessCaller, handlerEndpoint(a.toolbox.ServeToolset)},
			route{"GET", at + "/api/tool/{name}", "", auth.AccessCaller, handlerEndpoint(a.toolbox.ServeTool)},
			route{"POST", at + "/api/tool/{name}/invoke", "", auth.AccessCaller, handlerEndpoint(a.toolbox.Invoke)},
		)
	}
	return list
}

// handlerEndpoint returns an endpoint for a handler that answers its errors
// itself.
func handlerEndpoint(serve http.HandlerFunc) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		serve(w, r)
		return nil
	}
}
