package property_test

import (
	"fmt"
	"slices"

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
	states       = []string{"", "draft", "final", toolgroups.UndefinedState}
	stateLists   = [][]string{nil, nil, nil, {"*"}, {"draft"}, {"draft", "final"}, {toolgroups.UndefinedState}, {}}
	effects      = []tool.Effect{tool.Mutating, tool.Idempotent, tool.ReadOnly}
	invalidNames = []string{"", "nowhere", "T0", "t0 ", "*", "alpha", "t\u043e0"}
)

type (
	groupSpec     = grouptest.GroupSpec
	toolSpec      = grouptest.ToolSpec
	naiveRegistry = grouptest.Registry
)

// anyGroup returns a random group; about one in ten has a duplicate tool name.
func anyGroup(t *proptest.Choices) groupSpec {
	g := groupSpec{ID: proptest.PickFrom(t, groupIDs...), Owner: proptest.PickFrom(t, owners...), Text: fmt.Sprint("text ", t.Pick(9))}
	for _, name := range someOf(t, 4, toolNames) {
		if !g.Has(name) || t.OneIn(5) {
			g.Tools = append(g.Tools, toolSpec{Name: name, States: proptest.PickFrom(t, stateLists...), Moves: proptest.PickFrom(t, states...), Effect: proptest.PickFrom(t, effects...)})
		}
	}
	if t.OneIn(3) {
		g.Refs = someOf(t, 4, toolNames)
	}
	if t.OneIn(3) {
		g.Children = someOf(t, 3, groupIDs)
		if t.OneIn(9) {
			g.Children = append(g.Children, proptest.PickFrom(t, builtinIDs()...))
		}
	}
	return g
}

// knowsTool reports whether a tool is one of toolNames.
func knowsTool(name string) bool { return slices.Contains(toolNames, name) }

// checkedManager is a Manager with a naive model of it.
type checkedManager struct{ *grouptest.CheckedManager }

func newCheckedManager() *checkedManager {
	return &checkedManager{grouptest.NewCheckedManager(builtinIDs(), countedNames...)}
}

// step registers a random group or, once in three, unregisters one.
func (m *checkedManager) step(t *proptest.Choices) error {
	g := anyGroup(t)
	if owner := m.Naive.OwnerOf(g.ID); owner != "" && t.OneIn(2) {
		g.Owner = owner
	}
	if t.OneIn(3) {
		_, err := m.Unregister(g.Owner, g.ID)
		return err
	}
	_, err := m.Register(g)
	return err
}

func definitionNames(list []tool.Definition) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}
