package cmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// appOptions says what a house is put together for. The zero assembly looks and
// changes, and runs nothing.
type appOptions struct {
	screen *terminal   // where a task is shown, console_print writes and a person is asked
	fatal  func(error) // called when the store has stopped
}

// App is everything put together on one data directory.
type App struct {
	store  *persist.Store
	groups *toolgroups.Manager
	rt     *runtime.Runtime

	metrics  *metrics.Metrics
	registry *prometheus.Registry // what counted is registered with

	kinds    modules.Registry
	loader   *modules.Loader
	pins     *modules.Pins // what is accepted of servers
	readOnly bool          // no server is started or asked

	pools    toolbox.Pools // of sources
	services services      // that vouch for callers
	toolsets toolsets      // as registered; guarded by changing

	mcp    *mcpserver.Server // for clients of the Model Context Protocol, on all doors
	tokens *gateway.Tokens   // whose bearers may ask; none until a configuration lists some

	models     atomic.Pointer[modelSet]
	human      model.Model // who sits at the terminal; nil until a model is that
	recordings *recordings

	changing     sync.Mutex               // held while a configuration comes in force
	current      *config.Config           // in force; nil until there is one. Guarded by changing, as running
	running      map[string]config.Module // as they were last brought
	bounds       liveLimits               // of programs and requests
	pollInterval time.Duration            // how often follow looks at the files; 0 is a second

	data   string
	log    *slog.Logger
	warn   *slog.Logger // of what the operator has to know without asking: a source, or an issuer, is away
	in     io.Reader    // where a person answers
	screen *terminal    // where a task is shown, and a person asked
}

// newApp opens the data directory and puts the house together.
func newApp(c *common, a appOptions) (*App, error) {
	store, err := persist.Open(c.data)
	if err != nil {
		return nil, err
	}
	h := &App{
		data: c.data, in: c.in, screen: a.screen, store: store,
		groups: toolgroups.NewManager(toolgroups.Reserved()...), registry: prometheus.NewRegistry(),
		running: map[string]config.Module{}, toolsets: toolsets{}, recordings: &recordings{dir: filepath.Join(c.data, "recordings")},
	}
	h.models.Store(&modelSet{})
	var talk io.Writer = c.err
	if h.screen == nil {
		h.screen = &terminal{out: io.Discard}
	} else {
		talk = h.screen // who is asked there is not written over
	}
	h.log, h.warn = c.logger(talk, slog.LevelError), c.logger(talk, slog.LevelWarn)
	h.services.log = h.warn
	h.recordings.log = h.log
	h.metrics, err = metrics.New(h.registry, metrics.Config{Groups: h.groups, Load: func() metrics.Load { return metrics.Load(h.rt.Load()) }})
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.rt, err = runtime.New(runtime.Config{
		Store: store, Groups: h.groups, Model: h.model,
		Workspaces: filepath.Join(c.data, "workspaces"), Data: c.data,
		Console: h.screen, Log: h.log, Fatal: a.fatal,
		Observe: h.metrics.Observe, Authn: &h.services,
	})
	if err == nil {
		h.tokens, err = gateway.NewTokens(gateway.TokensConfig{Role: h.rt.Org().FindRole})
	}
	if err == nil {
		h.mcp, err = mcpserver.New(mcpserver.Config{Runtime: h.rt, Log: h.log, Version: version(), Streaming: gateway.UntilShutdown})
	}
	if err == nil {
		h.loader = modules.NewLoader(h.rt)
		h.pins, h.readOnly = modules.NewPins(h.rt), a.fatal == nil
		h.loader.Log = h.log
		err = errors.Join(builtin.Register(h.groups, h.rt, h.options(c)), h.registerModuleKinds(c.kinds))
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// api is the handler that everybody talks to.
func (h *App) api(c *common) (http.Handler, error) {
	return gateway.New(gateway.Config{
		Runtime: h.rt, Authenticate: h.tokens.Authenticate, Log: h.log, Version: version(),
		Metrics: metrics.Handler(h.registry, h.log), OnRefused: h.metrics.Refused, MCP: h.mcp,
		Pins: h.pins, WaitIdle: h.loader.WaitIdle,
	})
}

// options is what the configuration says, from when it is in force, of the
// tools that reach out of the process.
func (h *App) options(c *common) builtin.Options {
	return builtin.Options{
		Launcher: c.launcher, Commands: h.bounds.commands, Network: h.bounds.requests,
	}
}

// registerModuleKinds lists the kinds of module that this build has: ours, and the others.
func (h *App) registerModuleKinds(others []modules.Kind) error {
	ours := []modules.Kind{
		{Name: textstats.Kind, New: textstats.New},
		h.chrome(),
	}
	for _, k := range append(ours, others...) {
		if err := h.kinds.Register(k); err != nil {
			return err
		}
	}
	return nil
}

// Close ends everything; what was under way can be resumed.
func (h *App) Close() error {
	var errs []error
	if h.mcp != nil {
		errs = append(errs, h.mcp.Close())
	}
	if h.rt != nil {
		errs = append(errs, h.rt.Close())
	}
	if h.loader != nil {
		errs = append(errs, h.loader.Close(context.Background()))
	}
	errs = append(errs, h.models.Load().Close())
	return errors.Join(append(errs, h.store.Close())...)
}

// model finds a model; "" is the organization's.
func (h *App) model(name string) (model.Model, error) { return h.models.Load().find(name) }

// host is what the module of this name may use of the process.
func (h *App) host(name string) modules.Host {
	return modules.Host{
		Log:     h.log.With("module", name),
		Store:   h.rt,
		Changed: func() { h.loader.Changed(name) },
	}
}

func setup(cfg *config.Config) runtime.OrgConfig {
	s := runtime.OrgConfig{
		RootPrompt: cfg.Organization.RootPrompt,
		Default:    groupSet(cfg.Organization.DefaultToolGroups),
		Rounds:     cfg.Organization.Limits.Rounds,
		Storage:    storage(cfg.Organization.Limits),
		Budget:     runtime.Budget{Tokens: cfg.Organization.Budget.Tokens, Cost: model.Money(cfg.Organization.Budget.Cost)},
	}
	for _, r := range cfg.Roles {
		s.Roles = append(s.Roles, org.RoleSpec{
			Name: r.Name, Prompt: r.Prompt, Model: r.Model,
			Use: groupSet(r.ToolGroups), Grant: groupSet(r.Grant), Limits: org.Limits{Rounds: r.Limits.Rounds}, Hosts: r.Hosts,
			Pattern: org.Pattern(r.Pattern), ToolGated: &r.ToolGated, Server: &r.Server,
		})
	}
	return s
}

func storage(l config.OrganizationLimits) runtime.Storage {
	return runtime.Storage{WorkspaceBytes: l.WorkspaceBytes, WorkspaceFiles: l.WorkspaceFiles, ArtifactBytes: l.ArtifactBytes}
}

// groupSet gives a configured list of groups; nil when it is left out.
func groupSet(g config.Groups) *toolgroups.Set {
	if !g.Given {
		return nil
	}
	set := toolgroups.All()
	if !g.All {
		set = toolgroups.Of(groupIDs(g.IDs)...)
	}
	return &set
}

func groupIDs(names []string) []toolgroups.GroupID {
	ids := make([]toolgroups.GroupID, len(names))
	for i, name := range names {
		ids[i] = toolgroups.GroupID(name)
	}
	return ids
}
