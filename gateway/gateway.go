// Package gateway serves the HTTP API of an organization, on a Unix socket and
// over TCP. The package client calls it.
//
//	handler, err := gateway.New(gateway.Config{Runtime: rt, Authenticate: auth.AlwaysOperator, Log: log})
//	listener, err := gateway.ListenUnix(dataDir)
//	err = gateway.Serve(ctx, listener, handler, log)
//
// Config.Authenticate identifies the sender of each request. On the socket the
// sender is the operator (auth.TrustLocalOwner); over TCP it is the holder of one
// of the auth.TokenStore. The table in routes states the scopes that each route takes; a
// route without scopes serves no request. Callers see only what their role has; everything
// else is answered as if it did not exist. Over TCP, auth.HostCheck must wrap the
// handler; it checks the Host and Origin headers.
//
// Responses are JSON, except for /metrics, artifacts, backups and event
// streams. Their shapes, and the statuses of errors, are in the package wire.
// Lists are sorted and paginated. The package does not decide permissions (org, gate),
// does not run agents (runtime) and does not store anything.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/toolboxapi"
	"github.com/rolecall/rolecall/gateway/ui"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config configures the handler. Runtime and Authenticate are required.
type Config struct {
	Runtime *runtime.Runtime
	// Authenticate identifies the sender of each request: auth.TokenStore.Authenticate,
	// or auth.AlwaysOperator where only the operator can connect.
	Authenticate auth.Authenticator
	Log          *slog.Logger // nil discards
	Version      string       // shown by /healthz

	// Unready returns why the process should not be sent work; /readyz adds what the store
	// rules out. Nil for none.
	Unready func() []wire.UnreadyReason

	Metrics   http.Handler       // answers /metrics; nil answers 404
	OnRefused func(errcode.Code) // called with the code of each error response; may be nil

	MCP *mcpserver.Server // answers /mcp and /roles/{role}/mcp; nil answers 404

	// StartTask starts the task of a request: Runtime.StartTask, or a function that
	// calls it. Nil rejects such requests.
	StartTask func(context.Context, org.TaskSpec) (identity.TaskID, error)
	// FindHook returns the trigger with a name, if a request with this header and body carries its
	// secret. Nil finds none.
	FindHook     func(name string, header http.Header, body []byte) (Hook, bool)
	ConfigDigest func() string // returns the digest of the active configuration; nil for none

	// TokenHolders lists the holders of the configured tokens: auth.TokenStore.Holders. Nil for
	// none.
	TokenHolders func() []identity.Principal
	// Tokens lists the configured tokens: auth.TokenStore.ListTokens. Nil for none.
	Tokens func() []auth.Token

	// Issuers lists the issuers whose tokens are accepted: auth.TokenStore.ListIssuers. Nil for
	// none.
	Issuers func() []auth.Issuer

	// Sessions keeps the sessions of browsers and knows the networks of senders: the store of
	// Authenticate. Nil answers 404. Hooks need it.
	Sessions *auth.TokenStore

	// RequestsPerMinute returns how many requests a sender may send in a minute; 0 is no limit,
	// and so is nil.
	RequestsPerMinute func() int

	Pins *modules.PinStore // tools in quarantine; nil for none
	// Items keeps the configuration items that the operator applies. Nil has none, and rejects new
	// ones.
	Items ItemKeeper
	// Logins keeps the logins at MCP servers. Nil has none.
	Logins LoginKeeper
	// Models lists the models of the active configuration. It reports false if no
	// configuration is active, and so does nil.
	Models func() (names []string, loaded bool)
	// WaitIdle returns when accepted tools are registered; nil does not wait.
	WaitIdle func(context.Context) error
}

// api implements the routes for one runtime.
type api struct {
	rt           *runtime.Runtime
	authenticate auth.Authenticator
	log          *slog.Logger
	failures     *failurelog.Log
	version      string
	unready      func() []wire.UnreadyReason
	metrics      http.Handler
	mcp          *mcpserver.Server
	limiter      *mcpserver.ConcurrencyLimiter // of calls, shared by all protocols
	toolbox      *toolboxapi.API
	start        func(context.Context, org.TaskSpec) (identity.TaskID, error)
	findHook     func(string, http.Header, []byte) (Hook, bool)
	hookBodies   *mcpserver.ConcurrencyLimiter // of requests whose sender is not known yet
	configDigest func() string
	tokenHolders func() []identity.Principal
	tokens       func() []auth.Token
	issuers      func() []auth.Issuer
	sessions     *auth.TokenStore
	rates        requestRates
	onRefused    func(errcode.Code)
	pins         *modules.PinStore
	items        ItemKeeper
	logins       LoginKeeper
	models       func() ([]string, bool)
	waitIdle     func(context.Context) error
	eventLimiter *mcpserver.ConcurrencyLimiter // of requests for events, and of requests that wait for a task
}

