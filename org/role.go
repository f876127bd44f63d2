package org

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Status says whether a role or agent is in use.
type Status string

// The states of roles and agents. The zero Status is not active.
const (
	Active     Status = "active"
	Deleted    Status = "deleted"
	Terminated Status = "terminated"
)

// Makers that are not roles, as createdBy and createdByRole have them.
const (
	CreatorRoot     = "root"
	CreatorOperator = "operator"
	CreatorConfig   = "config"
)

// RootRole is the role id and name of every task's root agent. No record has
// it: root is known by a flag, never by name or id.
const RootRole = "root"

// Role says what the agents that hold it are told and may do. The JSON names
// are those of seed 002.
type Role struct {
	ID            identity.RoleID                         `json:"id"`
	Name          string                                  `json:"name"`
	Prompt        string                                  `json:"rolePrompt"`
	CreatedBy     string                                  `json:"createdBy"`     // CreatorRoot, CreatorOperator, CreatorConfig or an agent's id
	CreatedByRole string                                  `json:"createdByRole"` // the same, or the id of the creating agent's role
	CreatedAt     time.Time                               `json:"createdAt"`
	Status        Status                                  `json:"status"`
	Model         ServiceID                               `json:"llmServiceId"`
	Use           toolgroups.Set                          `json:"toolGroups"`
	Grant         toolgroups.Set                          `json:"grant"`
	GroupOwners   map[toolgroups.GroupID]toolgroups.Owner `json:"groupOwners"`
	Revision      uint64                                  `json:"revision"`
	Limits        Limits                                  `json:"limits,omitzero"`
	Hosts         *hosts.Rule                             `json:"hosts,omitempty"` // what its agents' requests may reach; nil, as in a record without it, adds no bound to those of its makers
	Pattern       Pattern                                 `json:"pattern,omitempty"`
	ToolGated     bool                                    `json:"toolGated,omitempty"`
	Server        string                                  `json:"server,omitempty"` // confines its agents, and whom they make, to the tools this server brought
}

// Limits bound what an agent of a role may use up; zero is the default.
type Limits struct {
	Rounds int `json:"rounds,omitempty"` // model answers with calls in one turn
}

// Pattern is how an agent works. Any but Plan is to call tools as it goes.
type Pattern string

// The patterns of seed 000's agents.
const (
	React Pattern = "react"
	Plan  Pattern = "plan" // first what to call, in order; then that
)

// ServiceID names a model; "" is the organization's default and null in JSON.
type ServiceID string

// MarshalJSON implements json.Marshaler.
func (s ServiceID) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// RoleSpec asks for a role. Nil Use and Grant are left out: see CreateRole.
// Nil Hosts, ToolGated and Server bound nothing; in an update they stay, and
// hosts.Any, false and "" clear them.
type RoleSpec struct {
	Name   string
	Prompt string
	Model  string
	Use    *toolgroups.Set
	Grant  *toolgroups.Set
	Limits Limits
	Hosts  *hosts.Rule

	Pattern   Pattern // "" is React; in an update it stays
	ToolGated *bool
	Server    *string
}

// Role gives a role by id, deleted ones too.
func (o *Org) Role(id identity.RoleID) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, ok := o.roles[id]
	if !ok {
		return Role{}, false
	}
	return *r, true
}

// RoleNamed gives the active role of this exact name.
func (o *Org) RoleNamed(name string) (Role, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	r, ok := o.rolesByName[name]
	if !ok {
		return Role{}, false
	}
	return *r, true
}

// FindRole gives the active role of this id or exact name.
func (o *Org) FindRole(idOrName string) (Role, error) {
	if r, ok := o.Role(identity.RoleID(idOrName)); ok && r.Status == Active {
		return r, nil
	}
	if r, ok := o.RoleNamed(idOrName); ok {
		return r, nil
	}
	return Role{}, notFound(errcode.RoleNotFound, "role", idOrName)
}

