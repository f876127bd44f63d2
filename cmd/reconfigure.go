package cmd

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
	"github.com/rolecall/rolecall/gateway"
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
	tokens  []gateway.Token
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

// configure puts a configuration in force. loaded is what Load said of it:
// all that is wrong is reported together.
func (h *App) configure(ctx context.Context, cfg *config.Config, loaded error) error {
	return h.applyConfig(ctx, cfg, loaded, setup(cfg))
}

// restoreConfig puts the recorded configuration of a task in force, without its tokens.
// Of its roles only those that are gone are made again: what was revoked of the others since
// stays so.
func (h *App) restoreConfig(ctx context.Context, cfg *config.Config) error {
	s := setup(cfg)
	s.KeepRoles = true
	return h.applyConfig(ctx, cfg, nil, s)
}

// applyConfig puts a configuration in force, whole or not at all.
func (h *App) applyConfig(ctx context.Context, cfg *config.Config, loaded error, s runtime.OrgConfig) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	ch := h.prepare(ctx, cfg, s)
	if err := config.Join(loaded, append(ch.failed, ch.faults...)...); err != nil {
		return errors.Join(err, h.discard(ctx, ch))
	}
	_, err := h.install(ctx, ch)
	return err
}

// reconfigure puts another configuration in force beside agents at work. What is
// wrong with it leaves all as it was. A module that does not come up hinders the
// rest only if a role needs it: the old one stays, or there is none, and told
// says so.
func (h *App) reconfigure(ctx context.Context, cfg *config.Config) (told []string, err error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	ch := h.prepare(ctx, cfg, setup(cfg))
	ch.faults = append(ch.faults, h.staleModuleErrors(ch)...)
	if len(ch.faults) == 0 {
		if err := h.rt.Plan(ch.setup); err != nil {
			return nil, errors.Join(err, h.discard(ctx, ch))
		}
		return h.install(ctx, ch)
	}
	return nil, errors.Join(config.Join(nil, append(ch.failed, ch.faults...)...), h.discard(ctx, ch))
}

// prepare makes ready what a configuration needs and is not there as it is.
func (h *App) prepare(ctx context.Context, cfg *config.Config, s runtime.OrgConfig) *configChange {
	ch := &configChange{cfg: cfg, setup: s}
	h.stage(ctx, ch)
	var faults []*config.Error
	ch.models, faults = h.makeModels(cfg)
	ch.faults = append(ch.faults, h.declareFaults(ch)...)
	ch.faults = append(ch.faults, h.groupFaults(ch)...)
	ch.faults = append(ch.faults, h.serverFaults(ch)...)
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
func (h *App) stage(ctx context.Context, ch *configChange) {
	made, news := h.makeModules(ch)
	errs := make([]error, len(made))
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() { made[n].ready, errs[n] = h.loader.Stage(ctx, news[n]) })
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
func (h *App) makeModules(ch *configChange) (made []staged, news []modules.Module) {
	stays := map[string]bool{}
	for _, m := range modulesOf(ch.cfg) {
		stays[m.Name] = true
		old, runs := h.running[m.Name]
		if runs && old.Type == m.Type && bytes.Equal(old.Settings, m.Settings) {
			continue
		}
		if isInvalidSource(ch.cfg, m) {
			continue
		}
		module, fault := h.makeModule(ch.cfg, m)
		if fault != nil {
			ch.faults = append(ch.faults, fault)
			continue
		}
		made, news = append(made, staged{Module: m, reload: runs}), append(news, module)
	}
	for name := range h.running {
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
func (h *App) makeModule(cfg *config.Config, m config.Module) (modules.Module, *config.Error) {
	switch m.Type {
	case kindServer:
		return h.makeServer(cfg, m)
	case kindSource:
		return h.makeSource(cfg, m)
	}
	if !slices.Contains(h.kinds.Kinds(), m.Type) {
		return nil, cfg.Fault(m.TypePos, "type", "this build has no module type "+strconv.Quote(m.Type), "it has "+strings.Join(h.kinds.Kinds(), ", "))
	}
	made, err := h.kinds.New(m.Type, modules.Config{Name: m.Name, Settings: m.Settings, Host: h.host(m.Name)})
	if err != nil {
		return nil, cfg.Fault(m.Pos, "module", errcode.Message(err), "")
	}
	return made, nil
}

// discard takes back what was made ready.
func (h *App) discard(ctx context.Context, ch *configChange) error {
	var errs []error
	for _, m := range ch.staged {
		errs = append(errs, m.ready.Discard(ctx))
	}
	return errors.Join(append(errs, ch.models.closeExcept(h.models.Load()))...)
}

// install puts what is ready in force, in an order in which nobody has more than
// one of the two configurations gives: toolsets and auth services narrow, or
// nothing is changed; models there are either way; modules are swapped; roles and
// bounds come together; what is not needed any more goes last. Calls that go on in
// what was replaced hinder none of it. told is nil where all stays as it was.
func (h *App) install(ctx context.Context, ch *configChange) (told []string, err error) {
	if err := h.restrict(ch); err != nil {
		return nil, errors.Join(err, h.discard(ctx, ch))
	}
	old := h.models.Load()
	h.models.Store(ch.models.union(old))
	errs := h.swap(ctx, ch)
	if err := h.bounds.set(ch.cfg, func() error { return h.rt.Configure(ch.setup) }); err != nil {
		errs = append(errs, fmt.Errorf("the roles, and what programs and requests may do, stay as they were: %w", err))
		return ch.summary(), errors.Join(append(errs, h.drainReplaced(ctx, ch, nil)...)...)
	}
	errs = append(errs, h.expand(ch), h.tokens.Replace(ch.tokens))
	h.models.Store(ch.models)
	h.recordings.addSecrets(secretsOf(ch.cfg))
	h.current = ch.cfg
	errs = append(errs, h.drainReplaced(ctx, ch, ch.removed)...)
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
func (h *App) knownGroups(ch *configChange) (groups, servers []string) {
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
	s := h.groups.Snapshot()
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
func (h *App) groupFaults(ch *configChange) (faults []*config.Error) {
	known, _ := h.knownGroups(ch)
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
				faults = append(faults, ch.cfg.Fault(g.Pos(i), field, "unknown tool group "+id, cmp.Or(h.toolHint(ch.cfg, id), config.Suggest(id, known))))
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
func (h *App) toolHint(cfg *config.Config, name string) string {
	if slices.ContainsFunc(cfg.Tools, func(t config.DeclaredTool) bool { return t.Name == name }) {
		return "it is a tool: list it in a document of kind: toolset, and name that"
	}
	if handle, ok := h.groups.Snapshot().Lookup(name); ok {
		return "it is a tool of the group " + string(handle.Group)
	}
	return ""
}

// serverFaults finds servers that bring nothing: a role confined to one would
// have no tool.
func (h *App) serverFaults(ch *configChange) (faults []*config.Error) {
	_, known := h.knownGroups(ch)
	for _, r := range ch.cfg.Roles {
		if r.Server != "" && !slices.Contains(known, r.Server) {
			faults = append(faults, ch.cfg.Fault(r.ServerPos, "server", "no module "+strconv.Quote(r.Server)+" brings tools", config.Suggest(r.Server, known)))
		}
	}
	return faults
}
