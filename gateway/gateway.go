// Package gateway owns the door for people and programs outside: the HTTP API
// of contract §5, the socket it is served on, and the client that commands use.
//
//	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: gateway.Owner, Log: log})
//	listener, err := gateway.Listen(dataDir)
//	err = gateway.Serve(ctx, listener, handler)
//
// Whoever reaches the handler is the operator: the socket is open to its
// owner alone. Every answer but that of /metrics is JSON, every refusal
// {"error": {"code", "message", "details"}} with the status that statuses in
// error.go gives the code. Lists are {"items", "next"}, sorted and paged. The
// package decides no permission (org, gate), runs no agent (runtime) and
// stores nothing.
package gateway

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is what a handler needs.
type Config struct {
	Runtime *runtime.Runtime
	// Authenticate says who sends each request; Owner, on the socket.
	Authenticate Authenticate
	Log          *slog.Logger // nil discards
	Version      string       // shown by /healthz

	Metrics http.Handler       // answers /metrics; nil says that there is none
	Refused func(errcode.Code) // told the code of every refusal; nil is nobody
}

// api answers requests about one runtime.
type api struct {
	rt           *runtime.Runtime
	authenticate Authenticate
	log          *slog.Logger
	version      string
	metrics      http.Handler
	refused      func(errcode.Code)
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
	a := &api{rt: config.Runtime, authenticate: config.Authenticate, log: config.Log, version: config.Version, metrics: config.Metrics, refused: config.Refused}
	return a.guarded(a.authenticated(a.mux())), nil
}

// route is one method of one path. Query names the parameters it takes: any
// other is refused, so that a misspelled dryRun changes nothing.
type route struct {
	method, path string
	query        string
	serve        endpoint
}

// endpoint answers a request, or gives the error to answer with as long as it
// has written nothing.
type endpoint func(w http.ResponseWriter, r *http.Request) error

// routes is the whole API.
func (a *api) routes() []route {
	const paged = "limit cursor "
	return []route{
		{"GET", "/healthz", "", answer(a.health)},
		{"GET", "/readyz", "", answer(a.ready)},
		{"GET", "/metrics", "", a.showMetrics},

		{"GET", "/api/v1/tasks", paged + "status", answer(a.listTasks)},
		{"GET", "/api/v1/tasks/{id}", "", answer(a.showTask)},
		{"GET", "/api/v1/tasks/{id}/events", "follow deltas after", a.taskEvents},
		{"POST", "/api/v1/tasks/{id}/cancel", "reason", answer(a.cancelTask)},

		{"GET", "/api/v1/roles", paged, answer(a.listRoles)},
		{"POST", "/api/v1/roles", "dryRun", answer(a.createRole)},
		{"GET", "/api/v1/roles/{id}", "", answer(a.showRole)},
		{"PATCH", "/api/v1/roles/{id}", "dryRun", answer(a.updateRole)},
		{"DELETE", "/api/v1/roles/{id}", "dryRun", answer(a.deleteRole)},

		{"GET", "/api/v1/agents", paged + "task status", answer(a.listAgents)},
		{"GET", "/api/v1/agents/{id}", "", answer(a.showAgent)},
		{"DELETE", "/api/v1/agents/{id}", "reason", answer(a.terminateAgent)},
		{"GET", "/api/v1/agents/{id}/journal", paged, answer(a.agentJournal)},
		{"POST", "/api/v1/agents/{id}/messages", "", answer(a.sendMessage)},
		{"POST", "/api/v1/agents/{id}/abort", "", answer(a.abortAgent)},

		{"GET", "/api/v1/tool-groups", paged, answer(a.listGroups)},
		{"GET", "/api/v1/tool-groups/{id}", "", answer(a.showGroup)},
		{"GET", "/api/v1/tools", paged + "group", answer(a.listTools)},
		{"GET", "/api/v1/tools/{name}", "", answer(a.showTool)},
		{"POST", "/api/v1/can", "", answer(a.can)},

		{"GET", "/api/v1/artifacts", paged + "task", answer(a.listArtifacts)},
		{"GET", "/api/v1/artifacts/{id}", "content", a.showArtifact},
		{"POST", "/api/v1/sweep", "dryRun", answer(a.sweep)},

		{"GET", "/api/v1/backup", "", a.backup},
	}
}

// mux routes requests. A path that exists answers other methods with 405.
func (a *api) mux() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range a.routes() {
		mux.Handle(r.method+" "+r.path, a.handle(r.checked()))
		methods[r.path] = append(methods[r.path], r.method)
	}
	for path, allowed := range methods {
		mux.Handle(path, a.handle(wrongMethod(strings.Join(allowed, ", "))))
	}
	mux.Handle("/", a.handle(noRoute))
	return mux
}

// checked gives the route's endpoint behind a look at the query.
func (r route) checked() endpoint {
	return func(w http.ResponseWriter, req *http.Request) error {
		if err := checkQuery(req, strings.Fields(r.query)); err != nil {
			return err
		}
		return operatorOnly(r.serve)(w, req)
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

// Health is the answer of /healthz and /readyz.
type Health struct {
	Status  string `json:"status"` // ok or ready
	Version string `json:"version,omitempty"`
}

// health says that the process answers.
func (a *api) health(*http.Request) (any, error) {
	return Health{Status: "ok", Version: a.version}, nil
}

// ready says that the store can be read.
func (a *api) ready(r *http.Request) (any, error) {
	_, err := a.rt.Store().Record(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.log.Error("the store cannot be read", "error", err)
		return status{http.StatusServiceUnavailable, refusal{refusalError{Code: errcode.Internal, Message: "the store cannot be read"}}}, nil
	}
	return Health{Status: "ready", Version: a.version}, err
}
