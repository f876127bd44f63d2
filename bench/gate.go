package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// world is a registry of groups with ten tools each and one agent that holds
// the first ten groups: 100 visible tools.
type world struct {
	groups *toolgroups.Manager
	slot   *toolgroups.ViewRef
	gate   *gate.Gate
	seat   *gate.Subject
	names  []string // 64 names, every other one denied
	held   []toolgroups.GroupID
}

// Resolve implements gate.Directory.
func (w *world) Resolve(identity.Principal) (*toolgroups.ViewRef, string) { return w.slot, "" }

func newWorld(tools int, states []string) (*world, error) {
	w := &world{groups: toolgroups.NewManager(), slot: new(toolgroups.ViewRef)}
	const each = 10
	for g := range max(1, tools/each) {
		id := toolgroups.GroupID(fmt.Sprintf("group_%d", g))
		group := toolgroups.Group{ID: id, Description: "a group of the benchmark"}
		for i := range each {
			t, err := newTool(fmt.Sprintf("tool_%d_%d", g, i), states)
			if err != nil {
				return nil, err
			}
			group.Tools = append(group.Tools, t)
		}
		if _, err := w.groups.RegisterGroup("bench", group); err != nil {
			return nil, err
		}
		if g < 10 {
			w.held = append(w.held, id)
		}
	}
	return w, w.bind(tools)
}

func (w *world) bind(tools int) error {
	s := w.groups.Snapshot()
	w.slot.PublishView(s.Compile(s.BindSet(toolgroups.Of(w.held...))))
	var err error
	w.gate, err = gate.New(gate.Config{Groups: w.groups, Directory: w, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	w.seat = w.gate.Subject(identity.ByAgent("a"))
	for i := range 64 {
		name := fmt.Sprintf("tool_%d_%d", i/2%len(w.held), i%10)
		if i%2 == 1 { // a group the agent does not hold, or none at all
			name = fmt.Sprintf("tool_%d_%d", len(w.held)+i%max(1, tools/10), i%10)
		}
		w.names = append(w.names, name)
	}
	return nil
}

type input struct {
	Path   string `json:"path" jsonschema:"the path, relative to the workspace, of the file that is to be read"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first byte to read; 0 when it is left out"`
	Length int    `json:"length,omitempty" jsonschema:"how many bytes to read at the most"`
}

func newTool(name string, states []string) (tool.Tool, error) {
	return tool.New(name, "A tool of the benchmark with a description as long as such descriptions are, which says what it does, when to use it, and what it answers.",
		func(context.Context, input) (string, error) { return "", nil }, &tool.Options{States: states})
}

var sink atomic.Uint64

// decider is the question every candidate answers: about the i-th of 64 names.
type decider interface{ allow(i int) bool }

// ask puts the question n times, each through the same indirect call.
func ask(d decider) func(n int) {
	return func(n int) {
		var allowed uint64
		for i := range n {
			if d.allow(i & 63) {
				allowed++
			}
		}
		sink.Add(allowed)
	}
}

func (w *world) allow(i int) bool { return w.seat.Authorize(w.names[i]).Allowed() }

// gateComparison holds the gate against the floor and the seed's own design.
func gateComparison() (comparison, error) {
	w, err := newWorld(2000, nil)
	if err != nil {
		return comparison{}, err
	}
	stateful, err := newWorld(2000, []string{toolgroups.Undefined, "analysis"})
	if err != nil {
		return comparison{}, err
	}
	return comparison{title: "gate: one bound agent with 100 of 2,000 tools asked for 64 names, half denied", candidates: []candidate{
		{"integer bitset through an atomic pointer", 20_000_000, ask(newBitset(2000))},
		{"seed design: maps under RWMutex", 2_000_000, ask(newSeedMaps(w))},
		{"rolecall Authorize", 5_000_000, ask(w)},
		{"rolecall Authorize, tools limited to states", 5_000_000, ask(stateful)},
		{"rolecall Authorize, allowed only", 5_000_000, w.only(true)},
		{"rolecall Authorize, denied only", 5_000_000, w.only(false)},
	}}, nil
}

// only asks for the allowed or the denied half of the names.
func (w *world) only(allowed bool) func(n int) {
	half := &world{seat: w.seat}
	for range 2 {
		for _, name := range w.names {
			if w.seat.Authorize(name).Allowed() == allowed {
				half.names = append(half.names, name)
			}
		}
	}
	return ask(half)
}

// bitset is the floor: nothing but the bit of a known number.
type bitset struct {
	bits atomic.Pointer[[]uint64]
	ids  [64]uint32
}

func newBitset(tools int) *bitset {
	bits := make([]uint64, (tools+63)/64)
	for i := range 100 {
		n := i * 7 % tools
		bits[n/64] |= 1 << (n % 64)
	}
	b := &bitset{}
	b.bits.Store(&bits)
	for i := range b.ids {
		b.ids[i] = uint32(i * 31 % tools)
	}
	return b
}

func (b *bitset) allow(i int) bool {
	id := b.ids[i]
	return (*b.bits.Load())[id>>6]>>(id&63)&1 == 1
}

// seedMaps is the ToolGroupManager of seed 002 as written, with a lock.
type seedMaps struct {
	mu      sync.RWMutex
	names   []string
	groupOf map[string]string
	roles   map[string][]string
	agents  map[string]string
}

func newSeedMaps(w *world) *seedMaps {
	m := &seedMaps{names: w.names, groupOf: map[string]string{}, roles: map[string][]string{}, agents: map[string]string{"a": "role"}}
	for _, h := range w.groups.Snapshot().Tools() {
		m.groupOf[h.Definition.Name] = string(h.Group)
	}
	for _, id := range w.held {
		m.roles["role"] = append(m.roles["role"], string(id))
	}
	return m
}

func (m *seedMaps) allow(i int) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	group := m.groupOf[m.names[i]]
	return slices.Contains(m.roles[m.agents["a"]], group)
}

// scaleComparison shows that the number of tools does not matter.
func scaleComparison() (comparison, error) {
	c := comparison{title: "gate: from 10 to 100,000 registered tools"}
	for _, tools := range []int{10, 100, 1000, 10_000, 100_000} {
		w, err := newWorld(tools, nil)
		if err != nil {
			return c, err
		}
		c.candidates = append(c.candidates, candidate{fmt.Sprintf("%d tools", tools), 5_000_000, ask(w)})
	}
	return c, nil
}

// visibleComparison holds the tools of a turn against a copy of ready bytes.
func visibleComparison() (comparison, error) {
	w, err := newWorld(2000, nil)
	if err != nil {
		return comparison{}, err
	}
	ready := bytes.Clone(w.seat.ToolJSON())
	buffer := make([]byte, len(ready))
	return comparison{title: fmt.Sprintf("visible tools of a turn: 100 tools, %d KB of JSON, put into a request", len(ready)>>10), candidates: []candidate{
		{"memcpy of ready bytes", 50_000, func(n int) {
			for range n {
				copy(buffer, ready)
			}
		}},
		{"rolecall Wire, copied", 50_000, func(n int) {
			for range n {
				copy(buffer, w.gate.Subject(identity.ByAgent("a")).ToolJSON())
			}
		}},
		{"merge and marshal each turn", 50, func(n int) {
			for range n {
				wire, err := tool.MarshalTools(w.groups.Snapshot().Definitions(w.held...))
				if err != nil {
					panic(err)
				}
				copy(buffer, wire)
			}
		}},
	}}, nil
}
