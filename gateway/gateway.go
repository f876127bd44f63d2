// Package gateway owns the door for people and programs outside: the HTTP API
// of contract §5, the socket it is served on, and the client that commands use.
//
//	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.AlwaysOperator, Log: log})
//	listener, err := gateway.Listen(dataDir)
//	err = gateway.Serve(ctx, listener, handler)
//
// Config.Authenticate says who sends a request: on the socket whoever reaches
// it (TrustLocalOwner), elsewhere who holds one of the Tokens. A route is the operator's
// unless its line in routes says that it is for callers too, who see of it what
// their role has; the rest does not exist for them. On TCP the handler stands
// behind a Door, which looks at Host and Origin.
//
// Every answer but that of /metrics is JSON, every refusal
// {"error": {"code", "message", "details"}} with the status that statuses in
// error.go gives the code. Lists are {"items", "next"}, sorted and paged. The
// package decides no permission (org, gate), runs no agent (runtime) and
// stores nothing.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is what a handler needs.
type Config struct {
	Runtime *runtime.Runtime
	// Authenticate says who sends each request: Tokens.Authenticate, or Owner
	// where only the operator gets to.
	Authenticate Authenticate
	Log          *slog.Logger // nil discards
	Version      string       // shown by /healthz

	Metrics   http.Handler       // answers /metrics; nil says that there is none
	OnRefused func(errcode.Code) // told the code of every refusal; nil is nobody

	MCP *mcpserver.Server // answers at /mcp and /roles/{role}/mcp; nil says that there is none

	Pins *modules.Pins // what is in quarantine; nil is nothing
	// WaitIdle returns when what was accepted is offered; nil is at once.
	WaitIdle func(context.Context) error
}

// api answers requests about one runtime.
type api struct {
	rt           *runtime.Runtime
	authenticate Authenticate
	log          *slog.Logger
	version      string
	metrics      http.Handler
	mcp          *mcpserver.Server
	refused      func(errcode.Code)
	pins         *modules.Pins
	settled      func(context.Context) error
}

// operator is who everybody that reaches the API is.
var operator = identity.ByOperator("operator")

