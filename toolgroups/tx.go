package toolgroups

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Tx is a change of the registry in progress: any number of registrations that become
// visible together, or not at all. It is valid until the function that [Manager.Update]
// calls has returned, and not safe for concurrent use.
//
// The order of the calls does not matter. A tool may move from one group to another, and
// a group from one owner to another, in one Tx.
type Tx struct {
	manager *Manager
	base    *Snapshot
	edits   map[GroupID]*groupEdit
	tools   map[string]*ToolHandle // of the groups that are registered

	declared map[GroupID]GroupOwner // set by DeclareGroups
	declares bool                   // DeclareGroups was called
}

// groupEdit is the change of one group.
type groupEdit struct {
	before  *group // nil if there was none
	dropped bool   // the owner of before releases the id
	after   *group // nil if the group is removed
	refs    []string
	owners  map[string]GroupOwner // of refs that are bound to an owner
	keeps   bool                  // after keeps the description, references and prompts of before

	switches bool // after is before, opened or closed
}

// Change is a prepared change of the registry, see [Manager.SetCommit].
type Change struct {
	Groups []GroupChange // sorted by id
	Next   *Snapshot     // the registry after the change

	// Publish makes the change visible and calls the watchers. It has to be called at
	// most once. If it is not called the change is dropped.
	Publish func()
}

// GroupChange is the change of one group.
type GroupChange struct {
	Group    GroupInfo // after the change, or before it if the group is removed
	Removed  bool
	Switched bool // the group was opened or closed, and nothing else
}

// RegisterGroup adds a group. If owner has a group with this id already, RegisterGroup
// replaces it and returns the WarningCode DuplicateGroupID. It copies the definitions of
// the tools.
//
// Errors have one of these codes. Those of names are returned by Update:
//   - ReservedGroupID: the id is reserved, or below a reserved one, and the owner is not Builtin.
//   - DuplicateGroupID: the id belongs to another owner.
//   - DuplicateToolName: another group has a tool of this name, or the group has two.
//   - InvalidGroupDef: the id, the owner, a tool's name, effect or schema, a child or a
//     fallback is invalid, or the group has both Hours and Tools. The hierarchy of groups has
//     a cycle, or is too deep.
//
// DuplicateGroupID is also the code if another owner's group declares the id as a child, or
// if a child belongs to another owner.
func (tx *Tx) RegisterGroup(owner *Owner, g Group) (WarningCode, error) {
	if err := owner.check(tx.manager); err != nil {
		return "", err
	}
	name := owner.name
	if tx.manager.isReserved(g.ID) && name != Builtin {
		return "", errcode.New(errcode.ReservedGroupID, "register tool group %q for %s: the id is reserved; choose another", g.ID, name)
	}
	if err := checkHours(g); err != nil {
		return "", err
	}
	handles, err := tx.newHandles(name, g)
	if err == nil {
		err = tx.manager.checkRelated(g)
	}
	if err != nil {
		return "", err
	}
	e := tx.edit(g.ID)
	if e.after != nil && e.after.Owner != name {
		return "", duplicateGroup(g.ID, name, e.after.Owner)
	}
	replaced := e.after != nil || e.before != nil && !e.dropped && e.before.Owner == name
	after := &group{
		GroupInfo: GroupInfo{ID: g.ID, Description: g.Description, Owner: name, Reserved: tx.manager.reserved[g.ID], RegisteredAt: tx.manager.now().UTC(),
			Children: slices.Clone(g.Children), Fallback: slices.Clone(g.Fallback)},
		tools: handles, prompts: slices.Clone(g.Prompts),
		apiNames: maps.Clone(g.APIs), openAPIs: g.OpenAPIs, hours: g.Hours, open: g.Open, ownerRefs: slices.Clone(g.OwnerRefs),
	}
	after.apis = newAPIGroups(after)
	tx.setGroup(e, after, g.Refs)
	e.owners = maps.Clone(g.RefOwners)
	if replaced {
		return errcode.DuplicateGroupID, nil
	}
	return "", nil
}

// UnregisterGroup removes a group and all of its tools. The error has the code
// CannotUnregisterReserved for a reserved id, and GroupNotFound if owner has no group
// of this id.
func (tx *Tx) UnregisterGroup(owner *Owner, id GroupID) error {
	if err := owner.check(tx.manager); err != nil {
		return err
	}
	if tx.manager.reserved[id] {
		return errcode.New(errcode.CannotUnregisterReserved, "unregister tool group %q: built-in groups cannot be unregistered", id)
	}
	e := tx.edit(id)
	switch {
	case e.after != nil && e.after.Owner == owner.name:
		e.dropped = e.before != nil && (e.dropped || e.before.Owner == owner.name)
		tx.setGroup(e, nil, nil)
	case e.before != nil && e.before.Owner == owner.name && !e.dropped:
		e.dropped = true
	default:
		return errcode.New(errcode.GroupNotFound, "unregister tool group %q: %s has no group of this id", id, owner.name)
	}
	return nil
}

// replaceTools is Owner.ReplaceTools.
func (tx *Tx) replaceTools(owner *Owner, id GroupID, tools []tool.Tool) error {
	if _, err := tx.RegisterGroup(owner, Group{ID: id, Tools: tools}); err != nil {
		return err
	}
	tx.edits[id].keeps = true
	return nil
}

