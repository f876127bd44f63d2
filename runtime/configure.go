package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// OrgConfig is what the operator's configuration says about the organization.
// Nil Default is all groups; a zero limit is the Runtime's own.
type OrgConfig struct {
	RootPrompt string
	Default    *toolgroups.Set // toolGroups of roles created without
	Rounds     int
	Storage    Storage
	Budget     Budget
	Roles      []org.RoleSpec
	KeepRoles  bool // roles that are there stay as they are; Roles only fills in those that are missing
}

// settings is what a configuration says beside roles. A value never changes.
type settings struct {
	RootPrompt string
	Rounds     int
	Storage    Storage
	Budget     Budget
}

// rules gives what is in force under s; what s leaves out is as the Runtime was
// made.
func (c *Config) rules(s OrgConfig) *settings {
	return &settings{
		RootPrompt: cmp.Or(s.RootPrompt, c.RootPrompt),
		Rounds:     cmp.Or(s.Rounds, c.Rounds),
		Storage:    s.Storage.or(c.Storage),
		Budget:     cmp.Or(s.Budget, c.Budget),
	}
}

// Plan says whether Configure would refuse s, and changes nothing.
func (rt *Runtime) Plan(s OrgConfig) error {
	return rt.planRoles(rt.wanted(s), s.preset())
}

// Configure puts a configuration in force, in the place of the one before: roles
// of that which are no more in it are deleted, and its own are made or changed.
// Agents at work go on under it: calls that were recorded as started end as they
// would have, what comes after is decided anew. One that is refused changes
// nothing. Errors: those of org.CreateRole and org.UpdateRole, with the role's
// name.
func (rt *Runtime) Configure(s OrgConfig) error {
	rt.configureMu.Lock()
	defer rt.configureMu.Unlock()
	preset, specs := s.preset(), rt.wanted(s)
	if err := rt.planRoles(specs, preset); err != nil {
		return err
	}
	if !s.KeepRoles { // before others get more
		if err := rt.dropRoles(specs); err != nil {
			return err
		}
	}
	rt.rules.Store(rt.config.rules(s))
	rt.org.SetDefault(preset)
	for _, spec := range specs {
		if err := rt.configureRole(spec, preset); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	return nil
}

// preset gives the tool groups of roles that name none.
func (s OrgConfig) preset() toolgroups.Set {
	if s.Default == nil {
		return toolgroups.All()
	}
	return *s.Default
}

// wanted gives the roles that are to be as s says.
func (rt *Runtime) wanted(s OrgConfig) []org.RoleSpec {
	if !s.KeepRoles {
		return s.Roles
	}
	return slices.DeleteFunc(slices.Clone(s.Roles), func(spec org.RoleSpec) bool {
		_, there := rt.org.RoleNamed(spec.Name)
		return there
	})
}

// planRoles refuses a configuration one of whose roles cannot be made, before
// any of it is in force.
func (rt *Runtime) planRoles(specs []org.RoleSpec, fallback toolgroups.Set) error {
	for _, spec := range specs {
		if err := rt.planRole(withDefaults(spec, fallback)); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	return nil
}

func (rt *Runtime) planRole(spec org.RoleSpec) error {
	old, ok := rt.org.RoleNamed(spec.Name)
	if !ok || old.CreatedBy != org.CreatorConfig {
		_, err := rt.org.PlanRole(byConfig, spec)
		return err
	}
	_, _, _, err := rt.org.UpdateRole(byConfig, old.ID, spec, true)
	return err
}

var byConfig = identity.Principal{Kind: identity.Configuration}

// configureRole makes a role what the configuration says.
func (rt *Runtime) configureRole(spec org.RoleSpec, fallback toolgroups.Set) error {
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

// withDefaults fills in what a configuration leaves out, so that it can be compared.
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

func (rt *Runtime) dropRoles(keep []org.RoleSpec) error {
	for _, role := range rt.org.Roles() {
		if role.CreatedBy != org.CreatorConfig || slices.ContainsFunc(keep, func(s org.RoleSpec) bool { return s.Name == role.Name }) {
			continue
		}
		if _, err := rt.DeleteRole(byConfig, role.ID, false); err != nil {
			return fmt.Errorf("delete role %q, which the configuration no longer has: %w", role.Name, err)
		}
	}
	return nil
}

// PutBlob stores content under its hash, once, and gives the hash.
func (rt *Runtime) PutBlob(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	rt.blobs.keep(hash)
	_, err := rt.commit(&journal.Batch{Put: []journal.Record{{Kind: kindBlob, Key: hash, Value: content}}})
	return hash, err
}

// Blob gives what Keep stored.
func (rt *Runtime) Blob(ctx context.Context, hash string) ([]byte, error) {
	content, err := rt.store.Record(ctx, kindBlob, hash)
	if err == nil && content == nil {
		return nil, errcode.New(errcode.ArtifactNotFound, "there is no stored content %q", hash)
	}
	return content, err
}

// advance moves the epoch once in the life of a process that runs agents:
// what the registry holds may differ from the process before.
func (rt *Runtime) advance() error {
	rt.advanceMu.Lock()
	defer rt.advanceMu.Unlock()
	if rt.advanced {
		return nil
	}
	_, err := rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		b.Put = records(rt.org.Advance())
		return nil
	}})
	rt.advanced = err == nil
	return err
}
