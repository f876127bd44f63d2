package cmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/sandbox"
	"github.com/rolecall/rolecall/toolgroups"
)

// assembly says what a house is put together for. The zero assembly looks and
// changes, and runs nothing.
type assembly struct {
	screen *screen     // where a task is shown, console_print writes and a person is asked
	fatal  func(error) // called when the store has stopped
}

// house is everything put together on one data directory.
type house struct {
	store  *persist.Store
	groups *toolgroups.Manager
	rt     *runtime.Runtime

	counted *metrics.Metrics
	figures *prometheus.Registry // what counted is registered with

	kinds  modules.Registry
	loader *modules.Loader

	models     roster
	human      model.Model // who sits at the terminal; nil until a model is that
	recordings *recordings

	command config.Command // what the configuration says of programs
	closers []io.Closer
	network builtin.NetworkPolicy // what requests may reach; nothing until there is a configuration

	data   string
	log    *slog.Logger
	in     io.Reader // where a person answers
	screen *screen   // where a task is shown, and a person asked
}

// assemble opens the data directory and puts the house together.
func assemble(c *common, a assembly) (*house, error) {
	store, err := persist.Open(c.data)
	if err != nil {
		return nil, err
	}
	h := &house{
		data: c.data, log: c.logger(c.err), in: c.in, screen: a.screen, store: store,
		groups: toolgroups.NewManager(toolgroups.Reserved()...), figures: prometheus.NewRegistry(),
	}
	if h.screen == nil {
		h.screen = &screen{out: io.Discard}
	} else {
		h.log = c.logger(h.screen) // who is asked there is not written over
	}
	h.counted, err = metrics.New(h.figures, metrics.Config{Groups: h.groups, Load: func() metrics.Load { return metrics.Load(h.rt.Load()) }})
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.rt, err = runtime.New(runtime.Config{
		Store: store, Groups: h.groups, Model: h.model,
		Workspaces: filepath.Join(c.data, "workspaces"), Data: c.data,
		Console: h.screen, Log: h.log, Fatal: a.fatal,
		Observe: h.counted.Observe,
	})
	if err == nil {
		h.loader = modules.NewLoader(h.rt)
		err = errors.Join(builtin.Register(h.groups, h.rt, h.options(c)), h.ship(c.kinds))
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// api is the handler that everybody talks to.
func (h *house) api(c *common) (http.Handler, error) {
	return gateway.New(gateway.Config{
		Runtime: h.rt, Authenticate: gateway.Owner, Log: h.log, Version: version(),
		Metrics: metrics.Handler(h.figures, h.log), Refused: h.counted.Refused,
	})
}

// options is what the configuration says, from when it is in force, of the
// tools that reach out of the process.
func (h *house) options(c *common) builtin.Options {
	return builtin.Options{
		Launcher: c.launcher, Commands: h.commands,
		Network: func() builtin.NetworkPolicy { return h.network },
	}
}

func (h *house) commands() builtin.Commands {
	return builtin.Commands{
		Open: h.command.Open, Readable: h.command.Readable, Env: h.command.Env,
		Limits: sandbox.Limits(h.command.Limits),
	}
}

// ship lists the kinds of module that this build has: ours, and the others.
func (h *house) ship(others []modules.Kind) error {
	ours := []modules.Kind{
		{Name: textstats.Kind, New: textstats.New},
	}
	for _, k := range append(ours, others...) {
		if err := h.kinds.Register(k); err != nil {
			return err
		}
	}
	return nil
}

// Close ends everything; what was under way can be resumed.
func (h *house) Close() error {
	var errs []error
	if h.rt != nil {
		errs = append(errs, h.rt.Close())
	}
	if h.loader != nil {
		errs = append(errs, h.loader.Close(context.Background()))
	}
	for _, c := range h.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, h.store.Close())...)
}

// model finds a model; "" is the organization's.
func (h *house) model(name string) (model.Model, error) { return h.models.find(name) }

// configure puts a configuration in force. loaded is what Load said of it:
// all that is wrong is reported together.
func (h *house) configure(ctx context.Context, cfg *config.Config, loaded error) error {
	if err := h.furnish(ctx, cfg, loaded); err != nil {
		return err
	}
	return h.rt.Configure(setup(cfg))
}

// revive puts the recorded configuration of a task in force. Of its roles only
// those that are gone are made again: what was revoked of the others since
// stays so.
func (h *house) revive(ctx context.Context, cfg *config.Config) error {
	if err := h.furnish(ctx, cfg, nil); err != nil {
		return err
	}
	s := setup(cfg)
	s.KeepRoles = true
	return h.rt.Configure(s)
}

// furnish loads modules, makes models, and says how programs run and what
// requests may reach.
func (h *house) furnish(ctx context.Context, cfg *config.Config, loaded error) error {
	faults := h.loadModules(ctx, cfg)
	faults = append(faults, h.groupFaults(cfg)...)
	faults = append(faults, h.serverFaults(cfg)...)
	faults = append(faults, h.makeModels(cfg)...)
	h.command, h.network = cfg.Command, networkPolicy(cfg.Network)
	return config.Join(loaded, faults...)
}

// loadModules loads the modules a configuration names.
func (h *house) loadModules(ctx context.Context, cfg *config.Config) (faults []*config.Error) {
	for _, m := range cfg.Modules {
		if !slices.Contains(h.kinds.Kinds(), m.Type) {
			faults = append(faults, cfg.Fault(m.TypePos, "type", "this build has no module type "+strconv.Quote(m.Type), "it has "+strings.Join(h.kinds.Kinds(), ", ")))
			continue
		}
		module, err := h.kinds.New(m.Type, modules.Config{Name: m.Name, Settings: m.Settings, Host: h.host(m.Name)})
		if err == nil {
			err = h.loader.Load(ctx, module)
		}
		if err != nil {
			faults = append(faults, cfg.Fault(m.Pos, "module", errcode.Message(err), ""))
		}
	}
	return faults
}

// host is what the module of this name may use of the process.
func (h *house) host(name string) modules.Host {
	return modules.Host{
		Log:     h.log.With("module", name),
		Shelf:   h.rt,
		Changed: func() { h.loader.Changed(name) },
	}
}

func setup(cfg *config.Config) runtime.Setup {
	s := runtime.Setup{
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
	if !g.Set {
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

// groupFaults finds group ids that nobody registered: in a configuration they
// are mistakes.
func (h *house) groupFaults(cfg *config.Config) []*config.Error {
	known := []string{}
	for _, id := range h.groups.Snapshot().IDs() {
		known = append(known, string(id))
	}
	var faults []*config.Error
	check := func(field string, g config.Groups) {
		for i, id := range g.IDs {
			if h.groups.Snapshot().Owner(toolgroups.GroupID(id)) == "" {
				faults = append(faults, cfg.Fault(g.Pos(i), field, "unknown tool group "+id, config.Suggest(id, known)))
			}
		}
	}
	check("defaultToolGroups", cfg.Organization.DefaultToolGroups)
	for _, r := range cfg.Roles {
		check("toolGroups", r.ToolGroups)
		check("grant", r.Grant)
	}
	return faults
}

// serverFaults finds servers that brought nothing: a role confined to one
// would have no tool.
func (h *house) serverFaults(cfg *config.Config) (faults []*config.Error) {
	known := h.groups.Snapshot().Servers()
	for _, r := range cfg.Roles {
		if r.Server != "" && !slices.Contains(known, r.Server) {
			faults = append(faults, cfg.Fault(r.ServerPos, "server", "no module "+strconv.Quote(r.Server)+" brings tools", config.Suggest(r.Server, known)))
		}
	}
	return faults
}
