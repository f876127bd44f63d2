package toolgroups

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/tool"
)

// Undefined is the workflow state of those that have none (seed 000 §4.2).
const Undefined = "undefined"

// BoundSet is a Set whose ids are bound to the owners they had when it was
// written: a group that another owner registers later under the same id is
// not what was meant. All needs no owners. Only, if set, confines it to the
// tools that this owner brought, whatever group they are reached through. The
// zero Binding lets nothing through.
type BoundSet struct {
	Set    Set
	Owners map[GroupID]Owner
	Only   Owner `json:",omitempty"`
}

// IsAll says whether b lets every tool through.
func (b BoundSet) IsAll() bool { return b.Set.all && b.Only == "" }

// admits says whether a tool in a group of b is one that b is confined to.
func (b BoundSet) admits(h *Handle) bool { return b.Only == "" || h.Owner == b.Only }

// Bind binds set to the owners of s. Ids unknown to s stay unbound: inert.
func (s *Snapshot) Bind(set Set) BoundSet {
	b := BoundSet{Set: set, Owners: make(map[GroupID]Owner, len(set.ids))}
	for _, id := range set.ids {
		if owner := s.Owner(id); owner != "" {
			b.Owners[id] = owner
		}
	}
	return b
}

// View is what a use under limits lets through, compiled from one Snapshot.
// It never changes once published. The zero View lets nothing through.
type View struct {
	revision     uint64
	outcomes     [Granted + 1]Evaluation
	handles      []*Handle
	bits         bits // of handles
	defaultState StateView
	states       map[string]*StateView // states that tools name; nil when none do
	prompts      []*group              // those with prompts

	once    sync.Once
	offered []tool.Definition
}

// StateView is a View in one workflow state.
type StateView struct {
	view     *View
	revision uint64
	bits     bits
	handles  []*Handle

	once        sync.Once
	definitions []tool.Definition
	names       []string // of definitions
	wire        []byte
}

// Rule names what decided about a tool.
type Rule uint8

// The rules. The zero Rule is that nothing allowed it.
const (
	NotGranted Rule = iota // none of what may be used, within its limits, holds the tool
	NoSuchTool             // no group has a tool of this name
	WrongState             // the tool is let through, but not in this state
	Granted                // use, limits and state let it through
)

// String names the rule for people.
func (r Rule) String() string {
	return [...]string{"not granted", "no such tool", "wrong state", "granted"}[min(r, Granted)]
}

// Evaluation is what a View rules, and when. Of a Gated one nobody is told why a
// tool is refused.
type Evaluation struct {
	Rule      Rule
	ToolGated bool
	Epoch     uint64
}

func newView() *View {
	v := new(View)
	v.defaultState.view = v
	for rule := range v.outcomes {
		v.outcomes[rule].Rule = Rule(rule)
	}
	return v
}

// SetEpoch says at which epoch the View came into force; called before the
// View is published.
func (v *View) SetEpoch(epoch uint64) {
	for rule := range v.outcomes {
		v.outcomes[rule].Epoch = epoch
	}
}

// SetToolGated says that the View is of somebody who answers from tools alone
// (seed 004); called before the View is published.
func (v *View) SetToolGated() {
	for rule := range v.outcomes {
		v.outcomes[rule].ToolGated = true
	}
}

// ToolGated says whether SetGated was called.
func (v *View) ToolGated() bool { return v.outcomes[Granted].ToolGated }

// Evaluation gives what v says when a rule decides: one value of v's own for each.
func (v *View) Evaluation(r Rule) *Evaluation { return &v.outcomes[r] }

// View gives the View this is a part of.
func (s *StateView) View() *View { return s.view }

// Decide rules on a tool; h is nil when there is no such tool. Constant time,
// no allocation. The Ruling must not be changed.
func (s *StateView) Decide(h *Handle) *Evaluation {
	v := s.view
	if v == nil { // of the zero View
		v = emptyView
	}
	switch {
	case h == nil:
		return &v.outcomes[NoSuchTool]
	case s.Has(h):
		return &v.outcomes[Granted]
	case v.states != nil && v.Has(h):
		return &v.outcomes[WrongState]
	}
	return &v.outcomes[NotGranted]
}

