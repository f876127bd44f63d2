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

// lobby is a world that people come to from outside. To the oracle each is an
// agent of its role at the top of a task without bounds, who moves by itself.
type lobby struct {
	*world
	guests map[identity.Principal]*agent
	order  []identity.Principal
}

var users = []identity.User{"ann", "bob", "../x", "ann@b"}

// guest gives a caller, as a rule of a role that there is or was.
func (l *lobby) guest(t *proptest.Choices) (identity.Principal, *agent) {
	p := identity.ByCaller(proptest.OneOf(t, users...), "nowhere")
	if id, ok := l.anyRole(t); ok && !t.Chance(8) {
		p.Role = id
	}
	if l.guests[p] == nil {
		l.guests[p] = &agent{role: p.Role, narrow: everything}
		l.order = append(l.order, p)
	}
	return p, l.guests[p]
}

// there says whether a guest's role is, and its own record can be read.
func (l *lobby) there(a *agent) bool {
	r := l.oracle.roles[a.role]
	return r != nil && !r.gone && !a.gone
}

// may lists what a guest may call in its state; offer in any.
func (l *lobby) may(a *agent) []string {
	if !l.there(a) {
		return nil
	}
	return l.oracle.visible(a)
}

func (l *lobby) offer(a *agent) []string {
	if !l.there(a) {
		return nil
	}
	return slices.DeleteFunc(l.oracle.effective(a), func(name string) bool {
		t, _ := l.desk.naive.tool(name)
		return t.states != nil && len(t.states) == 0
	})
}

func (l *lobby) gated(a *agent) bool { return l.there(a) && l.oracle.gated(a) }

// step does something to the world, or has a guest call.
func (l *lobby) step(t *proptest.Choices) error {
	switch t.Pick(8) {
	case 0, 1:
		p, a := l.guest(t)
		return l.invoke(p, a, proptest.OneOf(t, l.everyName()...))
	case 2, 4, 5:
		p, a := l.guest(t)
		if t.Chance(8) {
			return l.reset(p, a)
		}
		if list := l.offer(a); len(list) > 0 {
			return l.invoke(p, a, proptest.OneOf(t, list...))
		}
	case 3:
		return l.lose(t)
	}
	return l.world.step(t)
}

// invoke has a guest call a tool: it runs, and moves the guest's state, iff it
// may be called now.
func (l *lobby) invoke(p identity.Principal, a *agent, name string) error {
	allowed := slices.Contains(l.may(a), name)
	code := errcode.UnknownTool
	switch {
	case allowed:
		code = ""
	case l.gated(a) || l.desk.naive.home(name) != nil:
		code = errcode.ToolNotAvailable
	}
	before := l.desk.runs.of(name)
	out, err := l.Invoke(context.Background(), p, name, nil)
	if err != nil {
		return fmt.Errorf("%s calls %q: %w", p, name, err)
	}
	if ran := l.desk.runs.of(name) - before; out.Allowed() != allowed || (ran == 1) != allowed || ran > 1 || out.Code() != code {
		return fmt.Errorf("%s in state %q called %q: %q, ran %d times; want %q", p, a.state, name, out.Code(), ran, code)
	}
	if tool, _ := l.desk.naive.tool(name); allowed && tool.moves != "" {
		a.state = tool.moves
	}
	return nil
}

// reset has the operator put a guest back to the beginning.
func (l *lobby) reset(p identity.Principal, a *agent) error {
	err := l.ResetCaller(context.Background(), operator, p)
	r := l.oracle.roles[a.role]
	if active := r != nil && !r.gone; active != (err == nil) || err != nil && errcode.Of(err) != errcode.RoleNotFound {
		return fmt.Errorf("reset %s, whose role is active: %v: %w", p, active, err)
	}
	if err == nil {
		a.gone, a.state = false, toolgroups.Undefined
	}
	return nil
}

// lose begins anew and flips a bit of the record of a guest that has moved.
func (l *lobby) lose(t *proptest.Choices) error {
	p, a := l.guest(t)
	for _, other := range l.order {
		if t.Chance(2) && l.guests[other].state != "" {
			p, a = other, l.guests[other]
		}
	}
	if a.state == "" || a.gone || t.Chance(3) {
		return l.reopen(func(string) error { return nil })
	}
	return l.reopen(func(dir string) error {
		l.damaged, a.gone = true, true
		return flip(dir, "caller\x00"+p.Key(), t.Pick(200))
	})
}

// checkGuests compares what all guests may, and are told, with the oracle.
func (l *lobby) checkGuests() error {
	for _, p := range l.order {
		a := l.guests[p]
		if err := l.checkSeat(p, l.may(a), l.gated(a)); err != nil {
			return fmt.Errorf("%s in state %q: %w", p, a.state, err)
		}
		if got, want := definitionNames(l.Gate().Subject(p).Listable()), l.offer(a); !slices.Equal(got, want) {
			return fmt.Errorf("%s is offered %v in some state, want %v", p, got, want)
		}
	}
	for _, p := range []identity.Principal{{Kind: identity.Caller}, identity.ByCaller("ann", "root"), {Kind: identity.Operator, Role: "nowhere"}} {
		if err := l.checkSeat(p, nil, false); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// Callers from outside: after anything that happens, what a caller of a role
// is told of, and what runs when it calls, is
//
//	effective(caller) = use of its role ∩ ceiling(makers)
//
// less what its own durable state, of this user in this role, does not offer;
// the list that does not vary with the state has what any state offers. Nobody
// in a role that is gone, or whose own record is damaged, may anything.
func TestACallerMayWhatItsRoleMay(t *testing.T) {
	dir, n := scratch(t), 0
	flags.Check(t, proptest.Size{Choices: 600}, func(t *proptest.Choices) error {
		n++
		w, err := newWorld(fmt.Sprint(dir, "/", n))
		if w == nil {
			return err
		}
		l := &lobby{world: w, guests: map[identity.Principal]*agent{}}
		for err == nil && len(l.roles) < 2 {
			err = l.createRole(t, nil)
		}
		for err == nil && !t.Done() {
			if err = l.step(t); err == nil {
				err = l.checkGuests()
			}
		}
		return cmp.Or(err, w.house.close(!w.damaged))
	})
}
