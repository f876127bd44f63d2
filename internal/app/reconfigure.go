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
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// configChange is a prepared configuration: everything that it needs exists, and
// nothing of it is visible yet. Either install or discard consumes it.
type configChange struct {
	cfg        *config.Config // with the items that are part of it
	fileConfig *config.Config // without them
	items      itemStates     // all applied items
	orgConfig  runtime.OrgConfig
	models     *modelSet
	tokens     []auth.Token
	restored   bool                    // it is recorded, so it has no tokens
	staged     []stagedModule          // new and changed modules, in the order of the configuration
	removed    []string                // modules in service that the configuration no longer has
	unloads    []*modules.StagedModule // of removed
	stale      []string                // modules in service whose replacement failed to start

	toolsets toolsets
	bound    toolsets // toolsets as registered
	services map[string]authService
	issuers  map[string]authService // of the gateway

	problems      []*yamldoc.Error // mistakes in the files; any of them rejects the change
	moduleErrors  []*yamldoc.Error // modules that are declared correctly and failed to start
	failedModules []string         // their names
	faultyModules []string         // names and types of modules whose declaration is among the problems
}

// stagedModule is a provisioned module that is not in service yet.
type stagedModule struct {
	config.Module
	ready     *modules.StagedModule
	reload    bool // it replaces a module in service
	installed bool // it is in service
}

// ApplyConfig applies a configuration, completely or not at all, with the applied items. loaded
// is the error of loading it, so that all problems are reported together.
func (a *App) ApplyConfig(ctx context.Context, cfg *config.Config, loaded error) error {
	return a.applyConfig(ctx, cfg, loaded, orgConfig(cfg), nil)
}

// Values of revive in restoreConfig.
const (
	reviveRoles  = true
	leaveDeleted = false
)

// restoreConfig applies the recorded configuration of a task, without its tokens. Of its
// roles it only creates roles that never existed. A role may have lost permissions since,
// which must not come back. With revive, roles that were deleted since become active again.
func (a *App) restoreConfig(ctx context.Context, cfg *config.Config, revive bool) error {
	s := orgConfig(cfg)
	s.KeepRoles, s.ReviveRoles = true, revive
	return a.applyConfig(ctx, cfg, nil, s, nil)
}

// applyConfig prepares and installs a configuration. Unlike reconfigure it rejects a
// configuration of which a module fails to start. It also rejects one for which check
// returns an error, unless check is nil.
func (a *App) applyConfig(ctx context.Context, cfg *config.Config, loaded error, s runtime.OrgConfig, check func(*configChange) error) error {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	_, err := a.change(ctx, changeSpec{fileConfig: cfg, loaded: loaded, org: s, strict: true, check: check})
	return err
}

// reconfigure replaces the active configuration while agents work. A mistake in the files
// rejects the change. A module that fails to start does not, unless a role needs it: the
// old module stays, or there is none. summary reports what changed, for the operator.
func (a *App) reconfigure(ctx context.Context, cfg *config.Config) (summary []string, err error) {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	return a.change(ctx, changeSpec{fileConfig: cfg, org: orgConfig(cfg)})
}

// prepare is the first phase of a change: it provisions modules, constructs models,
// toolsets and auth services, and checks them against what is registered. Nothing of it
// is visible yet.
func (a *App) prepare(ctx context.Context, cfg *config.Config, s runtime.OrgConfig) *configChange {
	ch := &configChange{cfg: cfg, orgConfig: s, restored: s.KeepRoles}
	a.stage(ctx, ch)
	ch.removed = append(ch.removed, a.announcements.conflictingServices(ch)...)
	var faults []*yamldoc.Error
	ch.models, faults = a.newModelSet(cfg)
	ch.problems = append(ch.problems, a.prepareDeclared(ch)...)
	ch.problems = append(ch.problems, a.checkGroupIDs(ch)...)
	ch.problems = append(ch.problems, a.checkServers(ch)...)
	ch.problems = append(ch.problems, faults...)
	ch.problems = append(ch.problems, a.prepareWorkspaces(ch)...)
	if ch.restored { // its tokens may have been taken back since
		return ch
	}
	var err error
	if ch.tokens, err = gatewayTokens(cfg); err != nil {
		ch.problems = append(ch.problems, cfg.ErrorAt(cfg.Gateway.Pos, "tokens", err.Error(), ""))
	}
	if files := cfg.Gateway.TLS; files.Cert != "" {
		if _, err := gateway.ReadCertificate(files.Cert, files.Key); err != nil {
			ch.problems = append(ch.problems, cfg.ErrorAt(files.Pos, "tls", err.Error(), ""))
		}
	}
	if fault := cfg.CheckApprovable(time.Now()); fault != nil {
		ch.problems = append(ch.problems, fault)
	}
	ch.issuers, faults = a.issuers.prepare(cfg, issuerServices(cfg), signInClients(cfg))
	ch.problems = append(ch.problems, faults...)
	return ch
}

