package property_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Parts of random groups. There are only a few names, so that owners collide.
var (
	groupIDs     = []toolgroups.GroupID{"alpha", "beta", "gamma", "delta", "lab/one", "lab/two"}
	toolNames    = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"}
	owners       = []toolgroups.GroupOwner{"module:a", "module:b", toolgroups.Config}
	states       = []string{"", "draft", "final", toolgroups.Undefined}
	stateLists   = [][]string{nil, nil, nil, {"*"}, {"draft"}, {"draft", "final"}, {toolgroups.Undefined}, {}}
	effects      = []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly}
	invalidNames = []string{"", "nowhere", "T0", "t0 ", "*", "alpha", "t\u043e0"}
)

// groupSpec is a group as the naive models know it.
type groupSpec struct {
	id    toolgroups.GroupID
	owner toolgroups.GroupOwner
	text  string
	tools []toolSpec
	refs  []string
	bound map[string]toolgroups.GroupOwner // owners of refs when the group was registered
}

// toolSpec is a tool as the naive models know it.
type toolSpec struct {
	name   string
	states []string // nil allows every state
	moves  string   // the state after a successful call
	effect tool.Effect
}

// anyGroup returns a random group; about one in ten has a duplicate tool name.
func anyGroup(t *proptest.Choices) groupSpec {
	g := groupSpec{id: proptest.PickFrom(t, groupIDs...), owner: proptest.PickFrom(t, owners...), text: fmt.Sprint("text ", t.Pick(9))}
	for _, name := range someOf(t, 4, toolNames) {
		if !g.has(name) || t.OneIn(5) {
			g.tools = append(g.tools, toolSpec{name, proptest.PickFrom(t, stateLists...), proptest.PickFrom(t, states...), proptest.PickFrom(t, effects...)})
		}
	}
	if t.OneIn(3) {
		g.refs = someOf(t, 4, toolNames)
	}
	return g
}

func (g groupSpec) has(name string) bool {
	return slices.ContainsFunc(g.tools, func(t toolSpec) bool { return t.name == name })
}

// runCounts counts the runs of handlers by tool name.
type runCounts map[string]*atomic.Int64

func newRunCounts() runCounts {
	r := runCounts{}
	for _, name := range countedNames {
		r[name] = new(atomic.Int64)
	}
	return r
}

func (r runCounts) of(name string) int64 {
	if n, ok := r[name]; ok {
		return n.Load()
	}
	return 0
}

// knows reports whether a tool is one of toolNames.
func (r runCounts) knows(name string) bool { return slices.Contains(toolNames, name) && r[name] != nil }

// countingTool is a tool that accepts any object and counts its runs.
type countingTool struct {
	definition tool.Definition
	runs       *atomic.Int64
}

func (t countingTool) Definition() tool.Definition { return t.definition }

func (t countingTool) Call(context.Context, tool.Call) (tool.Result, error) {
	if t.runs != nil {
		t.runs.Add(1)
	}
	return tool.Result{Text: "done"}, nil
}

// group returns the group to register with a Manager.
func (g groupSpec) group(r runCounts) toolgroups.Group {
	out := toolgroups.Group{ID: g.id, Description: g.text, Refs: g.refs}
	for _, t := range g.tools {
		out.Tools = append(out.Tools, countingTool{tool.Definition{
			Name: t.name, Description: "counts", Input: json.RawMessage(`{"type":"object"}`), State: t.moves, States: t.states, Effect: t.effect,
		}, r[t.name]})
	}
	return out
}

// naiveRegistry is a naive model of a Manager. It has the groups in the order
// of their first registration.
type naiveRegistry struct {
	reserved []toolgroups.GroupID
	groups   []groupSpec
}

func (r *naiveRegistry) find(id toolgroups.GroupID) *groupSpec {
	for i := range r.groups {
		if r.groups[i].id == id {
			return &r.groups[i]
		}
	}
	return nil
}

func (r *naiveRegistry) owner(id toolgroups.GroupID) toolgroups.GroupOwner {
	if g := r.find(id); g != nil {
		return g.owner
	}
	return ""
}

// groupOfTool returns the group that owns a tool, nil if there is none.
func (r *naiveRegistry) groupOfTool(name string) *groupSpec {
	for i := range r.groups {
		if r.groups[i].has(name) {
			return &r.groups[i]
		}
	}
	return nil
}

func (r *naiveRegistry) tool(name string) (toolSpec, bool) {
	if g := r.groupOfTool(name); g != nil {
		i := slices.IndexFunc(g.tools, func(t toolSpec) bool { return t.name == name })
		return g.tools[i], true
	}
	return toolSpec{}, false
}