// Roles lists the active roles, sorted by name.
func (o *Org) Roles() []Role {
	o.mu.RLock()
	defer o.mu.RUnlock()
	list := make([]Role, 0, len(o.rolesByName))
	for _, name := range slices.Sorted(maps.Keys(o.rolesByName)) {
		list = append(list, *o.rolesByName[name])
	}
	return list
}

// CreateRole makes a role for by, under the given id.
//
// Use left out is the organization's default, bounded by what by may grant;
// Grant left out is Use if that holds org_management, else nothing. Use and
// Grant must be covered by what by may grant. The same id again, or a role of
// the same name, maker and content, is returned as it is.
//
// Errors: InvalidRole, InsufficientPermissions, RoleExists.
func (o *Org) CreateRole(by identity.Principal, id identity.RoleID, spec RoleSpec) (Role, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r, ok := o.roles[id]; ok && (r.Status == Active || by.Kind == identity.Agent) {
		return *r, nil, nil
	}
	role, there, err := o.plan(by, id, spec)
	if err != nil || there {
		return role, nil, err
	}
	o.addRole(&role)
	change := o.advance()
	o.recompile(o.slots.byRoleID(id))
	o.notifyChanged()
	return role, []Change{record(KindRole, string(id), role), change}, nil
}

// UpdateRole changes what of spec is set and says who gains or loses which
// tools. With dryRun nothing changes. Name and Prompt are changed when not
// empty; the configuration leaves out Prompt, Model, Limits, Hosts, ToolGated
// and Server to empty them.
//
// Errors: RoleNotFound, InvalidRole, InsufficientPermissions, RoleExists,
// Conflict for a role that the configuration makes.
func (o *Org) UpdateRole(by identity.Principal, id identity.RoleID, spec RoleSpec, dryRun bool) (Role, Diff, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, maker, err := o.changeable(by, id)
	if err != nil {
		return Role{}, nil, nil, err
	}
	next, err := o.revise(maker, old, spec)
	if err != nil {
		return Role{}, nil, nil, err
	}
	diff, changes := o.replaceRole(old, next, dryRun)
	return *next, diff, changes, nil
}

// DeleteRole takes a role out of use: its agents, and the roles they made,
// lose everything. Errors as UpdateRole.
func (o *Org) DeleteRole(by identity.Principal, id identity.RoleID, dryRun bool) (Diff, []Change, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	old, _, err := o.changeable(by, id)
	if err != nil {
		return nil, nil, err
	}
	next := *old
	next.Status, next.Revision = Deleted, old.Revision+1
	diff, changes := o.replaceRole(old, &next, dryRun)
	return diff, changes, nil
}

// changeable finds an active role by may change: only its maker's kind does.
func (o *Org) changeable(by identity.Principal, id identity.RoleID) (*Role, grantor, error) {
	m, err := o.grantor(by)
	if err != nil {
		return nil, m, err
	}
	old, ok := o.roles[id]
	switch {
	case !ok || old.Status != Active:
		return nil, m, notFound(errcode.RoleNotFound, "role", string(id))
	case by.Kind != identity.Operator && by.Kind != identity.Configuration:
		return nil, m, errcode.New(errcode.InsufficientPermissions, "change role %q: agents create roles, only the operator changes them", old.Name)
	case (old.CreatedBy == CreatorConfig) != (m.name == CreatorConfig):
		return nil, m, errcode.New(errcode.Conflict, "change role %q: the configuration makes it; change it in the file", old.Name)
	}
	return old, m, nil
}

// over completes what s leaves out by what a role is.
func (s RoleSpec) over(old *Role) RoleSpec {
	return RoleSpec{
		Name: cmp.Or(s.Name, old.Name), Prompt: cmp.Or(s.Prompt, old.Prompt), Model: cmp.Or(s.Model, string(old.Model)),
		Use: cmp.Or(s.Use, &old.Use), Grant: cmp.Or(s.Grant, &old.Grant), Limits: cmp.Or(s.Limits, old.Limits), Hosts: cmp.Or(s.Hosts, old.Hosts),
		Pattern: cmp.Or(s.Pattern, old.Pattern), ToolGated: cmp.Or(s.ToolGated, &old.ToolGated), Server: cmp.Or(s.Server, &old.Server),
	}
}

