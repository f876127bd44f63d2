package app

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// checkStaleModules returns a problem for each role that would gain groups of a module
// whose replacement failed to start. The role would get the old module's tools, which
// neither configuration grants it.
func (a *App) checkStaleModules(ch *configChange) (faults []*yamldoc.Error) {
	for _, name := range ch.stale {
		if a.rootGains(ch, name) {
			at := cmp.Or(ch.cfg.Organization.Grant.Pos(0), ch.cfg.Organization.Pos)
			faults = append(faults, ch.cfg.ErrorAt(at, "grant", fmt.Sprintf("would let root grant groups of the old module %q: the new one failed to start", name), ""))
		}
		for _, role := range a.rolesGaining(ch, name) {
			at := slices.IndexFunc(ch.cfg.Roles, func(r config.Role) bool { return r.Name == role })
			if at >= 0 {
				faults = append(faults, ch.cfg.ErrorAt(ch.cfg.Roles[at].Pos, "role", fmt.Sprintf("%q would gain groups of the old module %q: the new one failed to start", role, name), ""))
			}
		}
	}
	return faults
}

// rolesGaining lists the roles that would use or grant more groups of a module in service
// than they do now.
func (a *App) rolesGaining(ch *configChange, module string) (roles []string) {
	groups, _ := a.loader.GroupsOf(module)
	for _, spec := range ch.orgConfig.Roles {
		use, grant := configuredSets(spec, ch.orgConfig.Default)
		now, _ := a.Runtime.Org().ConfiguredRole(spec.Name)
		for _, id := range groups {
			if spec.Server != nil && *spec.Server != "" && *spec.Server != module {
				continue
			}
			if gainsPart(id, use, roleHolds(now, now.Use, module)) || gainsPart(id, grant, roleHolds(now, now.Grant, module)) {
				roles = append(roles, spec.Name)
				break
			}
		}
	}
	return roles
}

// rootGains reports whether root could grant more groups of a module in service than now.
func (a *App) rootGains(ch *configChange, module string) bool {
	groups, _ := a.loader.GroupsOf(module)
	now := a.Runtime.Org().RootGrant()
	next := toolgroups.AllGroups()
	if ch.orgConfig.Grant != nil {
		next = *ch.orgConfig.Grant
	}
	return slices.ContainsFunc(groups, func(id toolgroups.GroupID) bool {
		return gainsPart(id, next, func(id toolgroups.GroupID) bool {
			return now.Set.IsAll() || now.Set.Has(id) && now.Owners[id] == modules.OwnerOf(module)
		})
	})
}

// gainsPart reports whether a set lists a group that is not held, or its read part while neither
// the part nor the group is held. holds looks at listed ids only.
func gainsPart(id toolgroups.GroupID, next toolgroups.GroupSet, holds func(toolgroups.GroupID) bool) bool {
	return !holds(id) && (next.Has(id) || next.Has(id.ReadPart()) && !holds(id.ReadPart()))
}

// configuredSets returns the groups that a role of a configuration may use and grant, with
// the defaults of runtime.OrgConfig.
func configuredSets(spec org.RoleSpec, preset *toolgroups.GroupSet) (use, grant toolgroups.GroupSet) {
	switch {
	case spec.Use != nil:
		use = *spec.Use
	case preset != nil:
		use = *preset
	default:
		use = toolgroups.AllGroups()
	}
	switch {
	case spec.Grant != nil:
		grant = *spec.Grant
	case use.Has(toolgroups.OrgManagement):
		grant = use
	}
	return use, grant
}

// roleHolds returns a function that reports whether a set of a role contains a module's group.
func roleHolds(role org.Role, set toolgroups.GroupSet, module string) func(toolgroups.GroupID) bool {
	return func(id toolgroups.GroupID) bool {
		return set.Has(id) && (set.IsAll() || role.GroupOwners[id] == modules.OwnerOf(module)) &&
			(role.Server == "" || role.Server == module)
	}
}
