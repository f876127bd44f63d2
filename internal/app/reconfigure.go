package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/runtime"
)

// configChange is a configuration on its way: what it needs is ready beside what is in
// force, and nobody sees it.
type configChange struct {
	cfg     *config.Config
	setup   runtime.OrgConfig
	models  *modelSet
	tokens  []auth.Token
	staged  []staged // in the order of the configuration
	removed []string // modules that it no longer has
	stale   []string // modules that run and whose successors do not come up

	toolsets toolsets
	services map[string]service

	faults      []*config.Error // what is wrong with the files
	failed      []*config.Error // modules that are right and do not come up
	failedNames []string        // their names
}

type staged struct {
	config.Module
	ready  *modules.Staged
	reload bool
	done   bool // it is in service
}

// Configure applies a configuration, whole or not at all. loaded is the error of
// loading it, so that everything that is wrong is reported together.
func (a *App) Configure(ctx context.Context, cfg *config.Config, loaded error) error {
	return a.applyConfig(ctx, cfg, loaded, setup(cfg))
}

// restoreConfig applies the recorded configuration of a task, without its tokens. Of
// its roles it makes only those again that are gone: what was revoked of the others
// since then stays revoked.
func (a *App) restoreConfig(ctx context.Context, cfg *config.Config) error {
	s := setup(cfg)
	s.KeepRoles = true
	return a.applyConfig(ctx, cfg, nil, s)
}

// applyConfig applies a configuration, whole or not at all.
func (a *App) applyConfig(ctx context.Context, cfg *config.Config, loaded error, s runtime.OrgConfig) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	ch := a.prepare(ctx, cfg, s)
	if err := config.Join(loaded, append(ch.failed, ch.faults...)...); err != nil {
		return errors.Join(err, a.discard(ctx, ch))
	}
	_, err := a.install(ctx, ch)
	return err
}

// reconfigure puts another configuration in force beside agents at work. What is
// wrong with it leaves all as it was. A module that does not come up hinders the
// rest only if a role needs it: the old one stays, or there is none, and told
// says so.
func (a *App) reconfigure(ctx context.Context, cfg *config.Config) (told []string, err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	ch := a.prepare(ctx, cfg, setup(cfg))
	ch.faults = append(ch.faults, a.staleModuleErrors(ch)...)
	if len(ch.faults) == 0 {
		if err := a.Runtime.Plan(ch.setup); err != nil {
			return nil, errors.Join(err, a.discard(ctx, ch))
		}
		return a.install(ctx, ch)
	}
	return nil, errors.Join(config.Join(nil, append(ch.failed, ch.faults...)...), a.discard(ctx, ch))
}

// prepare makes ready what a configuration needs and is not there as it is.
func (a *App) prepare(ctx context.Context, cfg *config.Config, s runtime.OrgConfig) *configChange {
	ch := &configChange{cfg: cfg, setup: s}
	a.stage(ctx, ch)
	var faults []*config.Error
	ch.models, faults = a.makeModels(cfg)
	ch.faults = append(ch.faults, a.declareFaults(ch)...)
	ch.faults = append(ch.faults, a.groupFaults(ch)...)
	ch.faults = append(ch.faults, a.serverFaults(ch)...)
	ch.faults = append(ch.faults, faults...)
	if s.KeepRoles { // a record: its tokens may have been taken back since
		return ch
	}
	var err error
	if ch.tokens, err = tokensOf(cfg); err != nil {
		ch.faults = append(ch.faults, cfg.Fault(cfg.Gateway.Pos, "tokens", err.Error(), ""))
	}
	return ch
}

// stage makes those modules ready, side by side, that are new or others than
// those that run.
func (a *App) stage(ctx context.Context, ch *configChange) {
	made, news := a.makeModules(ch)
	errs := make([]error, len(made))
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() { made[n].ready, errs[n] = a.loader.Stage(ctx, news[n]) })
	}
	all.Wait()
	for n, m := range made {
		if errs[n] != nil {
			ch.failedNames = append(ch.failedNames, m.Name)
			ch.failed = append(ch.failed, ch.cfg.Fault(m.Pos, "module", reasonOf(errs[n]), stderrOf(errs[n])))
			if m.reload {
				ch.stale = append(ch.stale, m.Name)
			}
			continue
		}
		ch.staged = append(ch.staged, m)
	}
}