// revise gives old changed by spec.
func (o *Org) revise(maker grantor, old *Role, spec RoleSpec) (*Role, error) {
	merged := spec.over(old)
	if maker.name == CreatorConfig { // says all there is: what it leaves out is gone
		merged.Prompt, merged.Model, merged.Limits, merged.Hosts = spec.Prompt, spec.Model, spec.Limits, spec.Hosts
		merged.Pattern, merged.ToolGated, merged.Server = spec.Pattern, spec.ToolGated, spec.Server
	}
	next, err := o.newRole(maker, old.ID, merged)
	if err != nil {
		return nil, err
	}
	if other, ok := o.rolesByName[next.Name]; ok && other.ID != old.ID {
		return nil, errcode.New(errcode.RoleExists, "rename role %q to %q: a role of this name exists", old.Name, next.Name)
	}
	next.GroupOwners = rebindOwners(old, next, spec)
	next.CreatedBy, next.CreatedByRole, next.CreatedAt = old.CreatedBy, old.CreatedByRole, old.CreatedAt
	next.Revision = old.Revision + 1
	return next, nil
}

// rebindOwners gives the owners of a changed role's groups: those the change names
// are bound anew, the others stay bound to whom they were.
func rebindOwners(old, next *Role, spec RoleSpec) map[toolgroups.GroupID]toolgroups.Owner {
	owners := maps.Clone(old.GroupOwners)
	if owners == nil {
		owners = map[toolgroups.GroupID]toolgroups.Owner{}
	}
	for _, named := range []*toolgroups.Set{spec.Use, spec.Grant} {
		if named == nil {
			continue
		}
		for _, id := range named.IDs() {
			delete(owners, id)
			if owner, ok := next.GroupOwners[id]; ok {
				owners[id] = owner
			}
		}
	}
	maps.DeleteFunc(owners, func(id toolgroups.GroupID, _ toolgroups.Owner) bool {
		return !slices.Contains(next.Use.IDs(), id) && !slices.Contains(next.Grant.IDs(), id)
	})
	return owners
}

func (o *Org) replaceRole(old, next *Role, dryRun bool) (Diff, []Change) {
	affected := o.slots.byRoleID(old.ID)
	diff := o.diff(affected, next)
	if dryRun {
		return diff, nil
	}
	delete(o.rolesByName, old.Name)
	o.addRole(next)
	change := o.advance()
	o.recompile(affected)
	o.notifyChanged()
	return diff, []Change{record(KindRole, string(next.ID), next), change}
}

func (o *Org) addRole(r *Role) {
	o.roles[r.ID] = r
	if r.Status == Active {
		o.rolesByName[r.Name] = r
	}
}

// newRole checks a specification against what maker may grant.
func (o *Org) newRole(maker grantor, id identity.RoleID, spec RoleSpec) (*Role, error) {
	if err := CheckRoleName(spec.Name); err != nil {
		return nil, err
	}
	if spec.Pattern != "" && spec.Pattern != React && spec.Pattern != Plan {
		return nil, errcode.New(errcode.InvalidRole, "role %q: pattern %q is unknown; there are react and plan", spec.Name, spec.Pattern)
	}
	if err := checkServer(spec); err != nil {
		return nil, err
	}
	use, grant := o.resolveGrants(maker, spec)
	for _, id := range append(use.IDs(), grant.IDs()...) {
		if err := toolgroups.CheckID(id); err != nil {
			return nil, errcode.New(errcode.InvalidRole, "role %q: %s", spec.Name, errcode.Message(err))
		}
	}
	if err := maker.checkGrant(spec.Name, use, grant); err != nil {
		return nil, err
	}
	owners := o.bind(use).Owners
	maps.Copy(owners, o.bind(grant).Owners)
	return &Role{
		ID: id, Name: spec.Name, Prompt: spec.Prompt, Model: ServiceID(spec.Model), Limits: spec.Limits, Hosts: bound(spec.Hosts), Pattern: spec.Pattern, ToolGated: deref(spec.ToolGated), Server: deref(spec.Server),
		CreatedBy: maker.name, CreatedByRole: maker.role, CreatedAt: o.config.Now().UTC(),
		Status: Active, Use: use, Grant: grant, GroupOwners: owners, Revision: 1,
	}, nil
}

