package runtime

import (
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

// Setup is what the operator's configuration says about the organization.
// Nil Default is all groups; a zero limit is the Runtime's own.
type Setup struct {
	RootPrompt string
	Default    *toolgroups.Set // toolGroups of roles created without
	Rounds     int
	Storage    Storage
	Budget     Budget
	Roles      []org.RoleSpec
	KeepRoles  bool // roles that are there stay as they are; Roles only fills in those that are missing
}

// Configure puts a configuration in force: its roles are made or changed, and
// roles of an earlier configuration that are no more in it are deleted. It is
// called before Start and Resume, and not beside them. Errors: those of org.CreateRole and
// org.UpdateRole, with the role's name.
func (rt *Runtime) Configure(s Setup) error {
	rt.config.RootPrompt = s.RootPrompt
	if s.Rounds > 0 {
		rt.config.Rounds = s.Rounds
	}
	rt.config.Storage = s.Storage.or(rt.config.Storage)
	if s.Budget != (Budget{}) {
		rt.config.Budget = s.Budget
	}
	if s.Default == nil {
		all := toolgroups.All()
		s.Default = &all
	}
	rt.org.SetDefault(*s.Default)
	if s.KeepRoles {
		s.Roles = slices.DeleteFunc(slices.Clone(s.Roles), func(spec org.RoleSpec) bool {
			_, there := rt.org.RoleNamed(spec.Name)
			return there
		})
	}
	if err := rt.planRoles(s.Roles, *s.Default); err != nil {
		return err
	}
	named := map[string]bool{}
	for _, spec := range s.Roles {
		named[spec.Name] = true
		if err := rt.configureRole(spec, *s.Default); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	if s.KeepRoles {
		return nil
	}
	return rt.dropRoles(named)
}

// planRoles refuses a configuration one of whose roles cannot be made, before
// any of it is in force.
func (rt *Runtime) planRoles(specs []org.RoleSpec, fallback toolgroups.Set) error {
	for _, spec := range specs {
		if old, ok := rt.org.RoleNamed(spec.Name); ok && old.CreatedBy == org.ByConfig {
			continue
		}
		if _, err := rt.org.PlanRole(byConfig, completed(spec, fallback)); err != nil {
			return fmt.Errorf("configure role %q: %w", spec.Name, err)
		}
	}
	return nil
}

var byConfig = identity.Principal{Kind: identity.Configuration}

// configureRole makes a role what the configuration says.
func (rt *Runtime) configureRole(spec org.RoleSpec, fallback toolgroups.Set) error {
	spec = completed(spec, fallback)
	old, ok := rt.org.RoleNamed(spec.Name)
	if !ok || old.CreatedBy != org.ByConfig {
		_, err := rt.CreateRole(context.Background(), tool.Call{By: byConfig}, spec)
		return err
	}
	if old.Is(spec) {
		return nil
	}
	_, _, err := rt.UpdateRole(byConfig, old.ID, spec, false)
	return err
}

// completed fills in what a configuration leaves out, so that it can be compared.
func completed(spec org.RoleSpec, fallback toolgroups.Set) org.RoleSpec {
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

func (rt *Runtime) dropRoles(keep map[string]bool) error {
	for _, role := range rt.org.Roles() {
		if role.CreatedBy != org.ByConfig || keep[role.Name] {
			continue
		}
		if _, err := rt.DeleteRole(byConfig, role.ID, false); err != nil {
			return fmt.Errorf("delete role %q, which the configuration no longer has: %w", role.Name, err)
		}
	}
	return nil
}

// Keep stores content under its hash, once, and gives the hash.
func (rt *Runtime) Keep(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	rt.blobs.keep(hash)
	_, err := rt.commit(&journal.Batch{Put: []journal.Record{{Kind: kindBlob, Key: hash, Value: content}}})
	return hash, err
}

// Kept gives what Keep stored.
func (rt *Runtime) Kept(ctx context.Context, hash string) ([]byte, error) {
	content, err := rt.store.Record(ctx, kindBlob, hash)
	if err == nil && content == nil {
		return nil, errcode.New(errcode.ArtifactNotFound, "there is no stored content %q", hash)
	}
	return content, err
}

// advance moves the epoch once in the life of a process that runs agents:
// what the registry holds may differ from the process before.
func (rt *Runtime) advance() error {
	rt.began.Lock()
	defer rt.began.Unlock()
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
