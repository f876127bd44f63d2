package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// checkStaleModules returns a problem for each role that would gain groups of a module
// whose replacement failed to start. The role would get the old module's tools, which
// neither configuration gives it.
func (a *App) checkStaleModules(ch *configChange) (faults []*config.Error) {
	for _, name := range ch.stale {
		for _, role := range a.rolesGaining(ch, name) {
			at := slices.IndexFunc(ch.cfg.Roles, func(r config.Role) bool { return r.Name == role })
			if at >= 0 {
				faults = append(faults, ch.cfg.Fault(ch.cfg.Roles[at].Pos, "role", fmt.Sprintf("%q would gain groups of the old module %q: the new one failed to start", role, name), ""))
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
		now, _ := a.Runtime.Org().RoleNamed(spec.Name)
		for _, id := range groups {
			if spec.Server != nil && *spec.Server != "" && *spec.Server != module {
				continue
			}
			if use.Has(id) && !hasGroup(now, now.Use, id, module) || grant.Has(id) && !hasGroup(now, now.Grant, id, module) {
				roles = append(roles, spec.Name)
				break
			}
		}
	}
	return roles
}

// configuredSets returns the groups that a role of a configuration may use and grant, with
// the defaults of runtime.OrgConfig.
func configuredSets(spec org.RoleSpec, preset *toolgroups.Set) (use, grant toolgroups.Set) {
	switch {
	case spec.Use != nil:
		use = *spec.Use
	case preset != nil:
		use = *preset
	default:
		use = toolgroups.All()
	}
	switch {
	case spec.Grant != nil:
		grant = *spec.Grant
	case use.Has(toolgroups.OrgManagement):
		grant = use
	}
	return use, grant
}

// hasGroup reports whether a set of a role contains a module's group.
func hasGroup(role org.Role, set toolgroups.Set, id toolgroups.GroupID, module string) bool {
	return set.Has(id) && (set.IsAll() || role.GroupOwners[id] == modules.OwnerOf(module)) &&
		(role.Server == "" || role.Server == module)
}

// unloadStale unloads a module that could not be replaced if roles are about to gain its
// groups. A source is always unloaded, because toolsets of the new configuration refer
// to its tools. note is what to add to the error, "" if the module stays.
func (a *App) unloadStale(ctx context.Context, ch *configChange, m stagedModule) (note string, err error) {
	roles := a.rolesGaining(ch, m.Name)
	switch {
	case !m.reload || len(roles) == 0 && m.Type != kindSource:
		return "", nil
	case len(roles) > 0:
		note = " because these roles would gain its groups: " + strings.Join(roles, ", ")
	}
	delete(a.running, m.Name)
	return "; the old module is unloaded" + note, a.unload(ctx, m.Name)
}
