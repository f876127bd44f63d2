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

// staleModuleErrors finds roles that a change gives groups of modules which stay as
// they were, because the new ones did not come up: neither configuration gives
// anybody those.
func (a *App) staleModuleErrors(ch *configChange) (faults []*config.Error) {
	for _, name := range ch.stale {
		for _, role := range a.rolesGaining(ch, name) {
			at := slices.IndexFunc(ch.cfg.Roles, func(r config.Role) bool { return r.Name == role })
			if at >= 0 {
				faults = append(faults, ch.cfg.Fault(ch.cfg.Roles[at].Pos, "role", fmt.Sprintf("%q would get groups of module %q as it was: the new one does not come up", role, name), ""))
			}
		}
	}
	return faults
}

// rolesGaining names the roles that would get, or may give, more of the groups of a
// module that runs than they do now.
func (a *App) rolesGaining(ch *configChange, module string) (roles []string) {
	groups, _ := a.loader.GroupsOf(module)
	for _, spec := range ch.setup.Roles {
		use, grant := wanted(spec, ch.setup.Default)
		now, _ := a.Runtime.Org().RoleNamed(spec.Name)
		for _, id := range groups {
			if spec.Server != nil && *spec.Server != "" && *spec.Server != module {
				continue
			}
			if use.Has(id) && !has(now, now.Use, id, module) || grant.Has(id) && !has(now, now.Grant, id, module) {
				roles = append(roles, spec.Name)
				break
			}
		}
	}
	return roles
}

// wanted gives what a role of a configuration may use and grant, as
// runtime.OrgConfig says it.
func wanted(spec org.RoleSpec, preset *toolgroups.Set) (use, grant toolgroups.Set) {
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

// has says whether a set of a role lets a module's group through.
func has(role org.Role, set toolgroups.Set, id toolgroups.GroupID, module string) bool {
	return set.Has(id) && (set.IsAll() || role.GroupOwners[id] == modules.Owner(module)) &&
		(role.Server == "" || role.Server == module)
}

// unloadStale unloads a module that could not be replaced when roles are about to
// get what it has: they get nothing in its stead. A source is always, since
// toolsets hold what it has. It gives what there is to tell.
func (a *App) unloadStale(ctx context.Context, ch *configChange, m staged) (told string, err error) {
	roles := a.rolesGaining(ch, m.Name)
	switch {
	case !m.reload || len(roles) == 0 && m.Type != kindSource:
		return "", nil
	case len(roles) > 0:
		told = ", for these would get its groups: " + strings.Join(roles, ", ")
	}
	delete(a.running, m.Name)
	return "; the one before is unloaded" + told, a.unload(ctx, m.Name)
}