// New returns the handler of the API. The error names the field of Config that
// is missing. The handler is stateless and safe for concurrent use.
func New(config Config) (http.Handler, error) {
	switch {
	case config.Runtime == nil:
		return nil, errors.New("gateway: Config.Runtime is missing")
	case config.Authenticate == nil:
		return nil, errors.New("gateway: Config.Authenticate is missing")
	case config.FindHook != nil && config.Sessions == nil:
		return nil, errors.New("gateway: Config.Sessions is missing; Config.Hooks needs it")
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.OnRefused == nil {
		config.OnRefused = func(errcode.Code) {}
	}
	if config.Models == nil {
		config.Models = func() ([]string, bool) { return nil, false }
	}
	if config.WaitIdle == nil {
		config.WaitIdle = func(context.Context) error { return nil }
	}
	if config.TokenHolders == nil {
		config.TokenHolders = func() []identity.Principal { return nil }
	}
	if config.Unready == nil {
		config.Unready = func() []wire.UnreadyReason { return nil }
	}
	if config.Tokens == nil {
		config.Tokens = func() []auth.Token { return nil }
	}
	if config.Items == nil {
		config.Items = noItems{}
	}
	if config.Logins == nil {
		config.Logins = noLogins{}
	}
	if config.Issuers == nil {
		config.Issuers = func() []auth.Issuer { return nil }
	}
	if config.ConfigDigest == nil {
		config.ConfigDigest = func() string { return "" }
	}
	limiter := mcpserver.NewConcurrencyLimiter(0)
	if config.MCP != nil {
		limiter = config.MCP.Limiter()
	}
	toolbox, err := newToolboxAPI(config, limiter)
	if err != nil {
		return nil, err
	}
	a := &api{
		rt: config.Runtime, authenticate: config.Authenticate, log: config.Log, failures: failurelog.New(config.Log), version: config.Version,
		unready: config.Unready, metrics: config.Metrics, mcp: config.MCP, toolbox: toolbox, limiter: limiter, start: config.StartTask, findHook: config.FindHook, hookBodies: mcpserver.NewConcurrencyLimiter(0), configDigest: config.ConfigDigest, tokenHolders: config.TokenHolders, tokens: config.Tokens, issuers: config.Issuers, sessions: config.Sessions, rates: newRequestRates(config.RequestsPerMinute),
		onRefused: config.OnRefused, pins: config.Pins, items: config.Items, logins: config.Logins, models: config.Models, waitIdle: config.WaitIdle,
		eventLimiter: mcpserver.NewConcurrencyLimiter(maxEventRequests),
	}
	return a.withRecovery(a.mux()), nil
}

// mux returns the router. Other methods of a known path are answered with 405.
func (a *api) mux() *http.ServeMux {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range a.routes() {
		mux.Handle(r.method+" "+r.path, a.handler(r))
		methods[r.path] = append(methods[r.path], r.method)
	}
	for _, path := range []string{ui.AppPath, ui.VendorPath} {
		mux.Handle("GET "+path, ui.Assets())
	}
	for path, allowed := range methods {
		mux.Handle(path, a.authorize(toolUsers, methodNotAllowed(strings.Join(allowed, ", "))))
	}
	mux.Handle("/", a.authorize(toolUsers, routeNotFound))
	return mux
}

// handler returns the handler of a route.
func (a *api) handler(r route) http.Handler {
	serve := r.withQueryCheck()
	switch {
	case r.hook:
		return a.handle(serve)
	case r.method != http.MethodGet:
		serve = a.withCountedBody(serve)
	case r.path == rootPath:
		return ui.PageOr(a.authorize(r.scopes, serve))
	}
	return a.authorize(r.scopes, serve)
}

// methodNotAllowed returns an endpoint that answers with 405. allowed lists the
// methods of the path.
func methodNotAllowed(allowed string) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allowed)
		return errcode.New(wire.MethodNotAllowed, "%s does not support %s; use %s", r.URL.Path, r.Method, allowed)
	}
}

// routeNotFound is the endpoint of unknown paths.
func routeNotFound(_ http.ResponseWriter, r *http.Request) error {
	return errcode.New(wire.RouteNotFound, "there is no %s", r.URL.Path)
}

// authorize returns a handler that calls the endpoint for senders of the scopes that it
// takes.
func (a *api) authorize(takes auth.ScopeSet, serve endpoint) http.Handler {
	return a.handle(func(w http.ResponseWriter, r *http.Request) error {
		admitted, err := a.authenticate.AdmitRequest(r, takes)
		trackSender(r, err == nil && auth.SenderOf(admitted) != identity.Principal{})
		if err == nil {
			err = a.rates.count(admitted)
		}
		if err != nil {
			return err
		}
		return serve(w, admitted)
	})
}

// handle returns a handler that reports the errors of an endpoint. A client that does not read the
// answer loses its connection.
func (a *api) handle(serve endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w = mcpserver.WithWriteTimeout(w, 0)
		if err := serve(w, r); err != nil {
			a.onRefused(errcode.CodeOf(err))
			a.respondError(w, r, err)
		}
	})
}

// withRecovery sets the headers of every response and answers for handlers that
// panic.
func (a *api) withRecovery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer a.recoverPanic(w, r)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// org returns the organization, for reading.
func (a *api) org() *org.Org { return a.rt.Org() }

// snapshot returns the current registry of tool groups.
func (a *api) snapshot() *toolgroups.Snapshot { return a.rt.GroupManager().CurrentSnapshot() }
