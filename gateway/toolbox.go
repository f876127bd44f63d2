package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
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
	for _, at := range rolePrefixes {
		list = append(list,
			route{
				method: "GET", path: at.path + "/api/toolset", id: "listToolset" + at.suffix, summary: "Describe the tools of the role",
				answer: toolboxapi.Manifest{}, serve: handlerEndpoint(a.toolbox.ServeToolset),
			}, route{
				method: "GET", path: at.path + "/api/toolset/{name...}", id: "findToolset" + at.suffix, summary: "Describe the tools of a group that the role has",
				answer: toolboxapi.Manifest{}, serve: handlerEndpoint(a.toolbox.ServeToolset),
			}, route{
				method: "GET", path: at.path + "/api/tool/{name}", id: "describeTool" + at.suffix, summary: "Describe one tool",
				answer: toolboxapi.Manifest{}, serve: handlerEndpoint(a.toolbox.ServeTool),
			}, route{
				method: "POST", path: at.path + "/api/tool/{name}/invoke", id: "invokeTool" + at.suffix, summary: "Call a tool; a failure of the tool is a result",
				body: map[string]any{}, answer: toolboxapi.CallResult{}, serve: handlerEndpoint(a.toolbox.Invoke),
			},
		)
	}
	for i := range list {
		list[i].scopes, list[i].protocol = toolUsers, toolboxProtocol
		list[i].errors = []errcode.Code{errcode.UnknownTool, errcode.GroupNotFound, errcode.RoleNotFound, errcode.StorageLow}
	}
	return list
}

// rolePrefixes are the prefixes of the paths of MCP Toolbox and of the Model Context Protocol. One
// is for the sender's own role, the other for a role that the operator names.
var rolePrefixes = []struct{ path, suffix string }{{"", ""}, {"/roles/{role}", "OfRole"}}

// handlerEndpoint returns an endpoint for a handler that answers its errors
// itself.
func handlerEndpoint(serve http.HandlerFunc) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		serve(w, r)
		return nil
	}
}
