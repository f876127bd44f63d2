package runtime

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// OrgConfig is the operator's configuration of the organization. Zero values
// mean the defaults of Config.
type OrgConfig struct {
	RootPrompt string
	Default    *toolgroups.Set // tool groups of roles created without any; nil means all groups
	Rounds     int
	Storage    Storage
	Budget     Budget
	Roles      []org.RoleSpec
	KeepRoles  bool // keep existing roles as they are; Roles only adds the missing ones
}

// settings is the configuration without its roles. It is immutable.
type settings struct {
	RootPrompt string
	Rounds     int
	Storage    Storage
	Budget     Budget
}

// settingsFor returns the settings for s, with the defaults of c.
func (c *Config) settingsFor(s OrgConfig) *settings {
	return &settings{
		RootPrompt: cmp.Or(s.RootPrompt, c.RootPrompt),
		Rounds:     cmp.Or(s.Rounds, c.Rounds),
		Storage:    s.Storage.orDefault(c.Storage),
		Budget:     cmp.Or(s.Budget, c.Budget),
	}
}

// CheckConfig reports the error that Configure would return, without changing
// anything.
func (rt *Runtime) CheckConfig(s OrgConfig) error {
	return rt.checkRoles(rt.rolesToApply(s), s.defaultGroups())
}

// Configure replaces the active configuration. Roles of the previous
// configuration that are missing in s are deleted; those of s are created or
// updated. Active agents continue under the new configuration: calls that have
// started end normally, later calls are decided by it. A rejected configuration
// changes nothing.
//
// Errors: those of org.CreateRole and org.UpdateRole, with the role's name.
func (rt *Runtime) Configure(s OrgConfig) error {
	rt.configureMu.Lock()
	defer rt.configureMu.Unlock()
	defaults, specs := s.defaultGroups(), rt.rolesToApply(s)
	if err := rt.checkRoles(specs, defaults); err != nil {
		return err
	}
	if !s.KeepRoles { // remove permissions before adding any
		if err := rt.deleteRolesExcept(specs); err != nil {
			return err
		}
	}
	rt.settings.Store(rt.config.settingsFor(s))
	rt.org.SetDefault(defaults)
	for _, spec := range specs {
		if err := rt.applyRole(spec, defaults); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	return nil
}

// defaultGroups returns the tool groups of roles that name none.
func (s OrgConfig) defaultGroups() toolgroups.Set {
	if s.Default == nil {
		return toolgroups.All()
	}
	return *s.Default
}

// rolesToApply returns the roles that must match s.
func (rt *Runtime) rolesToApply(s OrgConfig) []org.RoleSpec {
	if !s.KeepRoles {
		return s.Roles
	}
	return slices.DeleteFunc(slices.Clone(s.Roles), func(spec org.RoleSpec) bool {
		_, there := rt.org.RoleNamed(spec.Name)
		return there
	})
}

// checkRoles checks that all roles can be created or updated, before any change
// is made.
func (rt *Runtime) checkRoles(specs []org.RoleSpec, fallback toolgroups.Set) error {
	for _, spec := range specs {
		if err := rt.checkRole(withDefaults(spec, fallback)); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	return nil
}

// checkRole checks one role.
func (rt *Runtime) checkRole(spec org.RoleSpec) error {
	old, ok := rt.org.RoleNamed(spec.Name)
	if !ok || old.CreatedBy != org.CreatorConfig {
		_, err := rt.org.PlanRole(byConfig, spec)
		return err
	}
	_, _, _, err := rt.org.UpdateRole(byConfig, old.ID, spec, true)
	return err
}

// byConfig is the principal of changes made by the configuration.
var byConfig = identity.Principal{Kind: identity.Configuration}

// applyRole creates or updates one role.
func (rt *Runtime) applyRole(spec org.RoleSpec, fallback toolgroups.Set) error {
	spec = withDefaults(spec, fallback)
	old, ok := rt.org.RoleNamed(spec.Name)
	if !ok || old.CreatedBy != org.CreatorConfig {
		_, err := rt.CreateRole(context.Background(), tool.Call{By: byConfig}, spec)
		return err
	}
	if old.Matches(spec) {
		return nil
	}
	_, _, err := rt.UpdateRole(byConfig, old.ID, spec, false)
	return err
}

// withDefaults fills in the defaults, so that a role can be compared with its
// stored form.
func withDefaults(spec org.RoleSpec, fallback toolgroups.Set) org.RoleSpec {
	if spec.Use == nil {
		spec.Use = &fallback
	}
	if spec.Grant == nil {
		spec.Grant = &toolgroups.Set{}
		if spec.Use.Has(toolgroups.OrgManagement) {
			spec.Grant = spec.Use
		}
	}
	return spec
}

// deleteRolesExcept deletes the roles of the configuration that are not in keep.
func (rt *Runtime) deleteRolesExcept(keep []org.RoleSpec) error {
	for _, role := range rt.org.ListRoles() {
		if role.CreatedBy != org.CreatorConfig || slices.ContainsFunc(keep, func(s org.RoleSpec) bool { return s.Name == role.Name }) {
			continue
		}
		if _, err := rt.DeleteRole(byConfig, role.ID, false); err != nil {
			return fmt.Errorf("delete role %q, which is no longer configured: %w", role.Name, err)
		}
	}
	return nil
}

// advanceEpoch advances the epoch once per process that runs agents, since the
// registered tools may differ from those of the previous process.
func (rt *Runtime) advanceEpoch() error {
	rt.advanceMu.Lock()
	defer rt.advanceMu.Unlock()
	if rt.advanced {
		return nil
	}
	_, err := rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		b.Put = storeRecords(rt.org.Advance())
		return nil
	}})
	rt.advanced = err == nil
	return err
}
