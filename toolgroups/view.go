package toolgroups

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// UndefinedState is the workflow state of an agent that has none.
const UndefinedState = "undefined"

// StateName returns the name of a workflow state, which is UndefinedState for "".
func StateName(state string) string { return cmp.Or(state, UndefinedState) }

// PinnedSet is a GroupSet together with the owner that each group had when the GroupSet was
// written. If another owner registers a group under the same id later, the PinnedSet
// does not contain it. The zero PinnedSet contains nothing.
type PinnedSet struct {
	Set    GroupSet
	Owners map[GroupID]GroupOwner // ids without an owner have no effect; not used if Set is AllGroups
	Only   GroupOwner             `json:",omitempty"` // if not empty, restricts the set to tools of this owner
	Bind   bounds.Bind            `json:",omitempty"` // bounds the arguments of tools, under all of their names
}

// IsAll reports whether b contains all tools, with any arguments.
func (b PinnedSet) IsAll() bool { return b.Set.all && b.Only == "" && len(b.Bind) == 0 }

// matchesOwner reports whether h belongs to the owner that b is restricted to.
func (b PinnedSet) matchesOwner(h *ToolHandle) bool { return b.Only == "" || h.Owner == b.Only }

// PinOwners returns set, pinned to the owners of its groups, see KnownOwner. Ids that s does
// not know get no owner and have no effect, also if such a group is registered later.
func (s *Snapshot) PinOwners(set GroupSet) PinnedSet {
	if set.all {
		return PinnedSet{Set: set}
	}
	b := PinnedSet{Set: set, Owners: make(map[GroupID]GroupOwner, len(set.ids))}
	for _, id := range set.ids {
		if owner := s.KnownOwner(id); owner != "" {
			b.Owners[id] = owner
		}
	}
	return b
}

// View is a compiled permission: the tools of one Snapshot that are in a set of groups
// and in all sets that limit it. It is immutable once it is published. The zero View
// allows nothing. A View is safe for concurrent use.
type View struct {
	revision     uint64                     // of the Snapshot
	evaluations  [Granted + 1]Evaluation    // by rule
	handles      []*ToolHandle              // allowed, whether visible in a state or not
	bits         bits                       // of handles
	defaultState StateView                  // of every state that is not in states
	states       map[string]*StateView      // by state that a tool names; nil if no tool is limited to states
	prompts      []*group                   // the allowed groups that have prompts
	fallbacks    []*group                   // the allowed groups that have a Fallback
	through      map[uint32]GroupID         // of handles that are not allowed through the group that owns them
	checks       map[uint32][]*bounds.Check // by index of handles whose arguments are bounded; nil if there are none
	approvals    map[uint32]approval.Rules  // of handles whose calls wait for people; nil if there are none

	once     sync.Once         // guards listable
	listable []tool.Definition // built by ListableTools
}

// StateView is the part of a View that is visible in one workflow state. Its lists are
// built when they are first used. It is safe for concurrent use.
type StateView struct {
	view     *View
	revision uint64
	bits     bits // of handles
	handles  []*ToolHandle

	once        sync.Once // guards the fields below, which marshal sets
	definitions []tool.Definition
	names       []string // of definitions
	json        []byte   // of definitions
}

// DecisionRule is the rule that decided about a tool.
type DecisionRule uint8

// The rules. All but Granted deny.
const (
	NotGranted DecisionRule = iota // the tool is not in the groups of the View or exceeds a limit
	NoSuchTool                     // no group has a tool of this name
	WrongState                     // the View allows the tool, but not in this workflow state
	Granted                        // the View allows the tool in this workflow state
)

// String returns the rule in words.
func (r DecisionRule) String() string {
	return [...]string{"not granted", "no such tool", "wrong state", "granted"}[min(r, Granted)]
}

