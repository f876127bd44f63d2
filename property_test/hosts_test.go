package property_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// testHosts are the hosts that are checked, hostPatterns the patterns of random
// rules.
var (
	testHosts    = []string{"a.x", "b.x", "deep.a.x", "c.y", "10.0.0.1"}
	hostPatterns = []string{"*", "*.x", "*.a.x", "a.x", "b.x", "c.y", "*.y", "10.0.0.1", "other"}
)

// hostRule is a naive host rule; nil allows all hosts.
type hostRule struct{ allow, deny []string }

func (r *hostRule) allows(host string) bool {
	if r == nil {
		return true
	}
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, host) // no host has a slash
		return ok && err == nil
	}
	return slices.ContainsFunc(r.allow, matches) && !slices.ContainsFunc(r.deny, matches)
}

// rule returns the rule for a RoleSpec.
func (r *hostRule) rule() *hosts.HostRule {
	if r == nil {
		return nil
	}
	return &hosts.HostRule{Allow: hosts.MustPatterns(r.allow...), Deny: hosts.MustPatterns(r.deny...)}
}

// hostRole is a role as the naive model knows it.
type hostRole struct {
	rule    *hostRule
	creator identity.RoleID // "" if root or the operator created it
	gone    bool
}

// hostAgent is an agent as the naive model knows it.
type hostAgent struct {
	id             identity.AgentID
	role           identity.RoleID // "" for root
	parent         *hostAgent
	caller         identity.RoleID // of the task, at the top
	reachedAtStart []string        // hosts the caller reached when the task started; nil without a caller
	gone           bool
}

// hostOrg is an organization with a naive model of which agent may reach which
// host.
type hostOrg struct {
	*runtime.Runtime
	roles  map[identity.RoleID]*hostRole
	order  []identity.RoleID
	agents []*hostAgent
}

func newHostOrg() (*hostOrg, error) {
	rt, err := newRuntime(newMemoryStore(), toolgroups.NewManager(), newScriptedModel())
	if err != nil {
		return nil, err
	}
	c := &hostOrg{Runtime: rt, roles: map[identity.RoleID]*hostRole{}}
	return c, c.start(nil)
}

// roleReaches reports whether a role and all its creators allow a host.
func (o *hostOrg) roleReaches(id identity.RoleID, host string) bool {
	r := o.roles[id]
	return !r.gone && r.rule.allows(host) && (r.creator == "" || o.roleReaches(r.creator, host))
}

// reaches is the rule to test. The role of the agent, the creators of that
// role, the ancestors of the agent and the caller of the task must allow the
// host. Root reaches no host itself and limits nothing.
func (o *hostOrg) reaches(a *hostAgent, host string) bool {
	return !a.gone && a.role != "" && o.roleReaches(a.role, host) && o.ancestorsReach(a, host)
}

// ancestorsReach reports whether the ancestors of an agent and the caller of
// its task allow a host.
func (o *hostOrg) ancestorsReach(a *hostAgent, host string) bool {
	if a.parent == nil {
		return a.caller == "" || o.roleReaches(a.caller, host) && slices.Contains(a.reachedAtStart, host)
	}
	return (a.parent.role == "" || o.roleReaches(a.parent.role, host)) && o.ancestorsReach(a.parent, host)
}

func (o *hostOrg) activeAgents() []*hostAgent {
	return slices.DeleteFunc(slices.Clone(o.agents), func(a *hostAgent) bool { return a.gone })
}

// anyRule returns a random rule; one in three is nil.
func anyRule(t *proptest.Choices) *hostRule {
	if t.OneIn(3) {
		return nil
	}
	return &hostRule{allow: someOf(t, 3, hostPatterns), deny: someOf(t, 1, hostPatterns)}
}

// createRole creates a role as an agent or the operator. An agent may request
// hosts that it cannot reach itself; its own limits must then limit the role.
func (o *hostOrg) createRole(t *proptest.Choices) error {
	by, made := operator, &hostRole{rule: anyRule(t)}
	if a := proptest.PickFrom(t, o.activeAgents()...); !t.OneIn(3) {
		by, made.creator = identity.ByAgent(a.id), a.role
	}
	role, err := o.CreateRole(context.Background(), newCall(by), org.RoleSpec{Name: fmt.Sprint("role ", len(o.order)), Hosts: made.rule.rule()})
	if errcode.CodeOf(err) == errcode.InsufficientPermissions { // the role of the creator was deleted
		return nil
	}
	o.roles[role.ID], o.order = made, append(o.order, role.ID)
	return err
}

