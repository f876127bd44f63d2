package org

import (
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// rootGrantKey is the key of the record of KindMeta that holds what root may grant. There is no
// record while root may grant everything.
const rootGrantKey = "rootGrant"

// rootRoleFor returns the role of root with what it may grant. It is never stored as a
// role, and uses nothing: what root uses does not come from a role.
func rootRoleFor(grant toolgroups.PinnedSet) *Role {
	return &Role{ID: RootRole, Name: RootRole, Status: Active, Grant: grant.Set, GroupOwners: grant.Owners}
}

// unlimitedRoot returns the role of a root that may grant everything.
func unlimitedRoot() *Role { return rootRoleFor(toolgroups.PinnedSet{Set: toolgroups.AllGroups()}) }

// rootLimits returns the limit on what root may grant, none if it may grant everything.
func rootLimits(find roleLookup) []constraint {
	root, ok := find(RootRole)
	if !ok {
		return []constraint{denyAll("it is unknown what root may grant")}
	}
	if root.Grant.IsAll() {
		return nil
	}
	return []constraint{root.grantLimit("what the organization lets root grant").as(LimitRootGrant)}
}

// grantsNothing reports whether root may grant no group, so that it creates no roles.
func (r *Role) grantsNothing() bool { return !r.Grant.IsAll() && len(r.Grant.GroupIDs()) == 0 }

// planRootGrant sets what root may grant in the current roleIndex. Groups stay pinned to
// their owners unless the list changes. It returns the change, none if nothing changes.
func (o *Org) planRootGrant(set toolgroups.GroupSet) []RoleEdit {
	if set.Equal(o.root.Grant) {
		return nil
	}
	pinned, rules := o.pinOwners(set), o.root.Approval
	o.root = rootRoleFor(pinned)
	o.root.Approval = rules
	stored := newRecord(KindMeta, rootGrantKey, pinned)
	if set.IsAll() {
		stored.Value = nil
	}
	return []RoleEdit{{Role: *o.root, Change: roleUpdated, Records: []RecordChange{stored}}}
}

// loadRootGrant reads what root may grant. If the record cannot be read, or may be one of
// those whose keys are lost, root may grant nothing.
func (o *Org) loadRootGrant(source RecordSource) {
	for r, err := range source.Records(string(KindMeta)) {
		switch {
		case r.Key == rootGrantKey:
			o.root = rootRoleFor(decodeRootGrant(r, err))
			return
		case r.Key == "" && err != nil:
			o.root = rootRoleFor(toolgroups.PinnedSet{})
		}
	}
}

// decodeRootGrant returns the set in a record, the empty set if the record cannot be read.
func decodeRootGrant(r StoredRecord, err error) (grant toolgroups.PinnedSet) {
	if err != nil || json.Unmarshal(r.Value, &grant) != nil {
		return toolgroups.PinnedSet{}
	}
	return grant
}

// RootGrant returns what root may grant, pinned to the owners that the groups had when the
// configuration was written.
func (o *Org) RootGrant() toolgroups.PinnedSet {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return toolgroups.PinnedSet{Set: o.root.Grant, Owners: o.root.GroupOwners}
}

// grantorFor returns p as the grantor of a role that it spawns agents of. Root may spawn agents of
// a declared role even if root may not grant the groups of the role.
func (o *Org) grantorFor(p *agentNode, role *Role) grantor {
	g := o.grantorOf(p)
	if p.scope.root && !p.scope.orphaned && role.isDeclared() {
		g.limits = p.scope.taskLimits(o.lookupRole)
	}
	return g
}

// checkCreates returns an error if g is a root that may grant nothing and so creates no
// roles. what says what it attempted.
func (o *Org) checkCreates(g grantor, what, name string) error {
	if g.role != CreatorRoot || !o.root.grantsNothing() {
		return nil
	}
	return errcode.New(errcode.InsufficientPermissions, "%s role %q: root may grant no tool groups here; spawn agents of the roles of the operator and of the configuration", what, name)
}