// Evaluation is the result of a decision. A View holds one Evaluation for each rule
// and returns pointers to them. A pointer therefore also identifies the View: two
// decisions with the same pointer were made by the same View.
type Evaluation struct {
	Rule      DecisionRule
	Gating    Gating // unless it is NotGated, denials must not reveal their reason
	Suspended string // why everything is denied until a role or the organization is resumed, see View.SetSuspended
	Epoch     uint64 // of the View

	view *View // nil in the zero Evaluation
}

// newView returns a View that allows nothing.
func newView() *View {
	v := new(View)
	v.defaultState.view = v
	for rule := range v.evaluations {
		v.evaluations[rule].Rule, v.evaluations[rule].view = DecisionRule(rule), v
	}
	return v
}

// SetEpoch sets the epoch of the View, a counter that package org increments with
// every change of permissions. It must be called before the View is published.
func (v *View) SetEpoch(epoch uint64) {
	for rule := range v.evaluations {
		v.evaluations[rule].Epoch = epoch
	}
}

// SetGating marks the View as the View of a tool-gated role. Agents of such a role must
// answer from tools alone, and do not learn why a tool is denied. SetGating must be
// called before the View is published.
func (v *View) SetGating(g Gating) {
	for rule := range v.evaluations {
		v.evaluations[rule].Gating = g
	}
}

// SetSuspended marks a View that allows nothing as the View of a paused role or organization.
// Denials then give this reason. SetSuspended must be called before the View is published.
func (v *View) SetSuspended(why string) {
	for rule := range v.evaluations {
		v.evaluations[rule].Suspended = why
	}
}

// Suspended returns what SetSuspended has set, "" if it was not called.
func (v *View) Suspended() string { return v.evaluations[Granted].Suspended }

// Gating returns what SetGating has set.
func (v *View) Gating() Gating { return v.evaluations[Granted].Gating }

// RuleEvaluation returns the Evaluation of v for a rule. It returns the same pointer each
// time. Callers must not change the Evaluation.
func (v *View) RuleEvaluation(r DecisionRule) *Evaluation { return &v.evaluations[r] }

// BaseView returns the View that s is a part of.
func (s *StateView) BaseView() *View { return s.view }

// EvaluateTool decides about a tool. h is its ToolHandle, nil if there is no such tool. It takes
// constant time and does not allocate. Callers must not change the Evaluation.
func (s *StateView) EvaluateTool(h *ToolHandle) *Evaluation {
	v := s.view
	if v == nil { // s belongs to a zero View
		v = emptyView
	}
	switch {
	case h == nil:
		return &v.evaluations[NoSuchTool]
	case s.HasTool(h):
		return &v.evaluations[Granted]
	case v.states != nil && v.HasTool(h):
		return &v.evaluations[WrongState]
	}
	return &v.evaluations[NotGranted]
}

// Compile returns a View of the tools that are in use and in all of limits, with the bounds of
// all of them. It leaves out tools whose bounds surely let no arguments through. Its tools
// are ordered by the groups of use and then by registration.
func (s *Snapshot) Compile(use PinnedSet, limits ...PinnedSet) *View {
	handles := s.handles(use)
	for _, limit := range limits {
		if !limit.IsAll() {
			allowed := s.bits(limit)
			handles = slices.DeleteFunc(handles, func(h *ToolHandle) bool { return !allowed.has(h.index) })
		}
	}
	handles = withoutAPIs(handles)
	v := newView()
	handles = v.applyBounds(handles, append([]PinnedSet{use}, limits...))
	v.revision, v.handles, v.bits = s.revision, handles, bitsOf(s.width, handles)
	v.prompts = s.allowedGroups(use, limits, func(g *group) bool { return len(g.prompts) > 0 })
	v.fallbacks = s.allowedGroups(use, limits, func(g *group) bool { return len(g.Fallback) > 0 })
	v.through = s.grantingGroups(handles, append([]PinnedSet{use}, limits...))
	v.defaultState.fill(s, handles)
	if names := statesOf(handles); names != nil {
		v.states = make(map[string]*StateView, len(names))
		for _, name := range names {
			v.states[name] = &StateView{view: v}
			v.states[name].fill(s, visibleIn(handles, name))
		}
		v.defaultState.fill(s, visibleIn(handles, ""))
	}
	return v
}