// makeModules constructs the modules that are to be staged and lists those that
// are gone.
func (a *App) makeModules(ch *configChange) (made []staged, news []modules.Module) {
	stays := map[string]bool{}
	for _, m := range ModulesOf(ch.cfg) {
		stays[m.Name] = true
		old, runs := a.running[m.Name]
		if runs && old.Type == m.Type && bytes.Equal(old.Settings, m.Settings) {
			continue
		}
		if isInvalidSource(ch.cfg, m) {
			continue
		}
		module, fault := a.makeModule(ch.cfg, m)
		if fault != nil {
			ch.faults = append(ch.faults, fault)
			continue
		}
		made, news = append(made, staged{Module: m, reload: runs}), append(news, module)
	}
	for name := range a.running {
		if !stays[name] {
			ch.removed = append(ch.removed, name)
		}
	}
	slices.Sort(ch.removed)
	return made, news
}

// reasonOf says why a module does not come up, in one line: to the operator, who
// may know.
func reasonOf(err error) string {
	said, coded := errors.AsType[*errcode.Error](err)
	of, served := errors.AsType[*mcpclient.ServerError](err)
	text := err.Error()
	switch {
	case coded && served:
		text = said.Message + ": " + of.Err.Error()
	case coded && said.Err != nil:
		text = said.Message + ": " + said.Err.Error()
	case coded:
		text = said.Message
	case served:
		text = of.Err.Error()
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// makeModule constructs a module; nothing of it works yet.
func (a *App) makeModule(cfg *config.Config, m config.Module) (modules.Module, *config.Error) {
	switch m.Type {
	case kindServer:
		return a.makeServer(cfg, m)
	case kindSource:
		return a.makeSource(cfg, m)
	}
	if !slices.Contains(a.kinds.Kinds(), m.Type) {
		return nil, cfg.Fault(m.TypePos, "type", "this build has no module type "+strconv.Quote(m.Type), "it has "+strings.Join(a.kinds.Kinds(), ", "))
	}
	made, err := a.kinds.New(m.Type, modules.Config{Name: m.Name, Settings: m.Settings, Host: a.host(m.Name)})
	if err != nil {
		return nil, cfg.Fault(m.Pos, "module", errcode.Message(err), "")
	}
	return made, nil
}

// discard takes back what was made ready.
func (a *App) discard(ctx context.Context, ch *configChange) error {
	var errs []error
	for _, m := range ch.staged {
		errs = append(errs, m.ready.Discard(ctx))
	}
	return errors.Join(append(errs, ch.models.closeExcept(a.models.Load()))...)
}

// install puts what is ready in force, in an order in which nobody has more than
// one of the two configurations gives: toolsets and auth services narrow, or
// nothing is changed; models there are either way; modules are swapped; roles and
// bounds come together; what is not needed any more goes last. Calls that go on in
// what was replaced hinder none of it. told is nil where all stays as it was.
func (a *App) install(ctx context.Context, ch *configChange) (told []string, err error) {
	if err := a.restrict(ch); err != nil {
		return nil, errors.Join(err, a.discard(ctx, ch))
	}
	old := a.models.Load()
	a.models.Store(ch.models.union(old))
	errs := a.swap(ctx, ch)
	if err := a.bounds.set(ch.cfg, func() error { return a.Runtime.Configure(ch.setup) }); err != nil {
		errs = append(errs, fmt.Errorf("the roles, and what programs and requests may do, stay as they were: %w", err))
		return ch.summary(), errors.Join(append(errs, a.drainReplaced(ctx, ch, nil)...)...)
	}
	errs = append(errs, a.expand(ch), a.Tokens.Replace(ch.tokens))
	a.models.Store(ch.models)
	a.recordings.addSecrets(secretsOf(ch.cfg))
	a.current = ch.cfg
	errs = append(errs, a.drainReplaced(ctx, ch, ch.removed)...)
	old.retire(ch.models)
	return ch.summary(), errors.Join(errs...)
}

// summary tells what a change does, for people.
func (ch *configChange) summary() []string {
	told := []string{}
	for _, m := range ch.staged {
		verb := "loaded"
		if m.reload {
			verb = "reloaded"
		}
		if m.done {
			told = append(told, "module "+m.Name+" is "+verb)
		}
	}
	for _, name := range ch.removed {
		told = append(told, "module "+name+" is unloaded")
	}
	for _, e := range ch.failed {
		told = append(told, "a module does not come up, and stays as it was or is missing: "+e.Error())
	}
	return told
}

// knownGroups lists the groups, and the servers that bring some, as they will be;
// toolsets apart.
func (a *App) knownGroups(ch *configChange) (groups, servers []string) {
	leaves := ch.changedOwners()
	for _, m := range ch.staged {
		for _, id := range m.ready.Groups() {
			groups = append(groups, string(id))
		}
		if len(m.ready.Groups()) > 0 {
			servers = append(servers, m.Name)
		}
	}
	for _, one := range ch.cfg.Sources {
		if one.Invalid {
			groups, servers = append(groups, string(toolbox.GroupID(one.Name))), append(servers, toolbox.ModuleName(one.Name))
		}
	}
	s := a.groups.Snapshot()
	for _, id := range s.IDs() {
		if !leaves[s.Owner(id)] {
			groups = append(groups, string(id))
		}
	}
	for _, name := range s.Servers() {
		if !leaves[modules.Owner(name)] {
			servers = append(servers, name)
		}
	}
	return groups, servers
}

// groupFaults finds group ids that nobody registers: in a configuration they
// are mistakes.
func (a *App) groupFaults(ch *configChange) (faults []*config.Error) {
	known, _ := a.knownGroups(ch)
	for id := range ch.toolsets {
		known = append(known, string(id))
	}
	check := func(field string, g config.Groups) {
		for i, id := range g.IDs {
			module, _, _ := strings.Cut(id, "/")
			switch {
			case slices.Contains(known, id):
			case slices.Contains(ch.failedNames, module):
				faults = append(faults, ch.cfg.Fault(g.Pos(i), field, "tool group "+id+" is missing: module "+module+" does not come up", ""))
			default:
				faults = append(faults, ch.cfg.Fault(g.Pos(i), field, "unknown tool group "+id, cmp.Or(a.toolHint(ch.cfg, id), config.Suggest(id, known))))
			}
		}
	}
	check("defaultToolGroups", ch.cfg.Organization.DefaultToolGroups)
	for _, r := range ch.cfg.Roles {
		check("toolGroups", r.ToolGroups)
		check("grant", r.Grant)
	}
	return faults
}

// toolHint says what to write for a tool where a tool group is to stand; "" if
// there is no such tool.
func (a *App) toolHint(cfg *config.Config, name string) string {
	if slices.ContainsFunc(cfg.Tools, func(t config.DeclaredTool) bool { return t.Name == name }) {
		return "it is a tool: list it in a document of kind: toolset, and name that"
	}
	if handle, ok := a.groups.Snapshot().Lookup(name); ok {
		return "it is a tool of the group " + string(handle.Group)
	}
	return ""
}

// serverFaults finds servers that bring nothing: a role confined to one would
// have no tool.
func (a *App) serverFaults(ch *configChange) (faults []*config.Error) {
	_, known := a.knownGroups(ch)
	for _, r := range ch.cfg.Roles {
		if r.Server != "" && !slices.Contains(known, r.Server) {
			faults = append(faults, ch.cfg.Fault(r.ServerPos, "server", "no module "+strconv.Quote(r.Server)+" brings tools", config.Suggest(r.Server, known)))
		}
	}
	return faults
}
