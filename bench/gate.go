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
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// gateFixture is a registry of groups with ten tools each and one agent with the first
// ten groups: 100 visible tools.
type gateFixture struct {
	groups     *toolgroups.Manager
	view       *toolgroups.ViewRef
	gate       *gate.Gate
	subject    *gate.Subject
	names      []string // 64 tool names, every other one denied
	roleGroups []toolgroups.GroupID
}

// ResolveView implements gate.ViewResolver.
func (w *gateFixture) ResolveView(identity.Principal) (*toolgroups.ViewRef, string) {
	return w.view, ""
}

// newGateFixture registers the given number of tools, each limited to states if any
// are given.
func newGateFixture(tools int, states []string) (*gateFixture, error) {
	w := &gateFixture{groups: toolgroups.NewManager(), view: new(toolgroups.ViewRef)}
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
		if _, err := grouptest.RegisterGroup(w.groups, "bench", group); err != nil {
			return nil, err
		}
		if g < 10 {
			w.roleGroups = append(w.roleGroups, id)
		}
	}
	return w, w.bind(tools)
}

// bind compiles the agent's view and chooses the names to authorize.
func (w *gateFixture) bind(tools int) error {
	s := w.groups.CurrentSnapshot()
	w.view.PublishView(s.Compile(s.PinOwners(toolgroups.SetOf(w.roleGroups...))))
	var err error
	w.gate, err = gate.New(gate.Config{Groups: w.groups, Directory: w, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	w.subject = w.gate.Subject(identity.ByAgent("a"))
	for i := range 64 {
		name := fmt.Sprintf("tool_%d_%d", i/2%len(w.roleGroups), i%10)
		if i%2 == 1 { // a group outside the agent's role, or a tool that does not exist
			name = fmt.Sprintf("tool_%d_%d", len(w.roleGroups)+i%max(1, tools/10), i%10)
		}
		w.names = append(w.names, name)
	}
	return nil
}

type toolInput struct {
	Path   string `json:"path" jsonschema:"the path, relative to the workspace, of the file that is to be read"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first byte to read; 0 when it is left out"`
	Length int    `json:"length,omitempty" jsonschema:"how many bytes to read at the most"`
}

func newTool(name string, states []string) (tool.Tool, error) {
	return tool.New(name, "A tool of the benchmark. Its description is as long as descriptions usually are; they say what a tool does, when to use it, and what it answers.",
		func(context.Context, toolInput) (string, error) { return "", nil }, &tool.Options{States: states})
}

var sink atomic.Uint64

// authorizer decides about the i-th of 64 names. Every candidate implements it.
type authorizer interface{ allow(i int) bool }

// authorizeNames decides n times through the same indirect call.
func authorizeNames(d authorizer) func(n int) {
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

func (w *gateFixture) allow(i int) bool { return w.subject.AuthorizeTool(w.names[i]).Allowed() }

// gateComparison compares the gate with a bitset and with a simple design of maps
// under a lock.
func gateComparison() (comparison, error) {
	w, err := newGateFixture(2000, nil)
	if err != nil {
		return comparison{}, err
	}
	stateful, err := newGateFixture(2000, []string{toolgroups.UndefinedState, "analysis"})
	if err != nil {
		return comparison{}, err
	}
	return comparison{title: "gate: one bound agent with 100 of 2,000 tools, 64 names, half denied", candidates: []candidate{
		{"integer bitset through an atomic pointer", 20_000_000, authorizeNames(newBitset(2000))},
		{"maps under RWMutex", 2_000_000, authorizeNames(newLockedMaps(w))},
		{"rolecall Authorize", 5_000_000, authorizeNames(w)},
		{"rolecall Authorize, tools limited to states", 5_000_000, authorizeNames(stateful)},
		{"rolecall Authorize, allowed only", 5_000_000, w.authorizeHalf(true)},
		{"rolecall Authorize, denied only", 5_000_000, w.authorizeHalf(false)},
	}}, nil
}

// authorizeHalf decides about the allowed or the denied half of the names.
func (w *gateFixture) authorizeHalf(allowed bool) func(n int) {
	half := &gateFixture{subject: w.subject}
	for range 2 {
		for _, name := range w.names {
			if w.subject.AuthorizeTool(name).Allowed() == allowed {
				half.names = append(half.names, name)
			}
		}
	}
	return authorizeNames(half)
}

// bitset is the floor: one bit per tool, looked up by a known number.
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

// lockedMaps is the simple design: maps from agent to role to groups, under a lock.
type lockedMaps struct {
	mu      sync.RWMutex
	names   []string
	groupOf map[string]string
	roles   map[string][]string
	agents  map[string]string
}

func newLockedMaps(w *gateFixture) *lockedMaps {
	m := &lockedMaps{names: w.names, groupOf: map[string]string{}, roles: map[string][]string{}, agents: map[string]string{"a": "role"}}
	for _, h := range w.groups.CurrentSnapshot().ListTools() {
		m.groupOf[h.Definition.Name] = string(h.Group)
	}
	for _, id := range w.roleGroups {
		m.roles["role"] = append(m.roles["role"], string(id))
	}
	return m
}

func (m *lockedMaps) allow(i int) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	group := m.groupOf[m.names[i]]
	return slices.Contains(m.roles[m.agents["a"]], group)
}

// scaleComparison shows that the number of registered tools does not matter.
func scaleComparison() (comparison, error) {
	c := comparison{title: "gate: from 10 to 100,000 registered tools"}
	for _, tools := range []int{10, 100, 1000, 10_000, 100_000} {
		w, err := newGateFixture(tools, nil)
		if err != nil {
			return c, err
		}
		c.candidates = append(c.candidates, candidate{fmt.Sprintf("%d tools", tools), 5_000_000, authorizeNames(w)})
	}
	return c, nil
}

// visibleComparison compares the tool list of a turn with a copy of ready bytes.
func visibleComparison() (comparison, error) {
	w, err := newGateFixture(2000, nil)
	if err != nil {
		return comparison{}, err
	}
	ready := bytes.Clone(w.subject.ToolJSON())
	buffer := make([]byte, len(ready))
	return comparison{title: fmt.Sprintf("visible tools of a turn: 100 tools, %d KB of JSON, put into a request", len(ready)>>10), candidates: []candidate{
		{"memcpy of ready bytes", 50_000, func(n int) {
			for range n {
				copy(buffer, ready)
			}
		}},
		{"rolecall ToolJSON, copied", 50_000, func(n int) {
			for range n {
				copy(buffer, w.gate.Subject(identity.ByAgent("a")).ToolJSON())
			}
		}},
		{"merge and marshal each turn", 50, func(n int) {
			for range n {
				wire, err := tool.MarshalTools(w.groups.CurrentSnapshot().ToolDefinitions(w.roleGroups...))
				if err != nil {
					panic(err)
				}
				copy(buffer, wire)
			}
		}},
	}}, nil
}
