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

// CheckProperties loads modules and checks what they define. The test fails if
//
//   - there is no module, or one without groups;
//   - groups, or definitions of tools, differ from one call to the next;
//   - a group has neither tools nor prompts, or refers to a tool that its module does not have;
//   - a description of a tool is empty. A group without one has that of its module;
//   - a tool needs a state that no tool of the modules leads to, or leads to one in which none
//     can be called.
//
// It then checks nine properties of the groups with random cases, each as a test of its own:
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
// The definitions are those of the modules. Their functions are not called. A failure prints
// what its case did, and the seed: the environment variable ROLECALL_TEST_SEED repeats it.
func CheckProperties(t *testing.T, list ...rolecall.Module) {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("name at least one module: without one there is nothing to check")
	}
	snapshot := newHost(t, list).groups.CurrentSnapshot()
	if faults := findFaults(snapshot, list); faults != nil {
		t.Fatal(strings.Join(faults, "\n"))
	}
	p := newSubjects(snapshot)
	flags := proptest.WithoutFlags(cases)
	for _, property := range []struct {
		name string
		size int // choices of the longest case
		hold func(*trial) error
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
			flags.CheckProperty(t, proptest.CaseSize{MaxChoices: property.size}, withSteps(property.hold))
		})
	}
}

// each changes a registry a number of times. It runs check after each registration.
func (p *subjects) each(c *trial, check func(*grouptest.CheckedManager, grouptest.GroupSpec, errcode.Code) error) error {
	m, err := p.newManager()
	for err == nil && !c.IsEmpty() {
		g := p.pickGroup(c)
		if c.OneIn(3) {
			err = c.unregister(m, g)
			continue
		}
		var code errcode.Code
		if code, err = c.register(m, g); err == nil {
			err = check(m, g, code)
		}
	}
	return err
}

func (p *subjects) registered(c *trial) error {
	return p.each(c, func(m *grouptest.CheckedManager, g grouptest.GroupSpec, code errcode.Code) error {
		if code != "" {
			return nil
		}
		return m.CheckContains(g)
	})
}

func (p *subjects) unregistered(c *trial) error {
	return p.each(c, func(m *grouptest.CheckedManager, g grouptest.GroupSpec, code errcode.Code) error {
		if code != "" {
			return nil
		}
		if err := c.unregister(m, g); err != nil {
			return err
		}
		return m.CheckRemoved(g)
	})
}

func (p *subjects) reservedRejected(c *trial) error {
	m, err := p.newManager()
	for err == nil && !c.IsEmpty() {
		g, id := p.pickGroup(c), proptest.PickFrom(c.Choices, toolgroups.ReservedIDs()...)
		name := proptest.PickFrom(c.Choices, proptest.PickFrom(c.Choices, p.builtin...).Tools...).Name
		err = errors.Join(m.CheckReserved(g, id), m.CheckBuiltinName(g, name))
	}
	return err
}

func (p *subjects) definitions(c *trial) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckDefinitions(pickIDs(c, p.ids), p.states, p.names)
	})
}

func (p *subjects) listed(c *trial) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckQueries()
	})
}

func (p *subjects) visibleIsCallable(c *trial) error {
	return p.each(c, func(m *grouptest.CheckedManager, _ grouptest.GroupSpec, _ errcode.Code) error {
		return m.CheckVisible(pickIDs(c, p.ids), p.states, p.names)
	})
}

var operator = tool.Call{By: identity.ByOperator("test")}

// denied calls tools as a caller whose role has some of the groups.
func (p *subjects) denied(c *trial) (err error) {
	m, err := p.fullManager()
	if err != nil {
		return err
	}
	rt, err := newRuntime(memory.New(), m.Manager)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rt.Close()) }()
	ctx, list := context.Background(), pickIDs(c, p.ids[1:])
	c.note("load the modules, and create a role with the groups %v", list)
	use := toolgroups.SetOf(list...)
	role, err := rt.CreateRole(ctx, operator, org.RoleSpec{Name: "caller", Use: &use})
	if err != nil {
		return err
	}
	by := identity.ByCaller("caller", role.ID)
	for !c.IsEmpty() {
		name, before := proptest.PickFrom(c.Choices, p.names...), m.Runs.Of
		c.note("call %s", name)
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

// rolesPersist creates roles, and reads them with another runtime on the same store.
func (p *subjects) rolesPersist(c *trial) error {
	store, want := memory.New(), map[identity.RoleID]toolgroups.GroupSet{}
	m, err := p.fullManager()
	if err != nil {
		return err
	}
	rt, err := newRuntime(store, m.Manager)
	for err == nil && !c.IsEmpty() {
		list := pickIDs(c, p.ids[1:])
		c.note("create a role with the groups %v", list)
		use := toolgroups.SetOf(list...)
		var role org.Role
		role, err = rt.CreateRole(context.Background(), operator, org.RoleSpec{Name: fmt.Sprint("role ", len(want)), Use: &use})
		want[role.ID] = use
	}
	if err != nil {
		if rt != nil {
			_ = rt.Close() // err is the cause
		}
		return err
	}
	c.note("start again")
	if err := rt.Close(); err != nil {
		return err
	}
	if m, err = p.fullManager(); err != nil {
		return err
	}
	again, err := newRuntime(store, m.Manager)
	if err != nil {
		return err
	}
	for id, use := range want {
		if role, ok := again.Org().RoleByID(id); !ok || !role.Use.Equal(use) {
			err = fmt.Errorf("role %s has the groups %v after a restart, want %v", id, role.Use, use)
		}
	}
	return cmp.Or(err, again.Close())
}

// defaultIsAll creates a role without groups while groups come and go.
func (p *subjects) defaultIsAll(c *trial) (err error) {
	m, err := p.newManager()
	if err != nil {
		return err
	}
	rt, err := newRuntime(memory.New(), m.Manager)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rt.Close()) }()
	c.note("create a role that names no groups")
	role, err := rt.CreateRole(context.Background(), operator, org.RoleSpec{Name: "any"})
	for err == nil && !c.IsEmpty() {
		if _, err = c.register(m, p.pickGroup(c)); err != nil {
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
