package toolgroups

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/tool"
)

// Undefined is the workflow state of those that have none (seed 000 §4.2).
const Undefined = "undefined"

// Binding is a Set whose ids are bound to the owners they had when it was
// written: a group that another owner registers later under the same id is
// not what was meant. All needs no owners. The zero Binding lets nothing through.
type Binding struct {
	Set    Set
	Owners map[GroupID]Owner
}

// Bind binds set to the owners of s. Ids unknown to s stay unbound: inert.
func (s *Snapshot) Bind(set Set) Binding {
	b := Binding{Set: set, Owners: make(map[GroupID]Owner, len(set.ids))}
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
	Epoch    uint64 // set by who publishes the View
	revision uint64
	known    bits // visible in at least one state
	other    Shelf
	states   map[string]*Shelf // states that tools name; nil when none do
}

// Shelf is a View in one workflow state.
type Shelf struct {
	revision uint64
	bits     bits
	handles  []*Handle

	once        sync.Once
	definitions []tool.Definition
	wire        []byte
}

// Compile gives the View of what use and every one of limits let through.
// Tools are ordered by the groups of use, then by registration.
func (s *Snapshot) Compile(use Binding, limits ...Binding) *View {
	handles := s.pick(use)
	for _, limit := range limits {
		if !limit.Set.all {
			allowed := s.bits(limit)
			handles = slices.DeleteFunc(handles, func(h *Handle) bool { return !allowed.has(h.index) })
		}
	}
	v := &View{revision: s.revision, known: bitsOf(s.width, handles)}
	v.other = Shelf{revision: s.revision, bits: v.known, handles: handles}
	if names := statesOf(handles); names != nil {
		v.states = make(map[string]*Shelf, len(names))
		for _, name := range names {
			v.states[name] = s.shelf(handles, name)
		}
		v.other = Shelf{}
		rest := s.shelf(handles, "")
		v.other.revision, v.other.bits, v.other.handles = rest.revision, rest.bits, rest.handles
	}
	return v
}

// In gives the View in a workflow state; "" is Undefined.
func (v *View) In(state string) *Shelf {
	if v.states == nil {
		return &v.other
	}
	if state == "" {
		state = Undefined
	}
	if shelf, ok := v.states[state]; ok {
		return shelf
	}
	return &v.other
}

// Has says whether the tool is visible in at least one state.
func (v *View) Has(h *Handle) bool { return h.born <= v.revision && v.known.has(h.index) }

// Names lists the tools visible in at least one state, in order.
func (v *View) Names() []string {
	var names []string
	for _, shelf := range v.shelves() {
		for _, h := range shelf.handles {
			if !slices.Contains(names, h.Definition.Name) {
				names = append(names, h.Definition.Name)
			}
		}
	}
	return names
}

func (v *View) shelves() []*Shelf {
	list := []*Shelf{&v.other}
	for _, shelf := range v.states {
		list = append(list, shelf)
	}
	return list
}

// Has says whether the tool is visible in this state: constant time, no
// allocation.
func (s *Shelf) Has(h *Handle) bool { return h.born <= s.revision && s.bits.has(h.index) }

// Definitions lists what is visible. Callers must not change it.
func (s *Shelf) Definitions() []tool.Definition {
	s.once.Do(s.serialise)
	return s.definitions
}

// Wire gives Definitions serialised by tool.Wire, made once. Callers must not
// change it.
func (s *Shelf) Wire() []byte {
	s.once.Do(s.serialise)
	return s.wire
}

func (s *Shelf) serialise() {
	s.definitions = make([]tool.Definition, len(s.handles))
	for i, h := range s.handles {
		s.definitions[i] = h.Definition
	}
	wire, err := tool.Wire(s.definitions)
	if err != nil { // a definition that is no JSON was refused at registration
		panic("toolgroups: serialise definitions: " + err.Error())
	}
	s.wire = wire
}

// Slot holds the current View of some who share it. The zero Slot denies.
// View and Publish are safe for concurrent use.
type Slot struct{ view atomic.Pointer[View] }

var nothing View

// View gives the View in force.
func (s *Slot) View() *View {
	if v := s.view.Load(); v != nil {
		return v
	}
	return &nothing
}

// Publish puts v in force.
func (s *Slot) Publish(v *View) { s.view.Store(v) }

// Reaches says whether a binding lets a tool through, in any state.
func (s *Snapshot) Reaches(b Binding, h *Handle) bool {
	for _, g := range s.chosen(b) {
		if slices.Contains(s.members(g), h) {
			return true
		}
	}
	return false
}

// pick lists the handles a binding reaches, each once, in order.
func (s *Snapshot) pick(b Binding) []*Handle {
	seen := newBits(s.width)
	var list []*Handle
	for _, g := range s.chosen(b) {
		for _, h := range s.members(g) {
			if !seen.has(h.index) {
				seen.add(h.index)
				list = append(list, h)
			}
		}
	}
	return list
}

func (s *Snapshot) bits(b Binding) bits { return bitsOf(s.width, s.pick(b)) }

// chosen lists the groups a binding names that still have the bound owner.
func (s *Snapshot) chosen(b Binding) []*group {
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

func (s *Snapshot) shelf(handles []*Handle, state string) *Shelf {
	var visible []*Handle
	for _, h := range handles {
		if h.Definition.States == nil || slices.Contains(h.Definition.States, "*") ||
			state != "" && slices.Contains(h.Definition.States, state) {
			visible = append(visible, h)
		}
	}
	return &Shelf{revision: s.revision, bits: bitsOf(s.width, visible), handles: visible}
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