// stage provisions the modules that are new or changed, concurrently. A module that fails
// is recorded in moduleErrors.
func (a *App) stage(ctx context.Context, ch *configChange) {
	made, news := a.newModules(ch)
	errs := make([]error, len(made))
	var all sync.WaitGroup
	for n := range made {
		all.Go(func() {
			made[n].ready, errs[n] = a.loader.StageLabelled(ctx, news[n], loaderLabels(ch.cfg, made[n].Module))
		})
	}
	all.Wait()
	for n, m := range made {
		if errs[n] != nil {
			ch.failedModules = append(ch.failedModules, m.Name)
			ch.moduleErrors = append(ch.moduleErrors, ch.cfg.ErrorAt(m.Pos, "module", errorReason(errs[n]), stderrTail(errs[n])))
			if m.reload {
				ch.stale = append(ch.stale, m.Name)
			}
			continue
		}
		ch.staged = append(ch.staged, m)
	}
}

// newModules constructs the modules that are to be staged and records the modules that
// the configuration no longer has.
func (a *App) newModules(ch *configChange) (made []stagedModule, news []modules.Module) {
	stays := map[string]bool{}
	for _, m := range ModulesOf(ch.cfg) {
		taken := stays[m.Name] // by a document of another kind, which constructing m reports
		stays[m.Name] = true
		old, runs := a.running[m.Name]
		if !taken && runs && old.Type == m.Type && bytes.Equal(old.Settings, m.Settings) && old.ToolsDigest == m.ToolsDigest {
			continue
		}
		if isInvalidSource(ch.cfg, m) || isDuplicate(ch.cfg, m) {
			continue // loading has reported it
		}
		module, fault := a.newModule(ch.cfg, m)
		if fault != nil {
			ch.problems = append(ch.problems, fault)
			ch.faultyModules = append(ch.faultyModules, m.Name, m.Type)
			continue
		}
		made, news = append(made, stagedModule{Module: m, reload: runs}), append(news, module)
	}
	for name := range a.running {
		if !stays[name] {
			ch.removed = append(ch.removed, name)
		}
	}
	slices.Sort(ch.removed)
	return made, news
}

// errorReason returns on one line why a module failed to start. The operator gets the
// cause, which coded errors hide from others.
func errorReason(err error) string {
	code, coded := errors.AsType[*errcode.Error](err)
	server, served := errors.AsType[*mcpclient.ServerError](err)
	text := err.Error()
	switch {
	case coded && served:
		text = code.Message + ": " + server.Err.Error()
	case coded && code.Err != nil:
		text = code.Message + ": " + code.Err.Error()
	case coded:
		text = code.Message
	case served:
		text = server.Err.Error()
	}
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// newModule constructs a module without provisioning it.
func (a *App) newModule(cfg *config.Config, m config.Module) (modules.Module, *yamldoc.Error) {
	switch m.Type {
	case kindServer:
		return a.newServerModule(cfg, m)
	case kindSource:
		return a.newSourceModule(cfg, m)
	case kindService:
		return a.newServiceModule(cfg, m)
	case kindResource:
		return a.newResourceModule(cfg, m)
	}
	if !slices.Contains(a.kinds.ListKinds(), m.Type) {
		return nil, cfg.ErrorAt(m.TypePos, "type", "this build has no module type "+strconv.Quote(m.Type), "it has "+strings.Join(a.kinds.ListKinds(), ", "))
	}
	made, err := a.kinds.NewModule(m.Type, modules.Config{Name: m.Name, Settings: m.Settings, Host: a.moduleHost(m.Name)})
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, "module", faultText(err), "")
	}
	return made, nil
}

// faultText returns the text of a fault of the configuration. Only the operator
// reads it, so an error without a code is shown and not hidden.
func faultText(err error) string {
	if errcode.CodeOf(err) == errcode.Internal {
		return err.Error()
	}
	return errcode.Message(err)
}

// discard releases what prepare made ready.
func (a *App) discard(ctx context.Context, ch *configChange) error {
	var errs []error
	for _, m := range ch.staged {
		errs = append(errs, m.ready.Discard(ctx))
	}
	for _, s := range ch.unloads {
		errs = append(errs, s.Discard(ctx))
	}
	return errors.Join(append(errs, ch.models.closeExcept(a.models.Load()))...)
}

