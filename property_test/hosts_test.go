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

// districts are the hosts that are asked about, precincts the patterns of rules.
var (
	districts = []string{"a.x", "b.x", "deep.a.x", "c.y", "10.0.0.1"}
	precincts = []string{"*", "*.x", "*.a.x", "a.x", "b.x", "c.y", "*.y", "10.0.0.1", "other"}
)

// hostRule is a rule as the oracle has it; nil allows all.
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

// given is the rule as a specification has it.
func (r *hostRule) given() *hosts.Rule {
	if r == nil {
		return nil
	}
	return &hosts.Rule{Allow: hosts.MustPatterns(r.allow...), Deny: hosts.MustPatterns(r.deny...)}
}

type hostRole struct {
	rule  *hostRule
	maker identity.RoleID // "" when root or the operator made it
	gone  bool
}

type hostAgent struct {
	id     identity.AgentID
	role   identity.RoleID // "" is root's
	parent *hostAgent
	caller identity.RoleID // of the task, at the top
	then   []string        // what the caller reached when the task began; nil without a caller
	gone   bool
}

// country is an organization and what is naively known of who reaches what.
type country struct {
	*runtime.Runtime
	roles  map[identity.RoleID]*hostRole
	order  []identity.RoleID
	agents []*hostAgent
}

func newCountry() (*country, error) {
	rt, err := newRuntime(newMemory(), toolgroups.NewManager(), newBrain())
	if err != nil {
		return nil, err
	}
	c := &country{Runtime: rt, roles: map[identity.RoleID]*hostRole{}}
	return c, c.start(nil)
}

// worth says whether a role's agents reach a host, as far as it and its makers go.
func (c *country) worth(id identity.RoleID, host string) bool {
	r := c.roles[id]
	return !r.gone && r.rule.allows(host) && (r.maker == "" || c.worth(r.maker, host))
}

// reaches is the rule: an agent's role ∩ its makers ∩ its parents' chain ∩
// the task's caller. Root reaches nothing itself and bounds nothing.
func (c *country) reaches(a *hostAgent, host string) bool {
	return !a.gone && a.role != "" && c.worth(a.role, host) && c.above(a, host)
}

func (c *country) above(a *hostAgent, host string) bool {
	if a.parent == nil {
		return a.caller == "" || c.worth(a.caller, host) && slices.Contains(a.then, host)
	}
	return (a.parent.role == "" || c.worth(a.parent.role, host)) && c.above(a.parent, host)
}

func (c *country) living() []*hostAgent {
	return slices.DeleteFunc(slices.Clone(c.agents), func(a *hostAgent) bool { return a.gone })
}

// anyRule is a random rule, or none once in three.
func anyRule(t *proptest.Choices) *hostRule {
	if t.Chance(3) {
		return nil
	}
	return &hostRule{allow: someOf(t, 3, precincts), deny: someOf(t, 1, precincts)}
}

// create makes a role, for an agent or the operator. An agent asks for what
// it likes: that it may not reach it itself must bound the role.
func (c *country) create(t *proptest.Choices) error {
	by, made := operator, &hostRole{rule: anyRule(t)}
	if a := proptest.OneOf(t, c.living()...); !t.Chance(3) {
		by, made.maker = identity.ByAgent(a.id), a.role
	}
	role, err := c.CreateRole(context.Background(), call(by), org.RoleSpec{Name: fmt.Sprint("role ", len(c.order)), Hosts: made.rule.given()})
	if errcode.Of(err) == errcode.InsufficientPermissions { // a maker without a role any more
		return nil
	}
	c.roles[role.ID], c.order = made, append(c.order, role.ID)
	return err
}

// change updates or deletes a role.
func (c *country) change(t *proptest.Choices) error {
	if len(c.order) == 0 {
		return nil
	}
	id := proptest.OneOf(t, c.order...)
	r := c.roles[id]
	switch {
	case r.gone:
		return nil
	case t.Chance(6):
		r.gone = true
		_, err := c.DeleteRole(operator, id, false)
		return err
	}
	next := anyRule(t)
	given := next.given()
	if given == nil { // an update clears the rule by saying any
		anywhere := hosts.Any()
		given = &anywhere
	}
	r.rule = next
	_, _, err := c.UpdateRole(operator, id, org.RoleSpec{Hosts: given}, false)
	return err
}