// resolveGrants completes what a specification leaves out.
func (o *Org) resolveGrants(maker grantor, spec RoleSpec) (use, grant toolgroups.Set) {
	if spec.Use != nil {
		use = *spec.Use
	} else {
		use = o.defaultGroups
		for _, limit := range maker.grants {
			use = use.Intersect(limit.Set)
		}
	}
	switch {
	case spec.Grant != nil:
		grant = *spec.Grant
	case use.Has(toolgroups.OrgManagement):
		grant = use
	}
	return use, grant
}

// same says whether other asks for what r is.
func (r *Role) same(other *Role) bool {
	return r.CreatedBy == other.CreatedBy && r.CreatedByRole == other.CreatedByRole &&
		r.Prompt == other.Prompt && r.Model == other.Model && r.Limits == other.Limits && r.hosts().Equal(other.hosts()) &&
		r.Pattern == other.Pattern && r.ToolGated == other.ToolGated && r.Server == other.Server &&
		r.Use.Equal(other.Use) && r.Grant.Equal(other.Grant)
}

// Is says whether a role is what a complete specification asks for.
func (r *Role) Is(s RoleSpec) bool {
	return r.Name == s.Name && r.Prompt == s.Prompt && string(r.Model) == s.Model && r.Limits == s.Limits && r.hosts().Equal(hostsOf(s.Hosts)) &&
		r.Pattern == s.Pattern && r.ToolGated == deref(s.ToolGated) && r.Server == deref(s.Server) &&
		r.Use.Equal(*s.Use) && r.Grant.Equal(*s.Grant)
}

// use is what a role's agents may use, as a limit.
func (r *Role) use(rule string) constraint { return r.limit(r.Use, rule) }

// grant is what a role's agents may give, as a limit: nobody they make reaches
// a host or a server that they may not reach themselves, or is free to answer
// from elsewhere than tools when they are not.
func (r *Role) grant(rule string) constraint { return r.limit(r.Grant, rule) }

// limit bounds by a set of a role's. A role that is no longer there lets
// nothing through, and gates whom it gated.
func (r *Role) limit(set toolgroups.Set, rule string) constraint {
	if r.Status != Active {
		return constraint{toolGated: r.ToolGated, reason: "role " + r.Name + " is gone"}
	}
	l := constraint{
		BoundSet: toolgroups.BoundSet{Set: set, Owners: r.GroupOwners},
		Hosts:    r.hosts(), toolGated: r.ToolGated, reason: rule,
	}
	if r.Server != "" {
		l.Only, l.serverReason = toolgroups.Server(r.Server), "the server "+r.Server+" of role "+r.Name
	}
	return l
}

// checkServer refuses a server that cannot be.
func checkServer(spec RoleSpec) error {
	if spec.Server == nil || *spec.Server == "" {
		return nil
	}
	if err := tool.CheckName(*spec.Server); err != nil {
		return errcode.New(errcode.InvalidRole, "role %q: server: %s", spec.Name, strings.TrimPrefix(err.Error(), "tool "))
	}
	return nil
}

// deref gives what may have been left out.
func deref[T any](v *T) (value T) {
	if v != nil {
		value = *v
	}
	return value
}
