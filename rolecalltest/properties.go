package rolecalltest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// cases is the number of cases of each property.
const cases = 50

// CheckProperties loads modules and checks nine properties of their tool groups with random
// cases, each as a test of its own:
//
//  1. A group that is registered is there, with all its tools.
//  2. Of a group that is unregistered nothing is left.
//  3. A reserved id, and the name of a built-in tool, are rejected.
//  4. A role is offered exactly the tools of its groups, each once.
//  5. A call of another tool is denied, names the tool, and does not run.
//  6. Groups are listed with their id, description and number of tools.
//  7. The groups of a role are the same after a restart.
//  8. A role without groups of its own is offered the tools of all groups.
//  9. The tools that a role sees are those that it may call, in each workflow state.
//
// The definitions are those of the modules. Their functions are not called. A module without
// tool groups fails the test. A failure names the seed: the environment variable
// ROLECALL_TEST_SEED repeats it.
func CheckProperties(t *testing.T, list ...rolecall.Module) {
	t.Helper()
	snapshot := newHost(t, list).groups.CurrentSnapshot()
	for _, m := range list {
		if !slices.Contains(snapshot.ServerNames(), m.Name()) {
			t.Fatalf("the module %s has no tool groups, so there is nothing to check", nameOf(m))
		}
	}
	p := newSubjects(snapshot)
	flags := proptest.WithoutFlags(cases)
	for _, property := range []struct {
		name string
		size int // choices of the longest case
		hold func(*proptest.Choices) error
	}{
		{"1 registered", 60, p.registered},
		{"2 unregistered", 60, p.unregistered},
		{"3 reserved", 20, p.reservedRejected},
		{"4 definitions", 60, p.definitions},
		{"5 denied", 40, p.denied},
		{"6 listed", 60, p.listed},
		{"7 roles persist", 40, p.rolesPersist},
		{"8 default", 20, p.defaultIsAll},
		{"9 visible is callable", 60, p.visibleIsCallable},
	} {
		t.Run(property.name, func(t *testing.T) {
			flags.CheckProperty(t, proptest.CaseSize{MaxChoices: property.size}, property.hold)
		})
	}
}

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
	p := &subjects{ids: []toolgroups.GroupID{"no-group"}, names: []string{"no_tool"}, states: []string{"", toolgroups.Undefined, "another state"}}
	for _, info := range s.ListGroups() {
		spec := grouptest.GroupSpec{ID: info.ID, Owner: info.Owner, Text: info.Description}
		for _, name := range info.Tools {
			handle, _ := s.LookupTool(name)
			d := handle.Definition
			of := grouptest.ToolSpec{Name: name, States: d.States, Moves: d.State, Effect: d.Effect}
			if info.Owner != toolgroups.Builtin {
				of.Definition = &d
			}
			spec.Tools = append(spec.Tools, of)
			p.names, p.states = append(p.names, name), append(append(p.states, d.State), d.States...)
		}
		p.ids = append(p.ids, info.ID)
		if info.Owner == toolgroups.Builtin {
			p.builtin = append(p.builtin, spec)
			continue
		}
		p.groups = append(p.groups, spec)
		other := spec
		other.Owner = stranger
		p.others = append(p.others, other, grouptest.GroupSpec{ID: "stranger", Owner: stranger, Tools: spec.Tools})
	}
	slices.Sort(p.states)
	p.states = slices.Compact(p.states)
	return p
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

// any returns one of the groups under test, or one that gets in its way.
func (p *subjects) any(c *proptest.Choices) grouptest.GroupSpec {
	if len(p.groups) == 0 || c.OneIn(3) {
		return proptest.PickFrom(c, append(p.others, grouptest.GroupSpec{ID: "stranger", Owner: stranger})...)
	}
	return proptest.PickFrom(c, p.groups...)
}

// some returns a few of a list.
func some[T any](c *proptest.Choices, list []T) (few []T) {
	for range c.Pick(5) {
		few = append(few, proptest.PickFrom(c, list...))
	}
	return few
}

// each runs check after each of a number of changes of a registry.
func (p *subjects) each(c *proptest.Choices, check func(*grouptest.CheckedManager, grouptest.GroupSpec, errcode.Code) error) error {
	m, err := p.newManager()
	for err == nil && !c.IsEmpty() {
		g := p.any(c)
		if c.OneIn(3) {
			_, err = m.Unregister(g.Owner, g.ID)
			continue
		}
		var code errcode.Code
		if code, err = m.Register(g); err == nil {
			err = check(m, g, code)
		}
	}
	return err
}

func (p *subjects) registered(c *proptest.Choices) error {
	return p.each(c, func(m *grouptest.CheckedManager, g grouptest.GroupSpec, code errcode.Code) error {
		if code != "" {
			return nil
		}
		return m.CheckContains(g)
	})
}

func (p *subjects) unregistered(c *proptest.Choices) error {
	return p.each(c, func(m *grouptest.CheckedManager, g grouptest.GroupSpec, code errcode.Code) error {
		if code != "" {
			return nil
		}
		if _, err := m.Unregister(g.Owner, g.ID); err != nil {
			return err
		}
		return m.CheckRemoved(g)
	})
}

