package org

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// Bounds of what is kept of the tools of one role, and of the epochs.
const (
	maxToolChanges = 100    // changes
	maxChangeNames = 10_000 // names in all changes together
	maxToolNames   = 2_000  // tools of a role; the changes of one with more are not kept
	maxEpochRanges = 100
)

// observedKey is the key of the record of KindMeta that holds the observed epochs.
const observedKey = "observed"

// toolHistory is the stored record of the tools that a role had: the tools of its RoleView in all
// groups.
type toolHistory struct {
	From    uint64       `json:"from"`              // the changes after this epoch are complete
	Created bool         `json:"created,omitempty"` // the role was created with this epoch
	Tools   []string     `json:"tools,omitempty"`   // after the last change, sorted
	TooMany bool         `json:"tooMany,omitempty"` // more than maxToolNames: nothing is known
	Changes []toolChange `json:"changes,omitempty"` // oldest first
}

// toolChange is what a role gained and lost with an epoch.
type toolChange struct {
	Epoch uint64   `json:"epoch"`
	Gains []string `json:"gains,omitempty"` // sorted
	Loses []string `json:"loses,omitempty"` // sorted
}

// epochRange is a range of epochs in which every change of tools was recorded.
type epochRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// toolRecorder records which tools each role gained and lost, with the epoch. It is guarded
// by Org.mu.
//
// A process begins to record with the first epoch that it stores. Until then it registers
// the tools that exist, and nothing is decided. The epochs in between are not observed.
type toolRecorder struct {
	roles    map[identity.RoleID]*toolHistory
	observed []epochRange             // oldest first
	begun    bool                     // this process has recorded all roles
	lost     bool                     // a stored history is damaged, so a role without one need not be new
	changed  map[identity.RoleID]bool // to be stored
}

func newToolRecorder() toolRecorder {
	return toolRecorder{roles: map[identity.RoleID]*toolHistory{}, changed: map[identity.RoleID]bool{}}
}

// ToolDiff is what a role gained and lost since an epoch.
type ToolDiff struct {
	ID      identity.RoleID `json:"roleId"`
	Name    string          `json:"role"`
	From    uint64          `json:"from"`              // an earlier one if the epoch was not observed
	Epoch   uint64          `json:"epoch"`             // the current one
	Created bool            `json:"created,omitempty"` // the role was created since
	Gains   []string        `json:"gains"`             // names of tools, sorted
	Loses   []string        `json:"loses"`             // names of tools, sorted
}

// DiffTools returns which tools the agents of RoleView, in all groups, gained and lost since
// an epoch. For one in which a process was starting, it is the last observed epoch before
// it. The error has the code RoleNotFound, or InvalidArguments for an epoch that is not
// reached yet or too far back.
func (o *Org) DiffTools(id identity.RoleID, epoch uint64) (ToolDiff, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role, ok := o.lookupRole(id)
	if !ok || role.Status != Active {
		return ToolDiff{}, notFound(errcode.RoleNotFound, "role", string(id))
	}
	d := ToolDiff{ID: id, Name: role.Name, From: epoch, Epoch: o.epoch}
	if epoch > o.epoch {
		return d, epochError("epoch %d is not reached yet; the current epoch is %d", epoch, o.epoch)
	}
	view := o.observedScope(id).compile(o.config.Groups.CurrentSnapshot(), o.lookupRole)
	if epoch == o.epoch {
		d.Gains, d.Loses = []string{}, []string{}
		return d, nil
	}
	var err error
	if d.From, err = o.tools.lastObserved(epoch); err != nil {
		return d, err
	}
	before, created, err := o.tools.toolsAt(id, role.Name, d.From)
	is := namesOf(view)
	d.Created, d.Gains, d.Loses = created, namesWithout(is, before), namesWithout(before, is)
	return d, err
}

func epochError(format string, args ...any) error {
	return errcode.New(errcode.InvalidArguments, format, args...).With("field", "diff")
}

// lastObserved returns the last observed epoch up to an epoch, or an error if there is no such
// epoch. In the epochs after it a process was starting: it changed no role.
func (r *toolRecorder) lastObserved(epoch uint64) (uint64, error) {
	for _, o := range slices.Backward(r.observed) {
		if o.From <= epoch {
			return min(epoch, o.To), nil
		}
	}
	if len(r.observed) == 0 {
		return 0, epochError("epoch %d is too far back: no changes of tools are recorded yet", epoch)
	}
	return 0, epochError("epoch %d is too far back; changes of tools are recorded since epoch %d", epoch, r.observed[0].From)
}