// changeRole updates or deletes a role.
func (o *hostOrg) changeRole(t *proptest.Choices) error {
	if len(o.order) == 0 {
		return nil
	}
	id := proptest.PickFrom(t, o.order...)
	r := o.roles[id]
	switch {
	case r.gone:
		return nil
	case t.OneIn(6):
		r.gone = true
		_, err := o.DeleteRole(operator, id, false)
		return err
	}
	next := anyRule(t)
	rule := next.rule()
	if rule == nil { // an update clears the rule with a rule that allows any host
		anywhere := hosts.AnyHost()
		rule = &anywhere
	}
	r.rule = next
	_, _, err := o.UpdateRole(operator, id, org.RoleSpec{Hosts: rule}, false)
	return err
}

func (o *hostOrg) spawn(t *proptest.Choices) error {
	if len(o.order) == 0 {
		return nil
	}
	parent, role := proptest.PickFrom(t, o.activeAgents()...), proptest.PickFrom(t, o.order...)
	got, err := o.SpawnAgent(context.Background(), newCall(identity.ByAgent(parent.id)), org.SpawnSpec{Role: role, Brief: taskBrief}, nil)
	switch errcode.CodeOf(err) {
	case errcode.RoleNotFound, errcode.InsufficientPermissions:
		return nil
	}
	o.agents = append(o.agents, &hostAgent{id: got.ID, role: role, parent: parent})
	return err
}

// start starts a task of the operator or of a caller with a role.
func (o *hostOrg) start(t *proptest.Choices) error {
	spec, top := org.TaskSpec{Text: "go", Caller: operator}, &hostAgent{}
	if t != nil && len(o.order) > 0 && t.OneIn(2) {
		id := proptest.PickFrom(t, o.order...)
		if o.roles[id].gone {
			return nil
		}
		spec.Caller, top.caller, top.reachedAtStart = identity.ByCaller("ann", id), id, []string{}
		for _, host := range testHosts {
			if o.roleReaches(id, host) {
				top.reachedAtStart = append(top.reachedAtStart, host)
			}
		}
	}
	id, err := o.StartTask(context.Background(), spec)
	if err != nil {
		return err
	}
	task, _ := o.Org().TaskByID(id)
	top.id = task.Top
	o.agents = append(o.agents, top)
	return nil
}

func (o *hostOrg) terminate(t *proptest.Choices) error {
	target := proptest.PickFrom(t, o.activeAgents()...)
	if target.parent == nil {
		return nil
	}
	for _, a := range o.agents {
		a.gone = a.gone || a == target || isBelow(a, target)
	}
	return o.TerminateAgent(context.Background(), newCall(operator), target.id, "why not")
}

// isBelow reports whether an agent is a descendant of another.
func isBelow(a, ancestor *hostAgent) bool {
	for a = a.parent; a != nil; a = a.parent {
		if a == ancestor {
			return true
		}
	}
	return false
}

func (o *hostOrg) step(t *proptest.Choices) error {
	switch t.Pick(12) {
	case 0, 1, 2:
		return o.createRole(t)
	case 3, 4, 5, 6:
		return o.spawn(t)
	case 7, 8, 9:
		return o.changeRole(t)
	case 10:
		return o.start(t)
	}
	return o.terminate(t)
}

// mayReach returns the answer of the organization.
func (o *hostOrg) mayReach(a *hostAgent, host string) (bool, error) {
	err := o.ToolHost().MayReach(context.Background(), identity.ByAgent(a.id), hosts.Host{Name: host, Port: 443})
	if code := errcode.CodeOf(err); code != "" && code != errcode.HostBlocked {
		return false, err
	}
	return err == nil, nil
}

// check compares which hosts agents reach with the naive model, and with the
// hosts of their parents.
func (o *hostOrg) check() error {
	for _, a := range o.agents {
		for _, host := range testHosts {
			got, err := o.mayReach(a, host)
			if err != nil {
				return err
			}
			if want := o.reaches(a, host); got != want {
				return fmt.Errorf("agent %s of role %q reaches %s: %v, want %v", a.id, a.role, host, got, want)
			}
			if !got || a.parent == nil || a.parent.role == "" {
				continue
			}
			if parent, err := o.mayReach(a.parent, host); err != nil || !parent {
				return fmt.Errorf("agent %s reaches %s, its parent does not (%v)", a.id, host, err)
			}
		}
	}
	return nil
}

// For all host rules, creators of roles and later changes: an agent reaches only hosts that are
// allowed now. Its role, the creators of its role, its ancestors and the caller of its task must
// all allow the host.
func TestHosts_NoAgentExceedsItsCreators(t *testing.T) {
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 300, CaseFactor: 2, ShortCases: 50}, func(t *proptest.Choices) error {
		c, err := newHostOrg()
		if c == nil {
			return err
		}
		defer c.Close()
		for err == nil && !t.IsEmpty() {
			if err = c.step(t); err == nil {
				err = c.check()
			}
		}
		return err
	})
}