// New makes the handler of the whole API; the error names the field of Config
// that is missing. The handler is safe for concurrent use and keeps no state.
func New(config Config) (http.Handler, error) {
	switch {
	case config.Runtime == nil:
		return nil, errors.New("gateway: Config.Runtime is missing")
	case config.Authenticate == nil:
		return nil, errors.New("gateway: Config.Authenticate is missing")
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.OnRefused == nil {
		config.OnRefused = func(errcode.Code) {}
	}
	if config.WaitIdle == nil {
		config.WaitIdle = func(context.Context) error { return nil }
	}
	a := &api{rt: config.Runtime, authenticate: config.Authenticate, log: config.Log, version: config.Version, metrics: config.Metrics, mcp: config.MCP, refused: config.OnRefused, pins: config.Pins, settled: config.WaitIdle}
	return a.guarded(a.mux()), nil
}

// route is one method of one path. Query names the parameters it takes: any
// other is refused, so that a misspelled dryRun changes nothing.
type route struct {
	method, path string
	query        string
	access       access // whose requests it answers
	serve        endpoint
}

// endpoint answers a request, or gives the error to answer with as long as it
// has written nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// routes is the whole API.
func (a *api) routes() []route {
	const paged = "limit cursor "
	list := []route{
		{"GET", "/{$}", "", accessCaller, answer(a.index)},
		{"GET", "/healthz", "", accessPublic, answer(a.health)},
		{"GET", "/readyz", "", accessPublic, answer(a.ready)},
		{"GET", "/metrics", "", accessOperator, a.showMetrics},

		{"GET", "/api/v1/tasks", paged + "status", accessOperator, answer(a.listTasks)},
		{"GET", "/api/v1/tasks/{id}", "", accessOperator, answer(a.showTask)},
		{"GET", "/api/v1/tasks/{id}/events", "follow deltas after", accessOperator, a.taskEvents},
		{"POST", "/api/v1/tasks/{id}/cancel", "reason", accessOperator, answer(a.cancelTask)},

		{"GET", "/api/v1/roles", paged, accessOperator, answer(a.listRoles)},
		{"POST", "/api/v1/roles", "dryRun", accessOperator, answer(a.createRole)},
		{"GET", "/api/v1/roles/{id}", "", accessOperator, answer(a.showRole)},
		{"PATCH", "/api/v1/roles/{id}", "dryRun", accessOperator, answer(a.updateRole)},
		{"DELETE", "/api/v1/roles/{id}", "dryRun", accessOperator, answer(a.deleteRole)},

		{"GET", "/api/v1/agents", paged + "task status", accessOperator, answer(a.listAgents)},
		{"GET", "/api/v1/agents/{id}", "", accessOperator, answer(a.showAgent)},
		{"DELETE", "/api/v1/agents/{id}", "reason", accessOperator, answer(a.terminateAgent)},
		{"GET", "/api/v1/agents/{id}/journal", paged, accessOperator, answer(a.agentJournal)},
		{"POST", "/api/v1/agents/{id}/messages", "", accessOperator, answer(a.sendMessage)},
		{"POST", "/api/v1/agents/{id}/abort", "", accessOperator, answer(a.abortAgent)},

		{"GET", "/api/v1/tool-groups", paged, accessCaller, answer(a.listGroups)},
		{"GET", "/api/v1/tool-groups/{id}", "", accessCaller, answer(a.showGroup)},
		{"GET", "/api/v1/tools", paged + "group", accessCaller, answer(a.listTools)},
		{"GET", "/api/v1/tools/{name}", "", accessCaller, answer(a.showTool)},
		{"POST", "/api/v1/tools/{name}/accept", "", accessOperator, answer(a.acceptTool)},
		{"GET", "/api/v1/quarantine", paged, accessOperator, answer(a.listQuarantine)},
		{"POST", "/api/v1/can", "", accessCaller, answer(a.can)},

		{"GET", "/api/v1/artifacts", paged + "task", accessOperator, answer(a.listArtifacts)},
		{"GET", "/api/v1/artifacts/{id}", "content", accessOperator, a.showArtifact},
		{"POST", "/api/v1/sweep", "dryRun", accessOperator, answer(a.sweep)},

		{"GET", "/api/v1/backup", "", accessOperator, a.backup},
	}
	return append(append(list, a.toolboxRoutes()...), a.mcpRoutes()...)
}

// mux routes requests. A path that exists answers other methods with 405.
func (a *api) mux() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range a.routes() {
		mux.Handle(r.method+" "+r.path, a.admit(r.access, r.checked()))
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, allowed := range methods {
		mux.Handle(path, a.admit(accessCaller, wrongMethod(strings.Join(allowed, ", "))))
	}
	mux.Handle("/", a.admit(accessCaller, noRoute))
	return mux
}

// checked gives the route's endpoint behind a look at the query.
func (r route) checked() endpoint {
	return func(w http.ResponseWriter, req *http.Request) error {
		if err := checkQuery(req, strings.Fields(r.query)); err != nil {
			return err
		}
		return r.serve(w, req)
	}
}

func wrongMethod(allowed string) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return errcode.New(MethodNotAllowed, "%s is not answered with %s; it takes %s", r.URL.Path, r.Method, allowed)
	}
}

func noRoute(_ http.ResponseWriter, r *http.Request) error {
	return errcode.New(RouteNotFound, "there is no %s", r.URL.Path)
}

// handle makes a handler of an endpoint.
func (a *api) handle(serve endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			a.refused(errcode.Of(err))
			a.refuse(w, r, err)
		}
	})
}

// guarded sets the headers of every answer and turns a panic into one.
func (a *api) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.recovered(w, r)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// org is the organization, for reading.
func (a *api) org() *org.Org { return a.rt.Org() }

func (a *api) snapshot() *toolgroups.Snapshot { return a.rt.Groups().Snapshot() }