// rebase makes base the registry that edits change.
func (tx *Tx) rebase(base *Snapshot, edits []*groupEdit) error {
	tx.base = base
	for _, e := range edits {
		id, was := e.id(), e.before
		e.before, _ = base.groups.get(string(id))
		switch {
		case e.dropped && (e.before == nil || e.before.Owner != was.Owner):
			return errcode.New(errcode.GroupNotFound, "unregister tool group %q: %s has no group of this id", id, was.Owner)
		case e.switches:
			if err := checkSwitch(e, id, e.after.Owner); err != nil {
				return err
			}
			e.after = e.before.withOpen(e.after.open)
		case !e.keeps:
		case e.before == nil || e.before.Owner != e.after.Owner:
			return errcode.New(errcode.GroupNotFound, "update tool group %q: %s has no group of this id", id, e.after.Owner)
		case e.before.hours != nil:
			return errcode.New(errcode.InvalidGroupDef, "update tool group %q: it has hours, so it cannot have tools of its own", id)
		default:
			e.after.Description, e.after.prompts, e.after.refs = e.before.Description, e.before.prompts, e.before.refs
			e.after.Children, e.after.Fallback = e.before.Children, e.before.Fallback
			e.after.apiNames, e.after.openAPIs, e.after.ownerRefs = e.before.apiNames, e.before.openAPIs, e.before.ownerRefs
			e.after.apis = newAPIGroups(e.after)
		}
	}
	return nil
}

// LookupTool returns the tool that will have this name when the change is made as it is
// so far.
func (tx *Tx) LookupTool(name string) (*ToolHandle, bool) {
	if h, ok := tx.tools[name]; ok {
		return h, true
	}
	h, ok := tx.base.LookupTool(name)
	return h, ok && !tx.replaces(h.registeredGroup())
}

// edit returns the edit of a group. It makes the edit if there is none yet.
func (tx *Tx) edit(id GroupID) *groupEdit {
	e := tx.edits[id]
	if e == nil {
		e = &groupEdit{}
		e.before, _ = tx.base.groups.get(string(id))
		tx.edits[id] = e
	}
	return e
}

// setGroup makes after, which may be nil, the group of an edit.
func (tx *Tx) setGroup(e *groupEdit, after *group, refs []string) {
	again := e.after != nil
	e.after, e.refs, e.switches = after, refs, false
	if again {
		tx.indexTools()
		return
	}
	for _, h := range after.tools {
		tx.tools[h.Definition.Name] = h
	}
}

// indexTools builds the index of tools again, after tools were removed from an edit.
func (tx *Tx) indexTools() {
	clear(tx.tools)
	for _, e := range tx.edits {
		if e.after == nil {
			continue
		}
		for _, h := range e.after.tools {
			tx.tools[h.Definition.Name] = h
		}
	}
}

// replaces reports whether the group of this id is removed or registered again.
func (tx *Tx) replaces(id GroupID) bool {
	e := tx.edits[id]
	return e != nil && (e.dropped || e.after != nil)
}

// sortedEdits returns the edits that change something, sorted by id.
func (tx *Tx) sortedEdits() []*groupEdit {
	var list []*groupEdit
	for _, e := range tx.edits {
		if e.after != nil || e.dropped {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *groupEdit) int { return cmp.Compare(a.id(), b.id()) })
	return list
}

func (e *groupEdit) id() GroupID {
	if e.after != nil {
		return e.after.ID
	}
	return e.before.ID
}

// bindRefs binds the references of registered groups to the owners of the named tools after the
// change. If a tool is gone, it binds the reference to the owner before the change.
func (tx *Tx) bindRefs(edits []*groupEdit) {
	for _, e := range edits {
		if e.after == nil || e.after.refs != nil {
			continue
		}
		refs := make([]toolRef, len(e.refs))
		for i, name := range e.refs {
			refs[i].name = name
			if owner, bound := e.owners[name]; bound {
				refs[i].owner = owner
			} else if h, ok := tx.LookupTool(name); ok {
				refs[i].owner = h.Owner
			} else if h, ok := tx.base.LookupTool(name); ok {
				refs[i].owner = h.Owner
			}
		}
		e.after.refs = refs
	}
}

// check returns an error if a group takes an id from its owner, or if a tool name is in two groups.
// It also returns an error if the hierarchy of groups is invalid.
func (tx *Tx) check(edits []*groupEdit) error {
	names := make(map[string]*ToolHandle, len(tx.tools))
	for _, e := range edits {
		if e.after == nil {
			continue
		}
		if e.before != nil && !e.dropped && e.before.Owner != e.after.Owner {
			return duplicateGroup(e.after.ID, e.after.Owner, e.before.Owner)
		}
		for _, h := range e.after.tools {
			if other := tx.conflictingTool(names, h); other != nil {
				return errcode.New(errcode.DuplicateToolName, "register tool group %q: the tool name %q belongs to group %q of %s",
					h.Group, h.Definition.Name, other.Group, other.Owner).With("owner", h.Owner)
			}
			names[h.Definition.Name] = h
		}
	}
	tx.dropTakenAPIs(edits, names)
	return tx.checkHierarchy(edits)
}

// conflictingTool returns the tool with the name of h that is in names, or in a group that tx does not
// replace. It returns nil if there is no such tool.
func (tx *Tx) conflictingTool(names map[string]*ToolHandle, h *ToolHandle) *ToolHandle {
	if other := names[h.Definition.Name]; other != nil {
		return other
	}
	if other, ok := tx.base.LookupTool(h.Definition.Name); ok && !tx.replaces(other.registeredGroup()) {
		return other
	}
	return nil
}

// duplicateGroup returns the error for an id that belongs to another owner.
func duplicateGroup(id GroupID, owner, other GroupOwner) error {
	return errcode.New(errcode.DuplicateGroupID, "register tool group %q for %s: it belongs to %s", id, owner, other).With("owner", owner)
}
