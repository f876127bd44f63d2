// Package app composes the program on one data directory. It opens the store and
// wires the runtime, the built-in tools, modules, models and servers together. It
// applies configurations while agents work, and resumes tasks.
//
//	a, err := app.Open(app.Options{Data: ".rolecall"})
//	if err != nil { … }
//	defer a.Close()
//	err = a.ApplyConfig(ctx, cfg)
//	id, err := a.StartTask(ctx, org.TaskSpec{Text: "…"}, nil)
//
// The command line (cmd) is its user. The package prints to Options.Console only, and
// reads no flags or terminals.
//
// # Changing the configuration
//
// ApplyConfig and WatchConfig replace the configuration while agents work. A change has
// two phases. The first, prepare, provisions new modules, constructs models and auth
// services and collects every problem. Nothing of it is visible, and discard releases
// it. The second, install, makes the change active: groups and roles in one commit.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app/notify"
	"github.com/rolecall/rolecall/internal/app/trigger"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/modules/textstats"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// Options configure Open.
type Options struct {
	Data              string                      // data directory; created if missing
	OpenReadOnly      bool                        // opens the existing data file for reading: nothing can be committed
	Serve             bool                        // clients of the API may start tasks
	CheckScriptsLater bool                        // agent scripts are checked when an agent first runs one, not when they are declared
	Workspace         string                      // the default workspace of callers, whatever the configuration says; "" is the configuration's
	WorkspaceReadOnly bool                        // no agent and no caller writes to Workspace
	Files             []string                    // configuration files and folders that WatchConfig watches
	Env               func(string) (string, bool) // looks up variables of the configuration; nil finds none

	Launcher *sandbox.Launcher    // runs programs in the sandbox; nil runs none
	Kinds    []modules.ModuleKind // module kinds in addition to those that ship
	Brokers  []broker.Kind        // kinds of brokers in addition to those that ship
	Version  string               // reported over HTTP and MCP

	Console io.Writer                              // receives notes to the operator and console_print; nil discards them
	Models  func(name string) (model.Model, error) // finds models that the configuration does not declare; nil finds none
	Human   func() model.Model                     // constructs the model of type human; nil rejects that type
	Log     *slog.Logger                           // nil discards
	Warn    *slog.Logger                           // receives warnings that do not depend on -v; nil is Log

	// Fatal is called when the store has stopped after a failed write. If it is nil
	// the App is read-only: it does not connect to MCP servers.
	Fatal func(error)

	wall clock.Wall // opens and closes toolsets; the zero Wall is the machine's
}