func (c *country) spawn(t *proptest.Choices) error {
	if len(c.order) == 0 {
		return nil
	}
	parent, role := proptest.OneOf(t, c.living()...), proptest.OneOf(t, c.order...)
	got, err := c.Spawn(context.Background(), call(identity.ByAgent(parent.id)), org.Spawn{Role: role, Brief: brief}, nil)
	switch errcode.Of(err) {
	case errcode.RoleNotFound, errcode.InsufficientPermissions:
		return nil
	}
	c.agents = append(c.agents, &hostAgent{id: got.ID, role: role, parent: parent})
	return err
}

// start begins a task, of the operator's or of a caller in a role.
func (c *country) start(t *proptest.Choices) error {
	spec, top := org.TaskSpec{Text: "go", Caller: operator}, &hostAgent{}
	if t != nil && len(c.order) > 0 && t.Chance(2) {
		id := proptest.OneOf(t, c.order...)
		if c.roles[id].gone {
			return nil
		}
		spec.Caller, top.caller, top.then = identity.ByCaller("ann", id), id, []string{}
		for _, host := range districts {
			if c.worth(id, host) {
				top.then = append(top.then, host)
			}
		}
	}
	id, err := c.Start(context.Background(), spec)
	if err != nil {
		return err
	}
	task, _ := c.Org().Task(id)
	top.id = task.Top
	c.agents = append(c.agents, top)
	return nil
}

func (c *country) terminate(t *proptest.Choices) error {
	target := proptest.OneOf(t, c.living()...)
	if target.parent == nil {
		return nil
	}
	for _, a := range c.agents {
		a.gone = a.gone || a == target || inside(a, target)
	}
	return c.Terminate(context.Background(), call(operator), target.id, "why not")
}

func inside(a, ancestor *hostAgent) bool {
	for a = a.parent; a != nil; a = a.parent {
		if a == ancestor {
			return true
		}
	}
	return false
}

func (c *country) step(t *proptest.Choices) error {
	switch t.Pick(12) {
	case 0, 1, 2:
		return c.create(t)
	case 3, 4, 5, 6:
		return c.spawn(t)
	case 7, 8, 9:
		return c.change(t)
	case 10:
		return c.start(t)
	}
	return c.terminate(t)
}

// may asks the organization.
func (c *country) may(a *hostAgent, host string) (bool, error) {
	err := c.ToolHost().MayReach(context.Background(), identity.ByAgent(a.id), hosts.Host{Name: host, Port: 443})
	if code := errcode.Of(err); code != "" && code != errcode.HostBlocked {
		return false, err
	}
	return err == nil, nil
}

// check compares everybody's reach with the oracle, and with that of those
// who made its role and of its parent.
func (c *country) check() error {
	for _, a := range c.agents {
		for _, host := range districts {
			got, err := c.may(a, host)
			if err != nil {
				return err
			}
			if want := c.reaches(a, host); got != want {
				return fmt.Errorf("agent %s of role %q reaches %s: %v, want %v", a.id, a.role, host, got, want)
			}
			if !got || a.parent == nil || a.parent.role == "" {
				continue
			}
			if parent, err := c.may(a.parent, host); err != nil || !parent {
				return fmt.Errorf("agent %s reaches %s, its parent does not (%v)", a.id, host, err)
			}
		}
	}
	return nil
}

// Closure of hosts: whatever roles say, who makes them, and however they
// change later, an agent's requests reach only what its role, all that made
// its role, all above it in its task and the task's caller may reach now.
func TestNobodyReachesWhatItsMakersMayNot(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 300, Times: 2}, func(t *proptest.Choices) error {
		c, err := newCountry()
		if c == nil {
			return err
		}
		defer c.Close()
		for err == nil && !t.Done() {
			if err = c.step(t); err == nil {
				err = c.check()
			}
		}
		return err
	})
}