// fill sets the visible tools of s.
func (s *StateView) fill(from *Snapshot, handles []*ToolHandle) {
	s.revision, s.bits, s.handles = from.revision, bitsOf(from.width, handles), handles
}

// ForState returns the StateView of a workflow state. The state "" is UndefinedState. All
// states that no tool names share one StateView.
func (v *View) ForState(state string) *StateView {
	if v.states == nil {
		return &v.defaultState
	}
	state = StateName(state)
	if sv, ok := v.states[state]; ok {
		return sv
	}
	return &v.defaultState
}

// HasTool reports whether the View allows the tool in whatever state. That includes tools
// that are not visible in any state. See docs/decisions/0005-stable-indexes.md for the
// comparison of revisions.
func (v *View) HasTool(h *ToolHandle) bool { return h.since <= v.revision && v.bits.has(h.index) }

// PredatesTool reports whether v was compiled before the tool was registered.
func (v *View) PredatesTool(h *ToolHandle) bool { return h.since > v.revision }

// ToolNames returns the names of the tools that are visible in at least one state, in
// order.
func (v *View) ToolNames() []string {
	handles := v.listableHandles()
	names := slices.Grow([]string(nil), len(handles))
	for _, h := range handles {
		names = append(names, h.Definition.Name)
	}
	return names
}

// ListableTools returns the tools that are visible in at least one state, in order. The
// list is built once; callers must not change it.
func (v *View) ListableTools() []tool.Definition {
	v.once.Do(func() {
		for _, h := range v.listableHandles() {
			v.listable = append(v.listable, v.shownDefinition(h))
		}
	})
	return v.listable
}

// listableHandles returns the tools that are visible in at least one state, in order.
func (v *View) listableHandles() []*ToolHandle {
	stateViews := v.stateViews()
	list := make([]*ToolHandle, 0, len(v.handles))
	for _, h := range v.handles {
		if slices.ContainsFunc(stateViews, func(s *StateView) bool { return s.bits.has(h.index) }) {
			list = append(list, h)
		}
	}
	return list
}

// stateViews returns all StateViews of v.
func (v *View) stateViews() []*StateView {
	list := []*StateView{&v.defaultState}
	for _, sv := range v.states {
		list = append(list, sv)
	}
	return list
}

// HasTool reports whether the tool is visible in this state. It takes constant time and
// does not allocate.
func (s *StateView) HasTool(h *ToolHandle) bool { return h.since <= s.revision && s.bits.has(h.index) }

// ToolDefinitions returns the visible tools. Callers must not change the list.
func (s *StateView) ToolDefinitions() []tool.Definition {
	s.once.Do(s.buildLists)
	return s.definitions
}

// ToolNames returns the names of ToolDefinitions. Callers must not change the list.
func (s *StateView) ToolNames() []string {
	s.once.Do(s.buildLists)
	return s.names
}

// ToolJSON returns ToolDefinitions as serialized by tool.MarshalTools. Callers must not change
// it.
func (s *StateView) ToolJSON() []byte {
	s.once.Do(s.buildLists)
	return s.json
}

// buildLists builds the lists of s. It is called once.
func (s *StateView) buildLists() {
	s.definitions, s.names = make([]tool.Definition, len(s.handles)), make([]string, len(s.handles))
	for i, h := range s.handles {
		s.definitions[i], s.names[i] = s.view.shownDefinition(h), h.Definition.Name
	}
	data, err := tool.MarshalTools(s.definitions)
	if err != nil { // cannot happen: RegisterGroup rejects definitions that are not valid JSON
		panic("toolgroups: marshal definitions: " + err.Error())
	}
	s.json = data
}

// ViewRef is an atomic reference to the current View of all agents with the same
// permissions. The zero ViewRef refers to a View that denies everything. A ViewRef is
// safe for concurrent use and must not be copied.
type ViewRef struct{ view atomic.Pointer[View] }