func (p *subjects) reservedRejected(c *proptest.Choices) error {
	m, err := p.newManager()
	for err == nil && !c.IsEmpty() {
		g, id := p.any(c), proptest.PickFrom(c, toolgroups.ReservedIDs()...)
		name := proptest.PickFrom(c, proptest.PickFrom(c, p.builtin...).Tools...).Name
		err = errors.Join(m.CheckReserved(g, id), m.CheckBuiltinName(g, name))
	}
	return err
}

func (p *subjects) definitions(c *proptest.Choices) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckDefinitions(some(c, p.ids), p.states, p.names)
	})
}

func (p *subjects) listed(c *proptest.Choices) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckQueries()
	})
}

func (p *subjects) visibleIsCallable(c *proptest.Choices) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckVisible(some(c, p.ids), p.states, p.names)
	})
}

// complete returns a manager with the built-in groups and those under test.
func (p *subjects) complete() (*grouptest.CheckedManager, error) {
	m, err := p.newManager()
	for _, g := range p.groups {
		if err == nil {
			_, err = m.Register(g)
		}
	}
	return m, err
}

var operator = tool.Call{By: identity.ByOperator("test")}

// denied calls tools as a caller whose role has some of the groups.
func (p *subjects) denied(c *proptest.Choices) (err error) {
	m, err := p.complete()
	if err != nil {
		return err
	}
	rt, err := newRuntime(memory.New(), m.Manager)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rt.Close()) }()
	ctx, list := context.Background(), some(c, p.ids[1:])
	use := toolgroups.SetOf(list...)
	role, err := rt.CreateRole(ctx, operator, org.RoleSpec{Name: "caller", Use: &use})
	if err != nil {
		return err
	}
	by := identity.ByCaller("caller", role.ID)
	for !c.IsEmpty() {
		name, before := proptest.PickFrom(c, p.names...), m.Runs.Of
		granted := slices.Contains(m.Naive.Definitions(list...), name)
		ran, visible := before(name), slices.Contains(rt.Gate().Subject(by).ToolNames(), name)
		out, err := rt.InvokeTool(ctx, by, name, json.RawMessage(`{}`))
		switch {
		case err != nil:
			return err
		case visible && !granted:
			return fmt.Errorf("the tool %s is offered with the groups %v, and is not in them", name, list)
		case visible && !out.Allowed() && out.Code() != errcode.InvalidArguments && out.Code() != errcode.Unauthenticated:
			return fmt.Errorf("a call of %s with the groups %v was denied: %v", name, list, out.Err)
		case !visible && (out.Allowed() || m.Runs.Of(name) != ran || !strings.Contains(out.Err.Error(), name)):
			return fmt.Errorf("a call of %s with the groups %v: %v, run %d times", name, list, out.Err, m.Runs.Of(name)-ran)
		}
	}
	return nil
}

// rolesPersist creates roles, and reads them again in another process.
func (p *subjects) rolesPersist(c *proptest.Choices) error {
	store, want := memory.New(), map[identity.RoleID]toolgroups.GroupSet{}
	m, err := p.complete()
	if err != nil {
		return err
	}
	rt, err := newRuntime(store, m.Manager)
	for err == nil && !c.IsEmpty() {
		use := toolgroups.SetOf(some(c, p.ids[1:])...)
		var role org.Role
		role, err = rt.CreateRole(context.Background(), operator, org.RoleSpec{Name: fmt.Sprint("role ", len(want)), Use: &use})
		want[role.ID] = use
	}
	if err != nil {
		return err
	}
	if err := rt.Close(); err != nil {
		return err
	}
	if m, err = p.complete(); err != nil {
		return err
	}
	again, err := newRuntime(store, m.Manager)
	if err != nil {
		return err
	}
	for id, use := range want {
		if role, ok := again.Org().RoleByID(id); !ok || !role.Use.Equal(use) {
			err = fmt.Errorf("role %s has the groups %v after a restart, want %v", role.Name, role.Use, use)
		}
	}
	return cmp.Or(err, again.Close())
}

// defaultIsAll creates a role without groups while groups come and go.
func (p *subjects) defaultIsAll(c *proptest.Choices) (err error) {
	m, err := p.newManager()
	if err != nil {
		return err
	}
	rt, err := newRuntime(memory.New(), m.Manager)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rt.Close()) }()
	role, err := rt.CreateRole(context.Background(), operator, org.RoleSpec{Name: "any"})
	for err == nil && !c.IsEmpty() {
		if _, err = m.Register(p.any(c)); err != nil {
			return err
		}
		want := slices.DeleteFunc(m.Naive.Names(), func(name string) bool {
			spec, _ := m.Naive.ToolByName(name)
			return !grouptest.AllowedInState(spec.States, "")
		})
		got := slices.Clone(rt.Gate().PreviewSubject(rt.Org().RoleView(role.ID, toolgroups.AllGroups()), "").ToolNames())
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			return fmt.Errorf("a role without groups is offered %v, want %v", got, want)
		}
	}
	return err
}