func (o Options) withDefaults() Options {
	if o.Console == nil {
		o.Console = io.Discard
	}
	if o.wall.Now == nil {
		o.wall = clock.System()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Warn == nil {
		o.Warn = o.Log
	}
	return o
}

// App is the application composed on one data directory: store, registry, runtime,
// modules, models, tokens and MCP server. Its methods are safe for concurrent use.
// Open returns one; Close releases it.
type App struct {
	Runtime *runtime.Runtime
	MCP     *mcpserver.Server // serves MCP clients over HTTP and stdio
	Tokens  *auth.TokenStore  // no token is valid until a configuration lists it

	lifecycle lifecycle
	markReady func() // closes lifecycle.ready

	options Options
	store   *persist.Store
	groups  *toolgroups.Manager
	owner   *toolgroups.Owner // of the groups that the configuration defines

	metrics  *metrics.Metrics
	registry *prometheus.Registry // holds the metrics

	kinds         modules.KindRegistry
	loader        *modules.Loader
	pins          *modules.PinStore // accepted tool definitions of MCP servers
	neverConnects bool              // MCP servers are not connected

	pools      toolbox.Pools            // database connections of sources
	brokers    brokers                  // connections of tool services
	notStarted atomic.Pointer[[]string] // modules that the last change could not start; nil before the first

	announcements announcements // services that announce themselves

	keys     *keystore.Store
	logins   *mcpauth.Store // at MCP servers
	services authServices   // verifies the tokens that calls carry
	issuers  authServices   // verifies the tokens that requests carry
	toolsets toolsets       // as registered now; guarded by toolsetsMu
	hours    hourKeeper

	// toolsetsMu is held while toolsets are registered, opened and closed, so that each of
	// these changes sees the one before. It is taken after configMu.
	toolsetsMu sync.Mutex

	scripts    *script.WorkerPool // processes that run agent scripts
	models     atomic.Pointer[modelSet]
	human      model.Model // nil until a configuration has one
	recordings *recordings
	secrets    liveSecrets
	active     atomic.Pointer[activeConfig] // nil before the first configuration
	items      atomic.Pointer[itemStates]   // the applied items; nil before the first configuration

	configMu        sync.Mutex               // serializes changes of the configuration; guards the fields below
	current         *config.Config           // the active configuration; nil before the first
	fileConfig      *config.Config           // current without the applied items
	restored        bool                     // current is recorded: it has no tokens
	running         map[string]config.Module // modules in service, as they were last loaded
	reportedLost    map[org.LostGroup]bool   // reported by reportLostGroups
	reportedUnknown map[org.UnknownName]bool // reported by reportUnknownNames
	changeTexts     []string                 // of roles and groups, by the last change; see takeChanges

	triggers      atomic.Pointer[trigger.Engine] // nil without Options.Serve
	notifications atomic.Pointer[notify.Engine]  // nil without Options.Serve
	limits        liveLimits                     // of programs and requests
	pollInterval  time.Duration                  // of WatchConfig; 0 is a second
}

// Open opens the data directory and composes the application on it. No
// configuration is active yet, and no task is resumed. It returns errcode.Conflict
// if another process has the directory open.
func Open(o Options) (*App, error) {
	open := persist.Open
	if o.OpenReadOnly {
		open = persist.OpenReadOnly
	}
	store, err := open(o.Data)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	a := &App{
		options: o, store: store, neverConnects: o.Fatal == nil,
		groups: toolgroups.NewManager(toolgroups.ReservedIDs()...), registry: prometheus.NewRegistry(),
		running: map[string]config.Module{}, toolsets: toolsets{},
		lifecycle:  lifecycle{ready: make(chan struct{})},
		hours:      hourKeeper{wall: o.wall, changed: make(chan struct{}, 1), stop: func() {}},
		recordings: &recordings{dir: filepath.Join(o.Data, "recordings"), log: o.Log},
		keys:       keystore.Open(o.Data),
	}
	a.brokers.accounts, a.brokers.log = func(name string) broker.Accounts { return &accounts{a, name} }, o.Warn
	a.markReady = sync.OnceFunc(func() { close(a.lifecycle.ready) })
	a.recordings.count = func(task identity.TaskID, bytes int) error { return a.Runtime.CountFileBytes(task, bytes) }
	a.models.Store(&modelSet{})
	a.scripts = script.NewWorkerPool(builtin.NewScriptStarter(o.Launcher, o.Warn))
	expiry := clock.NewForward(time.Now)
	a.services.kind, a.services.log, a.services.expiry = "authService", o.Warn, expiry
	a.issuers.kind, a.issuers.log, a.issuers.expiry = "issuer", o.Warn, expiry
	for _, step := range []func() error{a.openRuntime, a.openTriggers, a.openNotifications, a.openServers, a.openModules, a.openAnnouncements} {
		if err := step(); err != nil {
			a.DiscardUnused()
			return nil, errors.Join(err, a.Close())
		}
	}
	if !o.OpenReadOnly {
		a.startHours()
	}
	return a, nil
}

func (a *App) openRuntime() (err error) {
	if a.owner, err = a.groups.ClaimOwner(toolgroups.Config); err != nil {
		return err
	}
	a.metrics, err = metrics.New(a.registry, metrics.Config{Groups: a.groups, Unready: a.unreadyCodes, Services: a.serviceStates, Notifications: a.deliveries, Load: func() metrics.Load { return metrics.Load(a.Runtime.CurrentLoad()) }})
	if err != nil {
		return err
	}
	a.Runtime, err = runtime.New(runtime.Config{
		Store: a.store, Groups: a.groups, Model: a.model,
		Workspaces: filepath.Join(a.options.Data, workspacesFolder), Data: a.options.Data,
		Workspace: a.options.Workspace, WorkspaceReadOnly: a.options.WorkspaceReadOnly,
		Console: a.options.Console, Log: a.options.Log, Fatal: a.options.Fatal,
		Observe: a.observeEvent, Authn: &a.services,
		Redact: func(args []byte) []byte { return a.secrets.redactor().RedactJSON(args) },
	})
	return err
}

func (a *App) openServers() (err error) {
	a.Tokens, err = auth.NewTokenStore(auth.TokenStoreConfig{Role: a.Runtime.Org().RoleByID, TrustedProxies: a.trustedProxies, KeepTokens: a.exchangesTokens, Sessions: sessionStore{a.Runtime.OwnerStore()}})
	if err != nil {
		return err
	}
	a.Runtime.SetCredentialCheck(a.Tokens.IsActiveCredential)
	a.MCP, err = mcpserver.New(mcpserver.Config{Runtime: a.Runtime, Log: a.options.Log, UserLog: a.options.Warn, Version: a.options.Version, Streaming: gateway.UntilShutdown})
	return err
}

func (a *App) openModules() error {
	a.loader, a.pins = modules.NewLoader(a.groups), modules.NewPinStore(a.Runtime.OwnerStore())
	a.logins = mcpauth.NewStore(a.Runtime.OwnerStore(), a.keys)
	a.loader.Log = a.options.Log
	tools := builtin.Options{Launcher: a.options.Launcher, Commands: a.limits.commands, Network: a.limits.requests}
	return errors.Join(builtin.RegisterGroups(a.groups, a.Runtime.ToolHost(), tools), a.registerModuleKinds(), a.brokers.register(a.options.Brokers))
}

// Handler returns the HTTP API. It does not check the Host and Origin headers;
// ListenHTTP does.
func (a *App) Handler() (http.Handler, error) {
	var start func(context.Context, org.TaskSpec) (identity.TaskID, error)
	if a.options.Serve {
		start = a.startClientTask
	}
	var hooks func(string, http.Header, []byte) (gateway.Hook, bool)
	if e := a.triggers.Load(); e != nil {
		hooks = e.FindHook
	}
	return gateway.New(gateway.Config{
		Runtime: a.Runtime, Authenticate: a.Tokens.Authenticate, Log: a.options.Log, Version: a.options.Version,
		Metrics: metrics.Handler(a.registry, a.options.Log), OnRefused: a.metrics.CountRefused, MCP: a.MCP,
		Pins: a.pins, Items: a, Logins: a, Models: a.declaredModels, WaitIdle: a.loader.WaitIdle, StartTask: start, FindHook: hooks, ConfigDigest: a.configDigest, TokenHolders: a.Tokens.Holders, Tokens: a.Tokens.ListTokens, Issuers: a.Tokens.ListIssuers, Sessions: a.Tokens, RequestsPerMinute: a.limits.requestsPerMinute, Unready: a.unreadyReasons,
	})
}

// registerModuleKinds registers the module kinds that ship and the kinds of Options.
func (a *App) registerModuleKinds() error {
	ours := []modules.ModuleKind{{Name: textstats.Kind, New: textstats.New}, a.chrome()}
	for _, k := range append(ours, a.options.Kinds...) {
		if err := a.kinds.RegisterKind(k); err != nil {
			return err
		}
	}
	return nil
}

// workspacesFolder is the folder of the data directory with the private workspaces: one
// folder for each task, and one for callers.
const workspacesFolder = "workspaces"

// LastSeq returns the sequence number of the last commit.
func (a *App) LastSeq() uint64 { return a.store.LastSeq() }

// DiscardUnused makes Close remove the data directory that Open has created, if nothing was
// committed. It is for a command that has failed.
func (a *App) DiscardUnused() { a.store.DiscardUnused() }

// Close stops the agents, modules and models and closes the store. Unfinished tasks
// can be resumed later. It also releases an App that Open built only in part.
func (a *App) Close() error {
	var errs []error
	a.hours.stop()
	a.announcements.close()
	if a.MCP != nil {
		errs = append(errs, a.MCP.Close())
	}
	if a.logins != nil {
		a.logins.Close() // what it stores needs the runtime
	}
	if a.Runtime != nil {
		errs = append(errs, a.Runtime.Close())
	}
	if a.loader != nil {
		errs = append(errs, a.loader.CloseAll())
	}
	errs = append(errs, a.models.Load().Close())
	a.scripts.Close() // models that were replaced may still have workers
	return errors.Join(append(errs, a.store.Close())...)
}

// model returns the model with this name; "" is the organization's default model.
func (a *App) model(name string) (model.Model, error) {
	declared := a.models.Load()
	if a.options.Models != nil && !declared.has(name) {
		return a.options.Models(name)
	}
	return declared.find(name)
}

// declaredModels lists the models of the active configuration, sorted. It reports false if
// no configuration is active.
func (a *App) declaredModels() (names []string, loaded bool) {
	m := a.models.Load()
	for name := range m.byName {
		names = append(names, name)
	}
	for name := range m.errors { // some of them have fallbacks and are in byName, too
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), m.byName != nil
}

// moduleHost returns the services that the module of this name gets from the process.
func (a *App) moduleHost(name string) modules.ModuleHost {
	return modules.ModuleHost{
		Log:     a.options.Log.With("module", name),
		Store:   a.Runtime.OwnerStore(),
		Changed: func() { a.loader.NotifyChanged(name) },
	}
}

// orgConfig returns the part of a configuration that the runtime applies: roles,
// limits and budget.
func orgConfig(cfg *config.Config) runtime.OrgConfig {
	s := runtime.OrgConfig{
		RootPrompt: cfg.Organization.RootPrompt,
		Default:    groupSet(cfg.Organization.DefaultToolGroups),
		Grant:      groupSet(cfg.Organization.Grant),
		Rounds:     cfg.Organization.Limits.Rounds,
		Storage:    storageLimits(cfg.Organization.Limits),
		Limits:     taskLimits(cfg.Organization.Limits),
		Budget:     taskBudget(cfg.Organization.Budget),
		Oversight:  cfg.Oversight.Rule,
		Approval:   cfg.Organization.Approval,
	}
	for _, r := range cfg.Roles {
		s.Roles = append(s.Roles, org.RoleSpec{
			Name: r.Name, Description: r.Description, Prompt: r.Prompt, Model: r.Model,
			Use: groupSet(r.ToolGroups), Grant: groupSet(r.Grant), Limits: agentLimits(r.Limits), Hosts: r.Hosts,
			Pattern: org.CollaborationPattern(r.Pattern), ToolGated: &r.ToolGated, Server: &r.Server, TasksAs: &r.TasksAs, Result: resultSpec(r.Result),
			Agent: askSettings(r.Agent), States: r.States, Approval: r.Approval, Bind: r.Bind,
		})
	}
	return s
}

// askSettings returns what lets callers ask the agents of a role; nil does not.
func askSettings(a *config.AskSettings) *org.AskSettings {
	if a == nil {
		return nil
	}
	return &org.AskSettings{DefaultGroups: groupSet(a.DefaultGroups)}
}

// resultSpec returns the specification of a result with a schema; nil for none.
func resultSpec(schema json.RawMessage) *org.ResultSpec {
	if schema == nil {
		return nil
	}
	return &org.ResultSpec{Schema: schema}
}

func taskBudget(b config.Budget) runtime.TaskBudget {
	if b.Tokens == config.NoLimit {
		b.Tokens = runtime.NoTokenLimit
	}
	if b.WarnAt == config.NoLimit {
		b.WarnAt = runtime.NoWarning
	}
	return runtime.TaskBudget{Tokens: b.Tokens, Cost: model.Money(b.Cost), Calls: b.Calls, WarnAt: b.WarnAt}
}

func agentLimits(l config.Limits) org.AgentLimits {
	return org.AgentLimits{
		Rounds: l.Rounds, Budget: org.ModelAllowance(l.Budget), LineLimits: org.LineLimits{Depth: l.Depth, Hires: l.Hires, Seconds: l.Seconds},
	}
}

func taskLimits(l config.OrganizationLimits) runtime.Limits {
	return runtime.Limits{TaskLimits: org.TaskLimits{Roles: l.Roles, Agents: l.Agents, Depth: l.Depth}, Calls: l.Calls, Mail: l.Mail, Turns: l.Turns, Hires: l.Hires, Requests: l.Requests}
}

func storageLimits(l config.OrganizationLimits) runtime.StorageLimits {
	return runtime.StorageLimits{
		WorkspaceBytes: l.WorkspaceBytes, WorkspaceFiles: l.WorkspaceFiles, ArtifactBytes: l.ArtifactBytes,
		DiskReserve: l.DiskReserve, RecordedPerTask: l.RecordedPerTask, RecordedPerCaller: l.RecordedPerCaller, Recorded: l.Recorded,
	}
}

// groupSet converts a configured list of groups. It returns nil if the field is not
// set, which means a default and not the empty set.
func groupSet(g config.Groups) *toolgroups.GroupSet {
	if !g.Given {
		return nil
	}
	set := toolgroups.AllGroups()
	if !g.All {
		set = toolgroups.SetOfNames(g.IDs...)
	}
	return &set
}