// register registers a group. It returns the code of the error, in which case
// nothing changes, or of the warning.
func (r *naiveRegistry) register(g groupSpec) (code, warning errcode.Code) {
	if slices.Contains(r.reserved, g.id) && g.owner != toolgroups.Builtin {
		return errcode.ReservedGroupID, ""
	}
	for i, t := range g.tools {
		if (groupSpec{tools: g.tools[:i]}).has(t.name) {
			return errcode.DuplicateToolName, ""
		}
	}
	old := r.find(g.id)
	if old != nil && old.owner != g.owner {
		return errcode.DuplicateGroupID, ""
	}
	for _, t := range g.tools {
		if home := r.groupOfTool(t.name); home != nil && home.id != g.id {
			return errcode.DuplicateToolName, ""
		}
	}
	g.bound = map[string]toolgroups.GroupOwner{}
	for _, name := range g.refs {
		if home := r.groupOfTool(name); home != nil {
			g.bound[name] = home.owner
		}
	}
	if old != nil {
		*old = g
		return "", errcode.DuplicateGroupID
	}
	r.groups = append(r.groups, g)
	return "", ""
}

// unregister removes a group and returns the code of the error, "" on success.
func (r *naiveRegistry) unregister(owner toolgroups.GroupOwner, id toolgroups.GroupID) errcode.Code {
	switch {
	case slices.Contains(r.reserved, id):
		return errcode.CannotUnregisterReserved
	case r.owner(id) != owner || owner == "":
		return errcode.GroupNotFound
	}
	r.groups = slices.DeleteFunc(r.groups, func(g groupSpec) bool { return g.id == id })
	return ""
}

// members lists the tools of a group: its own, then the referenced ones that it
// is bound to. Only groups of the configuration may reference tools of other
// owners, and never those of a reserved group.
func (r *naiveRegistry) members(g *groupSpec) []string {
	var names []string
	for _, t := range g.tools {
		names = append(names, t.name)
	}
	for _, name := range g.refs {
		home := r.groupOfTool(name)
		if home == nil || home.owner != g.bound[name] || slices.Contains(names, name) {
			continue
		}
		if home.owner == g.owner || g.owner == toolgroups.Config && !slices.Contains(r.reserved, home.id) {
			names = append(names, name)
		}
	}
	return names
}

// definitions lists the tools of groups without duplicates, in the order of
// ids, then of registration.
func (r *naiveRegistry) definitions(ids ...toolgroups.GroupID) []string {
	var names []string
	for _, id := range ids {
		if g := r.find(id); g != nil {
			for _, name := range r.members(g) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func (r *naiveRegistry) ids() []toolgroups.GroupID {
	var ids []toolgroups.GroupID
	for _, g := range r.groups {
		ids = append(ids, g.id)
	}
	return ids
}

// names lists all tools.
func (r *naiveRegistry) names() []string { return r.definitions(r.ids()...) }

// checkedManager is a Manager with a naive model of it.
type checkedManager struct {
	*toolgroups.Manager
	naive naiveRegistry
	runs  runCounts
}

func newCheckedManager() *checkedManager {
	return &checkedManager{Manager: toolgroups.NewManager(toolgroups.ReservedIDs()...), naive: naiveRegistry{reserved: builtinIDs()}, runs: newRunCounts()}
}

// register registers a group with both, which must agree.
func (m *checkedManager) register(g groupSpec) (errcode.Code, error) {
	warning, err := grouptest.RegisterGroup(m.Manager, g.owner, g.group(m.runs))
	code, wantWarning := m.naive.register(g)
	if errcode.CodeOf(err) != code || warning != wantWarning {
		return code, fmt.Errorf("register %+v: %v, warning %q; want code %q, warning %q", g, err, warning, code, wantWarning)
	}
	return code, nil
}

// unregister unregisters a group with both, which must agree.
func (m *checkedManager) unregister(owner toolgroups.GroupOwner, id toolgroups.GroupID) (errcode.Code, error) {
	err := grouptest.UnregisterGroup(m.Manager, owner, id)
	code := m.naive.unregister(owner, id)
	if errcode.CodeOf(err) != code {
		return code, fmt.Errorf("unregister %s of %s: %v, want code %q", id, owner, err, code)
	}
	return code, nil
}

// step registers a random group or, once in three, unregisters one.
func (m *checkedManager) step(t *proptest.Choices) error {
	g := anyGroup(t)
	if owner := m.naive.owner(g.id); owner != "" && t.OneIn(2) {
		g.owner = owner
	}
	if t.OneIn(3) {
		_, err := m.unregister(g.owner, g.id)
		return err
	}
	_, err := m.register(g)
	return err
}

func definitionNames(list []tool.Definition) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}