// Compile gives the View of what use and every one of limits let through.
// Tools are ordered by the groups of use, then by registration.
func (s *Snapshot) Compile(use BoundSet, limits ...BoundSet) *View {
	handles := s.handles(use)
	for _, limit := range limits {
		if !limit.IsAll() {
			allowed := s.bits(limit)
			handles = slices.DeleteFunc(handles, func(h *Handle) bool { return !allowed.has(h.index) })
		}
	}
	v := newView()
	v.revision, v.handles, v.bits = s.revision, handles, bitsOf(s.width, handles)
	v.prompts = s.withPrompts(use, limits)
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

// fill puts tools on a shelf.
func (s *StateView) fill(from *Snapshot, handles []*Handle) {
	s.revision, s.bits, s.handles = from.revision, bitsOf(from.width, handles), handles
}

// ForState gives the View in a workflow state; "" is Undefined.
func (v *View) ForState(state string) *StateView {
	if v.states == nil {
		return &v.defaultState
	}
	if state == "" {
		state = Undefined
	}
	if shelf, ok := v.states[state]; ok {
		return shelf
	}
	return &v.defaultState
}

// Has says whether the use and its limits let the tool through, whatever the
// state; a tool that no state offers is let through here and visible nowhere.
func (v *View) Has(h *Handle) bool { return h.since <= v.revision && v.bits.has(h.index) }

// Predates says whether the tool was registered after v was compiled.
func (v *View) Predates(h *Handle) bool { return h.since > v.revision }

// Names lists the tools visible in at least one state, in order.
func (v *View) Names() []string {
	var names []string
	for _, d := range v.Listable() {
		names = append(names, d.Name)
	}
	return names
}

// Listable lists the tools visible in at least one state, in order. The list is
// made once; callers must not change it.
func (v *View) Listable() []tool.Definition {
	v.once.Do(func() {
		shelves := v.stateViews()
		for _, h := range v.handles {
			if slices.ContainsFunc(shelves, func(s *StateView) bool { return s.bits.has(h.index) }) {
				v.offered = append(v.offered, h.Definition)
			}
		}
	})
	return v.offered
}

func (v *View) stateViews() []*StateView {
	list := []*StateView{&v.defaultState}
	for _, shelf := range v.states {
		list = append(list, shelf)
	}
	return list
}

// Has says whether the tool is visible in this state: constant time, no
// allocation.
func (s *StateView) Has(h *Handle) bool { return h.since <= s.revision && s.bits.has(h.index) }

// Definitions lists what is visible. Callers must not change it.
func (s *StateView) Definitions() []tool.Definition {
	s.once.Do(s.serialise)
	return s.definitions
}

// Names lists the names of Definitions. Callers must not change it.
func (s *StateView) Names() []string {
	s.once.Do(s.serialise)
	return s.names
}

// JSON gives Definitions serialised by tool.MarshalTools, made once. Callers must not
// change it.
func (s *StateView) JSON() []byte {
	s.once.Do(s.serialise)
	return s.wire
}

func (s *StateView) serialise() {
	s.definitions, s.names = make([]tool.Definition, len(s.handles)), make([]string, len(s.handles))
	for i, h := range s.handles {
		s.definitions[i], s.names[i] = h.Definition, h.Definition.Name
	}
	wire, err := tool.MarshalTools(s.definitions)
	if err != nil { // a definition that is no JSON was refused at registration
		panic("toolgroups: serialise definitions: " + err.Error())
	}
	s.wire = wire
}

// ViewRef holds the current View of some who share it. The zero Slot denies.
// View and Publish are safe for concurrent use.
type ViewRef struct{ view atomic.Pointer[View] }

var emptyView = newView()

// View gives the View in force.
func (s *ViewRef) View() *View {
	if v := s.view.Load(); v != nil {
		return v
	}
	return emptyView
}

// Publish puts v in force.
func (s *ViewRef) Publish(v *View) { s.view.Store(v) }

// Covers says whether a binding names a group that is there and that it meant
// when it was written; All means every group.
func (s *Snapshot) Covers(b BoundSet, id GroupID) bool {
	owner := s.Owner(id)
	return owner != "" && (b.Set.all || b.Set.Has(id) && b.Owners[id] == owner)
}

// Reaches says whether a binding lets a tool through, in any state.
func (s *Snapshot) Reaches(b BoundSet, h *Handle) bool {
	if !b.admits(h) {
		return false
	}
	for _, g := range s.selectGroups(b) {
		if slices.Contains(s.members(g), h) {
			return true
		}
	}
	return false
}

// handles lists the handles a binding reaches, each once, in order.
func (s *Snapshot) handles(b BoundSet) []*Handle {
	seen := newBits(s.width)
	var list []*Handle
	for _, g := range s.selectGroups(b) {
		for _, h := range s.members(g) {
			if !seen.has(h.index) && b.admits(h) {
				seen.add(h.index)
				list = append(list, h)
			}
		}
	}
	return list
}

func (s *Snapshot) bits(b BoundSet) bits { return bitsOf(s.width, s.handles(b)) }

// selectGroups lists the groups a binding names that still have the bound owner.
func (s *Snapshot) selectGroups(b BoundSet) []*group {
	if b.Set.all {
		return s.ordered()
	}
	list := make([]*group, 0, len(b.Set.ids))
	for _, id := range b.Set.ids {
		if g, ok := s.groups.get(string(id)); ok && g.Owner == b.Owners[id] {
			list = append(list, g)
		}
	}
	return list
}

// visibleIn lists the tools that a workflow state offers; "" stands for every
// state that no tool names.
func visibleIn(handles []*Handle, state string) []*Handle {
	var list []*Handle
	for _, h := range handles {
		if h.Definition.States == nil || slices.Contains(h.Definition.States, "*") ||
			state != "" && slices.Contains(h.Definition.States, state) {
			list = append(list, h)
		}
	}
	return list
}

// statesOf lists the states tools are limited to; nil when none is limited.
func statesOf(handles []*Handle) []string {
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

func bitsOf(width uint32, handles []*Handle) bits {
	b := newBits(width)
	for _, h := range handles {
		b.add(h.index)
	}
	return b
}
