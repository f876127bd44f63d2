package property_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// callerOrg is an organization with external callers. In the oracle a caller is
// an agent of its role at the top of a task without bounds, with a workflow
// state of its own.
type callerOrg struct {
	*checkedOrg
	callers map[identity.Principal]*agent
	order   []identity.Principal
}

var users = []identity.UserName{"ann", "bob", "../x", "ann@b"}

// anyCaller returns a random caller, usually with a role that exists or
// existed.
func (c *callerOrg) anyCaller(t *proptest.Choices) (identity.Principal, *agent) {
	p := identity.ByCaller(proptest.PickFrom(t, users...), "nowhere")
	if id, ok := c.anyRole(t); ok && !t.OneIn(8) {
		p.Role = id
	}
	if c.callers[p] == nil {
		c.callers[p] = &agent{role: p.Role, taskGroups: allGroups}
		c.order = append(c.order, p)
	}
	return p, c.callers[p]
}

// exists reports whether the role of a caller is active and the record of the
// caller is readable.
func (c *callerOrg) exists(a *agent) bool {
	r := c.oracle.roles[a.role]
	return r != nil && !r.gone && !a.gone
}

// callable lists what a caller may call in its state.
func (c *callerOrg) callable(a *agent) []string {
	if !c.exists(a) {
		return nil
	}
	return c.oracle.visible(a)
}

// callableInAnyState lists what a caller may call in some state.
func (c *callerOrg) callableInAnyState(a *agent) []string {
	if !c.exists(a) {
		return nil
	}
	return slices.DeleteFunc(c.oracle.effective(a), func(name string) bool {
		t, _ := c.groups.Naive.ToolByName(name)
		return t.States != nil && len(t.States) == 0
	})
}

func (c *callerOrg) isToolGated(a *agent) bool { return c.gatingOf(a) != toolgroups.NotGated }

func (c *callerOrg) gatingOf(a *agent) toolgroups.Gating {
	if !c.exists(a) {
		return toolgroups.NotGated
	}
	return c.oracle.gatingOf(a)
}

// step changes the organization or makes a call of a caller.
func (c *callerOrg) step(t *proptest.Choices) error {
	switch t.Pick(8) {
	case 0, 1:
		p, a := c.anyCaller(t)
		return c.invoke(p, a, proptest.PickFrom(t, c.allNames()...))
	case 2, 4, 5:
		p, a := c.anyCaller(t)
		if t.OneIn(8) {
			return c.reset(p, a)
		}
		if list := c.callableInAnyState(a); len(list) > 0 {
			return c.invoke(p, a, proptest.PickFrom(t, list...))
		}
	case 3:
		return c.damageCaller(t)
	}
	return c.checkedOrg.step(t)
}

// invoke calls a tool for a caller. The tool must run, and change the state of
// the caller, if and only if the caller may call it.
func (c *callerOrg) invoke(p identity.Principal, a *agent, name string) error {
	allowed := slices.Contains(c.callable(a), name)
	code := errcode.UnknownTool
	switch {
	case allowed:
		code = ""
	case c.isToolGated(a) || c.groups.Naive.GroupOfTool(name) != nil:
		code = errcode.ToolNotAvailable
	}
	before := c.groups.Runs.Of(name)
	out, err := c.InvokeTool(context.Background(), p, name, nil)
	if err != nil {
		return fmt.Errorf("%s calls %q: %w", p, name, err)
	}
	if ran := c.groups.Runs.Of(name) - before; out.Allowed() != allowed || (ran == 1) != allowed || ran > 1 || out.Code() != code {
		return fmt.Errorf("%s in state %q called %q: code %q, ran %d times; want %q", p, a.state, name, out.Code(), ran, code)
	}
	// A caller without a record is in UndefinedState: a move to it writes none.
	if tool, _ := c.groups.Naive.ToolByName(name); allowed && tool.Moves != "" && tool.Moves != toolgroups.StateName(a.state) {
		a.state = tool.Moves
	}
	return nil
}

// reset resets the state of a caller as the operator.
func (c *callerOrg) reset(p identity.Principal, a *agent) error {
	err := c.ResetCaller(context.Background(), operator, p)
	r := c.oracle.roles[a.role]
	if active := r != nil && !r.gone; active != (err == nil) || err != nil && errcode.CodeOf(err) != errcode.RoleNotFound {
		return fmt.Errorf("reset %s, whose role is active: %v: %w", p, active, err)
	}
	if err == nil {
		a.gone, a.state = false, toolgroups.UndefinedState
	}
	return nil
}

// damageCaller restarts the process and flips a bit in the record of a caller
// that has changed its state.
func (c *callerOrg) damageCaller(t *proptest.Choices) error {
	p, a := c.anyCaller(t)
	for _, other := range c.order {
		if t.OneIn(2) && c.callers[other].state != "" {
			p, a = other, c.callers[other]
		}
	}
	if a.state == "" || a.gone || t.OneIn(3) {
		return c.reopen(func(string) error { return nil })
	}
	return c.reopen(func(dir string) error {
		c.damaged, a.gone = true, true
		return flipBit(dir, "caller\x00"+p.Key(), t.Pick(200))
	})
}

// checkCallers compares the permissions and tool lists of all callers with the
// oracle.
func (c *callerOrg) checkCallers() error {
	for _, p := range c.order {
		a := c.callers[p]
		if err := c.checkSubject(p, c.callable(a), c.gatingOf(a)); err != nil {
			return fmt.Errorf("%s in state %q: %w", p, a.state, err)
		}
		if got, want := definitionNames(c.Gate().Subject(p).ListableTools()), c.callableInAnyState(a); !slices.Equal(got, want) {
			return fmt.Errorf("%s may call %v in some state, want %v", p, got, want)
		}
	}
	for _, p := range []identity.Principal{{Kind: identity.Caller}, identity.ByCaller("ann", "root"), {Kind: identity.Operator, Role: "nowhere"}} {
		if err := c.checkSubject(p, nil, toolgroups.NotGated); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// External callers: after any change, the tools that a caller of a role is
// shown, and the tools that run when it calls them, are
//
//	effective(caller) = use of its role ∩ ceiling(creators)
//
// without those that its own durable state, per user and role, does not allow.
// The list that does not depend on the state contains what any state allows. A
// caller with a deleted role or a damaged record may call nothing.
func TestCaller_HasPermissionsOfRole(t *testing.T) {
	dir, n := newStoreDir(t), 0
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 600, ShortCases: 30}, func(t *proptest.Choices) error {
		n++
		w, err := newCheckedOrg(fmt.Sprint(dir, "/", n))
		if w == nil {
			return err
		}
		l := &callerOrg{checkedOrg: w, callers: map[identity.Principal]*agent{}}
		for err == nil && len(l.roles) < 2 {
			err = l.createRole(t, nil)
		}
		for err == nil && !t.IsEmpty() {
			if err = l.step(t); err == nil {
				err = l.checkCallers()
			}
		}
		return cmp.Or(err, w.fixture.close(!w.damaged))
	})
}