// emptyView is the View of a ViewRef before the first PublishView.
var emptyView = newView()

// CurrentView returns the current View. It is never nil.
func (r *ViewRef) CurrentView() *View {
	if v := r.view.Load(); v != nil {
		return v
	}
	return emptyView
}

// PublishView makes v the current View. v must not be changed afterwards.
func (r *ViewRef) PublishView(v *View) { r.view.Store(v) }

// CoversGroup reports whether b contains the group id. The group must exist and have the
// owner to which b pins it, or be a descendant of such a group (Group.Children). A
// PinnedSet of AllGroups contains every group that exists.
func (s *Snapshot) CoversGroup(b PinnedSet, id GroupID) bool {
	owner := s.GroupOwner(id)
	return owner != "" && (b.Set.all || b.Set.Has(id) && b.Owners[id] == owner || s.isBelow(id, b))
}

// ReachesTool reports whether b contains the tool h, in whatever state.
func (s *Snapshot) ReachesTool(b PinnedSet, h *ToolHandle) bool {
	if !b.matchesOwner(h) {
		return false
	}
	for _, g := range s.pinnedGroups(b) {
		if slices.ContainsFunc(s.ownMembers(g), h.isSameTool) {
			return true
		}
	}
	return false
}

// handles returns the tools that b contains, each once, in order.
func (s *Snapshot) handles(b PinnedSet) []*ToolHandle {
	seen := newBits(s.width)
	var list []*ToolHandle
	for _, g := range s.pinnedGroups(b) {
		for _, h := range s.ownMembers(g) {
			if !seen.has(h.index) && b.matchesOwner(h) {
				seen.add(h.index)
				list = append(list, h)
			}
		}
	}
	return list
}

// bits returns the indexes of the tools that b contains, under all of their names.
func (s *Snapshot) bits(b PinnedSet) bits { return s.bitsOfNames(s.handles(b)) }

// bitsOfNames returns the indexes of tools, under all of their names.
func (s *Snapshot) bitsOfNames(handles []*ToolHandle) bits {
	list := bitsOf(s.width, handles)
	for _, h := range handles {
		for _, other := range []*ToolHandle{h.original, h.api} {
			if other != nil {
				list.add(other.index)
			}
		}
	}
	return list
}

// pinnedGroups returns the groups of b that still have the owner they are pinned to, each
// followed by its descendants, each group once.
func (s *Snapshot) pinnedGroups(b PinnedSet) []*group {
	if b.Set.all {
		return s.orderedGroups()
	}
	list := make([]*group, 0, len(b.Set.ids))
	for _, id := range b.Set.ids {
		if g, ok := s.group(id); ok && g.Owner == b.Owners[id] {
			list = append(list, g)
		}
	}
	return s.withDescendants(list...)
}

// visibleIn returns the tools that are visible in a workflow state. The state ""
// stands for all states that no tool names. A tool without States is visible in every
// state, as is one with the state "*".
func visibleIn(handles []*ToolHandle, state string) []*ToolHandle {
	var list []*ToolHandle
	for _, h := range handles {
		if h.Definition.States == nil || slices.Contains(h.Definition.States, "*") ||
			state != "" && slices.Contains(h.Definition.States, state) {
			list = append(list, h)
		}
	}
	return list
}

// statesOf returns the states that tools name. It returns nil if no tool is limited to
// states, and an empty list if tools are limited but name no state.
func statesOf(handles []*ToolHandle) []string {
	var names []string
	for _, h := range handles {
		if h.Definition.States == nil {
			continue
		}
		if names == nil {
			names = []string{}
		}
		for _, state := range h.Definition.States {
			if state != "*" && !slices.Contains(names, state) {
				names = append(names, state)
			}
		}
	}
	return names
}

// bitsOf returns the set of the indexes of handles, which are less than width.
func bitsOf(width uint32, handles []*ToolHandle) bits {
	b := newBits(width)
	for _, h := range handles {
		b.add(h.index)
	}
	return b
}