// install is the second phase of a change: it makes a prepared configuration active.
// Groups, toolsets, roles and the limits of programs and requests change together, in one
// commit and one change of the registry. If that fails, nothing has changed. During the
// change, models of both configurations can be found by name. An auth service that
// changes accepts no token.
//
// A call in progress in a replaced module delays none of this for longer than
// drainTimeout. summary is nil if nothing was changed.
func (a *App) install(ctx context.Context, ch *configChange) (summary []string, err error) {
	if err := a.stageUnloads(ctx, ch); err != nil {
		return nil, errors.Join(err, a.discard(ctx, ch))
	}
	models, services := a.models.Load(), a.services.byName()
	a.models.Store(ch.models.union(models))
	a.services.intersect(ch.services)
	ch.orgConfig.Groups = func(tx *toolgroups.Tx) error { return a.registerGroups(tx, ch) }
	before := a.groups.CurrentSnapshot()
	ch.orgConfig.Changed = func(events []journal.Event) {
		a.changeTexts = append(describeChanges(before, events), describeWorkspaces(a.current, ch.cfg)...)
	}
	if err := a.limits.set(ch.cfg, func() error { return a.applyGroups(ch) }); err != nil {
		a.models.Store(models)
		a.services.replace(services)
		return nil, errors.Join(ch.groupError(err), a.discard(ctx, ch))
	}
	a.limits.setConnections(ch.cfg)
	errs := a.activateModules(ch)
	a.reportLostGroups()
	a.reportUnknownNames()
	a.services.replace(ch.services)
	a.bindTokens(ch)
	a.issuers.replace(ch.issuers)
	errs = append(errs, a.Tokens.ReplaceTokens(ch.tokens), a.Tokens.ReplaceIssuers(a.gatewayIssuers(ch)), a.Tokens.ReplaceNetworks(a.gatewayNetworks(ch.cfg)))
	a.models.Store(ch.models)
	a.recordings.addSecrets(modelSecrets(ch.cfg))
	a.secrets.replace(configSecrets(ch.cfg))
	a.replaceTriggers(ch)
	errs = append(errs, a.replaceNotifications(ctx, ch))
	a.current, a.fileConfig, a.restored = ch.cfg, ch.fileConfig, ch.restored
	a.setActive(ch.cfg)
	a.setItems(ch)
	a.notStarted.Store(&ch.failedModules)
	errs = append(errs, a.announcements.update(ctx, ch))
	a.brokers.disconnectInvalid()
	errs = append(errs, a.drainReplaced(ctx, ch)...)
	models.closeLater(ch.models)
	return ch.summary(), errors.Join(errs...)
}

// applyGroups makes the groups, toolsets and roles of a change active. Meanwhile no toolset is
// opened or closed by its hours.
func (a *App) applyGroups(ch *configChange) error {
	a.toolsetsMu.Lock()
	defer a.toolsetsMu.Unlock()
	if err := a.Runtime.ApplyConfig(ch.orgConfig); err != nil {
		return err
	}
	a.toolsets = ch.bound
	a.hours.notify()
	return nil
}

// summary lists what a change did to modules, for people.
func (ch *configChange) summary() []string {
	list := []string{}
	for _, m := range ch.staged {
		verb := "loaded"
		if m.reload {
			verb = "reloaded"
		}
		if m.installed {
			list = append(list, "module "+m.Name+" is "+verb)
		}
	}
	for _, name := range ch.removed {
		list = append(list, "module "+name+" is unloaded")
	}
	for _, e := range ch.moduleErrors {
		list = append(list, "a module failed to start; its predecessor, if any, stays: "+e.Error())
	}
	return list
}

// knownGroups lists the groups that will be registered after the change, toolsets apart,
// and the modules that provide some.
func (a *App) knownGroups(ch *configChange) (groups, servers []string) {
	leaves := ch.changedOwners()
	for _, m := range ch.staged {
		for _, id := range m.ready.GroupIDs() {
			groups = append(groups, string(id))
		}
		if len(m.ready.GroupIDs()) > 0 {
			servers = append(servers, m.Name)
		}
	}
	for _, one := range ch.cfg.Sources {
		if one.Invalid {
			groups, servers = append(groups, string(toolbox.GroupID(one.Name))), append(servers, toolbox.ModuleName(one.Name))
		}
	}
	s := a.groups.CurrentSnapshot()
	for _, id := range s.GroupIDs() {
		if !leaves[s.GroupOwner(id)] {
			groups = append(groups, string(id))
		}
	}
	for _, name := range s.ServerNames() {
		if !leaves[modules.OwnerOf(name)] {
			servers = append(servers, name)
		}
	}
	return groups, servers
}

// groupIDsAfter lists the groups that will be registered after the change.
func (a *App) groupIDsAfter(ch *configChange) []string {
	ids, _ := a.knownGroups(ch)
	for id := range ch.toolsets {
		ids = append(ids, string(id))
	}
	return ids
}

