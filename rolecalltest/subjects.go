package rolecalltest

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// stranger is the owner of groups that get in the way of those under test.
const stranger toolgroups.GroupOwner = "module:stranger"

// subjects are the groups under test.
type subjects struct {
	builtin []grouptest.GroupSpec // stand for the built-in groups; they only count their runs
	groups  []grouptest.GroupSpec
	others  []grouptest.GroupSpec // with the ids and tools of groups, and of another owner
	ids     []toolgroups.GroupID  // of all groups, and one that does not exist
	names   []string              // of all tools, and one that does not exist
	states  []string              // that the tools name
}

func newSubjects(s *toolgroups.Snapshot) *subjects {
	p := &subjects{ids: []toolgroups.GroupID{"no-group"}, names: []string{"no_tool"}, states: []string{"", toolgroups.UndefinedState, "another state"}}
	for _, info := range s.ListGroups() {
		spec := p.add(s, info)
		if info.Owner == toolgroups.Builtin {
			p.builtin = append(p.builtin, spec)
			continue
		}
		p.groups = append(p.groups, spec)
		other := spec
		other.Owner = stranger
		p.others = append(p.others, other, grouptest.GroupSpec{ID: "stranger", Owner: stranger, Tools: spec.Tools, Refs: spec.Refs})
	}
	slices.Sort(p.states)
	p.states = slices.Compact(p.states)
	return p
}

// add returns a group as it is registered in s, and adds its names to those of p.
func (p *subjects) add(s *toolgroups.Snapshot, info toolgroups.GroupInfo) grouptest.GroupSpec {
	spec := grouptest.GroupSpec{ID: info.ID, Owner: info.Owner, Text: info.Description, Children: info.Children}
	p.ids = append(p.ids, info.ID)
	for _, name := range s.DirectTools(info.ID) {
		handle, _ := s.LookupTool(name)
		if handle.Group != info.ID { // the tool of another group
			spec.Refs = append(spec.Refs, name)
			continue
		}
		d := handle.Definition
		of := grouptest.ToolSpec{Name: name, States: d.States, Moves: d.State, Effect: d.Effect}
		if info.Owner != toolgroups.Builtin {
			of.Definition = &d
		}
		spec.Tools = append(spec.Tools, of)
		p.names, p.states = append(p.names, name), append(append(p.states, d.State), d.States...)
	}
	return spec
}

// newManager returns a manager with the built-in groups.
func (p *subjects) newManager() (*grouptest.CheckedManager, error) {
	m := grouptest.NewCheckedManager(toolgroups.ReservedIDs(), p.names...)
	for _, g := range p.builtin {
		if _, err := m.Register(g); err != nil {
			return m, err
		}
	}
	return m, nil
}

// fullManager returns a manager with the built-in groups and those under test. Groups with
// references are registered again at the end, as a reference is bound to a tool that is there.
func (p *subjects) fullManager() (*grouptest.CheckedManager, error) {
	m, err := p.newManager()
	if err != nil {
		return m, err
	}
	withRefs := slices.DeleteFunc(slices.Clone(p.groups), func(g grouptest.GroupSpec) bool { return g.Refs == nil })
	for _, g := range append(slices.Clone(p.groups), withRefs...) {
		code, err := m.Register(g)
		if err != nil {
			return m, err
		}
		if code != "" {
			return m, errcode.New(code, "register the %v with the other groups of the modules", g)
		}
	}
	return m, nil
}

// trial is one random case, which notes in words what it does.
type trial struct {
	*proptest.Choices
	steps []string
}

// withSteps returns a property for proptest whose error has the steps of its trial.
func withSteps(hold func(*trial) error) func(*proptest.Choices) error {
	return func(choices *proptest.Choices) error {
		c := &trial{Choices: choices}
		if err := hold(c); err != nil {
			return &proptest.CaseError{Steps: c.steps, Err: err}
		}
		return nil
	}
}

// note adds a step.
func (t *trial) note(format string, args ...any) {
	t.steps = append(t.steps, fmt.Sprintf(format, args...))
}

// register registers a group. The code is not "" if the group was rejected.
func (t *trial) register(m *grouptest.CheckedManager, g grouptest.GroupSpec) (errcode.Code, error) {
	t.note("register the %v", g)
	code, err := m.Register(g)
	if code != "" {
		t.note("  it is rejected: %s", code)
	}
	return code, err
}

// unregister unregisters a group, which need not be there.
func (t *trial) unregister(m *grouptest.CheckedManager, g grouptest.GroupSpec) error {
	t.note("unregister the group %q of %s", g.ID, g.Owner)
	_, err := m.Unregister(g.Owner, g.ID)
	return err
}

// pickGroup returns one of the groups under test, or one that gets in its way.
func (p *subjects) pickGroup(c *trial) grouptest.GroupSpec {
	if len(p.groups) == 0 || c.OneIn(3) {
		return proptest.PickFrom(c.Choices, append(p.others, grouptest.GroupSpec{ID: "stranger", Owner: stranger})...)
	}
	return proptest.PickFrom(c.Choices, p.groups...)
}

// pickIDs returns a few ids of groups.
func pickIDs(c *trial, list []toolgroups.GroupID) (few []toolgroups.GroupID) {
	for range c.Pick(5) {
		few = append(few, proptest.PickFrom(c.Choices, list...))
	}
	return few
}