// toolsAt returns the tools that a role had at an observed epoch. created means that it was
// created later.
func (r *toolRecorder) toolsAt(id identity.RoleID, name string, epoch uint64) (tools map[string]bool, created bool, err error) {
	h, ok := r.roles[id]
	switch {
	case !ok:
		return nil, false, epochError("epoch %d is too far back: no changes of the tools of role %q are recorded yet", epoch, name)
	case h.TooMany:
		return nil, false, epochError("role %q has more than %d tools; their changes are not recorded", name, maxToolNames)
	case epoch < h.From && h.Created:
		return nil, true, nil
	case epoch < h.From:
		return nil, false, epochError("epoch %d is too far back; changes of the tools of role %q are recorded since epoch %d", epoch, name, h.From)
	}
	tools = setOf(h.Tools)
	for _, c := range slices.Backward(h.Changes) {
		if c.Epoch <= epoch {
			break
		}
		for _, gained := range c.Gains {
			delete(tools, gained)
		}
		maps.Copy(tools, setOf(c.Loses))
	}
	return tools, false, nil
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// observeChange records the tools of roles after a change of groups and roles. It does so for
// roles whose limits name a changed group, and for roles that a changed role bounds. It must
// be called with mu held, after a change of the epoch.
func (o *Org) observeChange(groups []toolgroups.GroupID, roles map[identity.RoleID]bool) {
	if !o.tools.begun {
		return
	}
	o.observeRoles(func(r *Role) bool { return o.isBelowAny(r, roles) || o.dependsOn(r, groups) })
}

// observeRoles records the current tools of the roles that choose selects. It forgets deleted
// roles. It must be called with mu held.
func (o *Org) observeRoles(choose func(*Role) bool) {
	for id := range o.tools.roles {
		if role, ok := o.lookupRole(id); !ok || role.Status != Active {
			o.tools.forget(id)
		}
	}
	if choose(o.root) {
		o.observe(o.root)
	}
	for _, r := range o.roles {
		if r.Status == Active && choose(r) {
			o.observe(r)
		}
	}
}

// dependsOn reports whether a change of groups may change what a role has. It must be called
// with mu held.
func (o *Org) dependsOn(r *Role, groups []toolgroups.GroupID) bool {
	if len(groups) == 0 {
		return false
	}
	use, limits := o.observedScope(r.ID).permissions(o.lookupRole)
	names := func(c constraint) bool { return slices.ContainsFunc(groups, c.Set.Has) }
	return use.Set.IsAll() || slices.ContainsFunc(append(limits, use), func(c constraint) bool { return !c.Set.IsAll() && names(c) })
}

// observedScope returns the scope whose tools are recorded for a role.
func (o *Org) observedScope(id identity.RoleID) *scope {
	return o.previewScope(id, toolgroups.AllGroups())
}

// observe records what a role has now. It must be called with mu held.
func (o *Org) observe(r *Role) {
	view := o.observedScope(r.ID).compile(o.config.Groups.CurrentSnapshot(), o.lookupRole)
	isNew := r.Revision == 1 && len(o.tools.observed) > 0 && !o.tools.lost // any other had a history
	o.tools.record(r.ID, o.epoch, isNew, slices.Sorted(slices.Values(view.ToolNames())))
}

// forget removes the history of a deleted role.
func (r *toolRecorder) forget(id identity.RoleID) {
	if r.roles[id] != nil {
		delete(r.roles, id)
		r.changed[id] = true
	}
}

// record records the tools that a role has from an epoch on. created means that a role
// without a history was created with this epoch.
func (r *toolRecorder) record(id identity.RoleID, epoch uint64, created bool, tools []string) {
	h, known := r.roles[id]
	switch {
	case len(tools) > maxToolNames:
		if known && h.TooMany {
			return
		}
		h = &toolHistory{From: epoch, TooMany: true}
	case !known || h.TooMany:
		h = &toolHistory{From: epoch, Created: created && !known, Tools: tools}
	case slices.Equal(h.Tools, tools):
		return
	default:
		was, is := setOf(h.Tools), setOf(tools)
		h.Tools, h.Changes = tools, append(h.Changes, toolChange{epoch, namesWithout(is, was), namesWithout(was, is)})
		h.trim()
	}
	r.roles[id], r.changed[id] = h, true
}

// trim removes the oldest changes beyond the bounds.
func (h *toolHistory) trim() {
	names, keep := 0, 0
	for _, c := range slices.Backward(h.Changes) {
		if names += len(c.Gains) + len(c.Loses); names > maxChangeNames || keep == maxToolChanges {
			break
		}
		keep++
	}
	if drop := len(h.Changes) - keep; drop > 0 {
		h.From, h.Created = h.Changes[drop-1].Epoch, false
		h.Changes = slices.Clone(h.Changes[drop:])
	}
}

// toolRecords returns the records of what has changed, and of the current epoch as an
// observed one. It must be called with mu held, when the epoch is stored.
func (o *Org) toolRecords() (list []RecordChange) {
	r := &o.tools
	if !r.begun {
		o.observeRoles(func(*Role) bool { return true })
		r.begun, r.lost = true, false
		r.observed = append(r.observed, epochRange{From: o.epoch})
		r.observed = r.observed[max(0, len(r.observed)-maxEpochRanges):]
	}
	r.observed[len(r.observed)-1].To = o.epoch
	list = append(list, newRecord(KindMeta, observedKey, r.observed))
	for _, id := range slices.Sorted(maps.Keys(r.changed)) {
		if h, ok := r.roles[id]; ok {
			list = append(list, newRecord(KindToolHistory, string(id), h))
		} else {
			list = append(list, RecordChange{Kind: KindToolHistory, Key: string(id)})
		}
	}
	clear(r.changed)
	return list
}

// loadTools reads the histories. Those that are damaged are lost, and nothing else.
func (o *Org) loadTools(source RecordSource) {
	for r := range o.validRecords(source, KindMeta) {
		if r.Key == observedKey && json.Unmarshal(r.Value, &o.tools.observed) != nil {
			o.tools.observed = nil
		}
	}
	for r, err := range source.Records(string(KindToolHistory)) {
		var h toolHistory
		if err == nil {
			err = json.Unmarshal(r.Value, &h)
		}
		if err != nil {
			o.skipRecord(KindToolHistory, r, err.Error())
			o.tools.lost = true
			continue
		}
		o.tools.roles[identity.RoleID(r.Key)] = &h
	}
}