// checkGroupIDs returns a problem for each group id that will not be registered. At
// runtime such an id is only dangling; in a configuration it is a mistake.
func (a *App) checkGroupIDs(ch *configChange) (faults []*yamldoc.Error) {
	known := a.groupIDsAfter(ch)
	faulty, failed := ch.modulesAmong(ch.faultyModules), ch.modulesAmong(ch.failedModules)
	announces := newAnnouncePolicy(ch.cfg)
	eachGroups(ch.cfg, func(field string, g config.Groups) {
		for i, id := range g.IDs {
			listed, _ := toolgroups.GroupID(id).WholeGroup()
			whole := string(listed)
			module, _, _ := strings.Cut(strings.TrimPrefix(whole, string(mcpclient.NamedGroup(""))), "/")
			add := func(problem, hint string) { faults = append(faults, ch.cfg.ErrorAt(g.Pos(i), field, problem, hint)) }
			hint := func() string {
				return cmp.Or(partHint(whole, known), a.toolHint(ch.cfg, whole), textutil.SuggestName(whole, known))
			}
			switch {
			case slices.Contains(known, whole), a.hasAPI(ch, whole), announces.findGroup(whole) != "":
			case listed == toolgroups.DefaultGroup: // tools may be applied later
			case slices.Contains(ch.faultyModules, module), faulty != nil: // the module is the fault
			case slices.Contains(ch.failedModules, module):
				add("tool group "+id+" is missing: module "+module+" failed to start", "")
			case failed != nil:
				add("tool group "+id+" is missing: it may be one of the module "+strings.Join(failed, " or ")+", which failed to start", hint())
			default:
				add("unknown tool group "+id, hint())
			}
		}
	})
	return faults
}

// partHint returns what to write instead of an unknown part of a known group. It returns "" if id
// is not such a part.
func partHint(id string, known []string) string {
	group, _, found := strings.Cut(id, ":")
	if !found || !slices.Contains(known, group) {
		return ""
	}
	return fmt.Sprintf("did you mean %q? A group has no other part", toolgroups.GroupID(group).ReadPart())
}

// eachGroups calls use with each list of groups of a configuration and the field that has it.
func eachGroups(cfg *config.Config, use func(field string, g config.Groups)) {
	use("grant", cfg.Organization.Grant)
	use("defaultToolGroups", cfg.Organization.DefaultToolGroups)
	for _, t := range cfg.Triggers {
		use("group", t.Groups)
	}
	for _, n := range cfg.Gateway.Networks {
		use("groups", n.Groups)
	}
	for _, r := range cfg.Roles {
		use("toolGroups", r.ToolGroups)
		if r.Agent != nil {
			use("agent.defaultGroups", r.Agent.DefaultGroups)
		}
		use("grant", r.Grant)
	}
}

// modulesAmong returns the names that documents of kind module declare. Such a module may have
// groups of any id. Their ids are known only when it runs.
func (ch *configChange) modulesAmong(names []string) (list []string) {
	for _, m := range ch.cfg.Modules {
		if slices.Contains(names, m.Name) {
			list = append(list, m.Name)
		}
	}
	return list
}

// hasAPI reports whether id will be an id server/api of a module.
func (a *App) hasAPI(ch *configChange, id string) bool {
	server, api, _ := strings.Cut(id, "/")
	for _, m := range ch.staged {
		if m.Name == server && m.ready.HasAPI(api) {
			return true
		}
	}
	owner := a.groups.CurrentSnapshot().GroupOwner(toolgroups.GroupID(id))
	return owner == modules.OwnerOf(server) && !ch.changedOwners()[owner]
}

// toolHint returns what to write instead when the name of a tool is used as a group id. It returns
// "" if there is no such tool.
func (a *App) toolHint(cfg *config.Config, name string) string {
	if slices.ContainsFunc(cfg.Tools, func(t toolboxfile.DeclaredTool) bool { return t.Name == name }) {
		return "it is a tool: list it in a document of kind: toolset, and name that"
	}
	if handle, ok := a.groups.CurrentSnapshot().LookupTool(name); ok {
		return "it is a tool of the group " + string(handle.Group)
	}
	return ""
}

// checkServers returns a problem for each role that is restricted to a server without
// tools: the role would have no tool.
func (a *App) checkServers(ch *configChange) (faults []*yamldoc.Error) {
	_, known := a.knownGroups(ch)
	for _, r := range ch.cfg.Roles {
		if r.Server != "" && !slices.Contains(known, r.Server) {
			faults = append(faults, ch.cfg.ErrorAt(r.ServerPos, "server", "no module "+strconv.Quote(r.Server)+" provides tools", textutil.SuggestName(r.Server, known)))
		}
	}
	return faults
}
