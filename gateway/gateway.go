// Package gateway owns the door for people and programs outside: the HTTP API
// of contract §5, the socket it is served on, and the client that commands use.
//
//	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.Owner, Log: log})
//	listener, err := gateway.Listen(dataDir)
//	err = gateway.Serve(ctx, listener, handler)
//
// Config.Authenticate says who sends a request: on the socket whoever reaches
// it (OfOwner), elsewhere who holds one of the Tokens. A route is the operator's
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
	"github.com/rolecall/rolecall/gateway/mcp"
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

	Metrics http.Handler       // answers /metrics; nil says that there is none
	Refused func(errcode.Code) // told the code of every refusal; nil is nobody

	MCP *mcp.Server // answers at /mcp and /roles/{role}/mcp; nil says that there is none

	Pins *modules.Pins // what is in quarantine; nil is nothing
	// Settled returns when what was accepted is offered; nil is at once.
	Settled func(context.Context) error
}

// api answers requests about one runtime.
type api struct {
	rt           *runtime.Runtime
	authenticate Authenticate
	log          *slog.Logger
	version      string
	metrics      http.Handler
	mcp          *mcp.Server
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
	if config.Refused == nil {
		config.Refused = func(errcode.Code) {}
	}
	if config.Settled == nil {
		config.Settled = func(context.Context) error { return nil }
	}
	a := &api{rt: config.Runtime, authenticate: config.Authenticate, log: config.Log, version: config.Version, metrics: config.Metrics, mcp: config.MCP, refused: config.Refused, pins: config.Pins, settled: config.Settled}
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
		{"GET", "/{$}", "", callers, answer(a.index)},
		{"GET", "/healthz", "", anybody, answer(a.health)},
		{"GET", "/readyz", "", anybody, answer(a.ready)},
		{"GET", "/metrics", "", operators, a.showMetrics},

		{"GET", "/api/v1/tasks", paged + "status", operators, answer(a.listTasks)},
		{"GET", "/api/v1/tasks/{id}", "", operators, answer(a.showTask)},
		{"GET", "/api/v1/tasks/{id}/events", "follow deltas after", operators, a.taskEvents},
		{"POST", "/api/v1/tasks/{id}/cancel", "reason", operators, answer(a.cancelTask)},

		{"GET", "/api/v1/roles", paged, operators, answer(a.listRoles)},
		{"POST", "/api/v1/roles", "dryRun", operators, answer(a.createRole)},
		{"GET", "/api/v1/roles/{id}", "", operators, answer(a.showRole)},
		{"PATCH", "/api/v1/roles/{id}", "dryRun", operators, answer(a.updateRole)},
		{"DELETE", "/api/v1/roles/{id}", "dryRun", operators, answer(a.deleteRole)},

		{"GET", "/api/v1/agents", paged + "task status", operators, answer(a.listAgents)},
		{"GET", "/api/v1/agents/{id}", "", operators, answer(a.showAgent)},
		{"DELETE", "/api/v1/agents/{id}", "reason", operators, answer(a.terminateAgent)},
		{"GET", "/api/v1/agents/{id}/journal", paged, operators, answer(a.agentJournal)},
		{"POST", "/api/v1/agents/{id}/messages", "", operators, answer(a.sendMessage)},
		{"POST", "/api/v1/agents/{id}/abort", "", operators, answer(a.abortAgent)},

		{"GET", "/api/v1/tool-groups", paged, callers, answer(a.listGroups)},
		{"GET", "/api/v1/tool-groups/{id}", "", callers, answer(a.showGroup)},
		{"GET", "/api/v1/tools", paged + "group", callers, answer(a.listTools)},
		{"GET", "/api/v1/tools/{name}", "", callers, answer(a.showTool)},
		{"POST", "/api/v1/tools/{name}/accept", "", operators, answer(a.acceptTool)},
		{"GET", "/api/v1/quarantine", paged, operators, answer(a.listQuarantine)},
		{"POST", "/api/v1/can", "", callers, answer(a.can)},

		{"GET", "/api/v1/artifacts", paged + "task", operators, answer(a.listArtifacts)},
		{"GET", "/api/v1/artifacts/{id}", "content", operators, a.showArtifact},
		{"POST", "/api/v1/sweep", "dryRun", operators, answer(a.sweep)},

		{"GET", "/api/v1/backup", "", operators, a.backup},
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
		mux.Handle(path, a.admit(callers, wrongMethod(strings.Join(allowed, ", "))))
	}
	mux.Handle("/", a.admit(callers, noRoute))
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
		return errcode.New(WrongMethod, "%s is not answered with %s; it takes %s", r.URL.Path, r.Method, allowed)
	}
}

func noRoute(_ http.ResponseWriter, r *http.Request) error {
	return errcode.New(NoRoute, "there is no %s", r.URL.Path)
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
