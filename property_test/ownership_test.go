package property_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Ownership: whatever two hostile owners register and unregister, under
// whatever ids and with whatever tool names, nothing of another owner changes,
// is shadowed or goes: not its groups, not its tools, not what a role sees of
// them.
func TestHostileOwnersChangeNothingOfOthers(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 250}, func(t *proptest.Choices) error {
		d := newDesk()
		for _, g := range slices.Concat(builtins, modules) {
			if _, err := d.register(g); err != nil {
				return err
			}
		}
		for !t.Done() {
			attacker := proptest.OneOf[toolgroups.Owner](t, "module:a", "module:b")
			before := propertyOf(d.Snapshot(), attacker)
			if err := d.attack(t, attacker); err != nil {
				return err
			}
			if after := propertyOf(d.Snapshot(), attacker); after != before {
				return fmt.Errorf("%s changed what others own:\n%s\nbecame\n%s", attacker, before, after)
			}
		}
		return nil
	})
}

// attack registers or unregisters in the attacker's name, mostly what is not
// its own. What the Manager answers is checked against the naive registry.
func (d *desk) attack(t *proptest.Choices, attacker toolgroups.Owner) error {
	targets := append(ids{toolgroups.OrgManagement, toolgroups.Artifact}, groupIDs...)
	if t.Chance(3) {
		_, err := d.unregister(attacker, proptest.OneOf(t, targets...))
		return err
	}
	g := anySpec(t)
	g.id, g.owner = proptest.OneOf(t, targets...), attacker
	if t.Chance(4) {
		g.tools = append(g.tools, toolSpec{name: proptest.OneOf(t, "create_role", "put_artifact")})
	}
	_, err := d.register(g)
	return err
}

// propertyOf writes down everything that is not the attacker's: groups with
// their tools, handles by name, and what a role with these groups would let
// through. Toolsets may hold what is the attacker's, by reference; that is
// left out.
func propertyOf(s *toolgroups.Snapshot, attacker toolgroups.Owner) string {
	var text string
	for _, info := range s.Groups() {
		if info.Owner != attacker {
			text += fmt.Sprintln(info.ID, info.Owner, info.Description, info.RegisteredAt, foreign(s, info.Tools, attacker))
			role := s.Compile(s.Bind(toolgroups.Of(info.ID)))
			text += fmt.Sprintln(info.ID, "lets through", foreign(s, definitionNames(role.ForState("").Definitions()), attacker))
		}
	}
	for _, h := range s.Tools() {
		if h.Owner != attacker {
			found, _ := s.Lookup(h.Definition.Name)
			text += fmt.Sprintf("%s %s %s %p\n", h.Definition.Name, h.Group, h.Owner, found)
		}
	}
	return text
}

func foreign(s *toolgroups.Snapshot, names []string, attacker toolgroups.Owner) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		h, ok := s.Lookup(name)
		return ok && h.Owner == attacker
	})
}

// An id is bound to the owner it had when it was written: a role that names a
// group keeps nothing of it when the group goes, gets nothing of another
// owner's group of that id, and has it again when its owner brings it again.
func TestAnotherOwnerInheritsNoGrant(t *testing.T) {
	flags.Check(t, proptest.Size{Choices: 60}, func(t *proptest.Choices) error {
		d := newDesk()
		first, second := owners[0], owners[1]
		id := proptest.OneOf(t, groupIDs...)
		if _, err := d.register(spec{id: id, owner: first, tools: []toolSpec{{name: "t0"}}}); err != nil {
			return err
		}
		role := d.Snapshot().Bind(toolgroups.Of(id))
		for !t.Done() {
			if _, err := d.unregister(proptest.OneOf[toolgroups.Owner](t, first, second), id); err != nil {
				return err
			}
			owner := proptest.OneOf[toolgroups.Owner](t, first, second)
			if _, err := d.register(spec{id: id, owner: owner, tools: []toolSpec{{name: proptest.OneOf(t, toolNames...)}}}); err != nil {
				return err
			}
			var want []string
			if d.naive.owner(id) == first {
				want = d.naive.definitions(id)
			}
			if got := definitionNames(d.Snapshot().Compile(role).ForState("").Definitions()); !slices.Equal(got, want) {
				return fmt.Errorf("group %s belongs to %s; a role bound to %s sees %v, want %v", id, d.naive.owner(id), first, got, want)
			}
		}
		return nil
	})
}

// arena is a runtime in which owners fight over ids and names while agents
// call: every handler says whose it is.
type arena struct {
	*runtime.Runtime
	deeds  deeds
	agents map[toolgroups.Owner]identity.AgentID // by whose "prize" its role was written for; of "" for all groups
}

// prize is the id, and its tool the name, that everybody is after.
var prize = spec{id: "prize", tools: []toolSpec{{name: "t9"}}}

// victim owns what nobody may touch.
var victim = spec{id: "vault", owner: "module:v", tools: []toolSpec{{name: "t0"}, {name: "t1"}}}

var attackers = []toolgroups.Owner{"module:a", "module:b"}

func newArena(t *testing.T) *arena {
	t.Helper()
	a := &arena{agents: map[toolgroups.Owner]identity.AgentID{}}
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	var err error
	if a.Runtime, err = newRuntime(newMemory(), groups, newBrain()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	for _, g := range append(slices.Clone(builtins), victim) {
		a.must(t, a.register(g.owner, g))
	}
	for _, owner := range attackers {
		a.must(t, a.register(owner, prize))
		a.agents[owner] = a.hire(t, owner, "prize", "vault")
		a.must(t, a.Unregister(owner, prize.id))
	}
	a.agents[""] = a.hire(t, "all", "*")
	return a
}

func (a *arena) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// register registers a group of doers in an owner's name.
func (a *arena) register(owner toolgroups.Owner, g spec) error {
	g.owner = owner
	_, err := a.Register(owner, g.doers(&a.deeds))
	return err
}

// hire has the operator give a task to a role with some groups.
func (a *arena) hire(t *testing.T, name toolgroups.Owner, use ...toolgroups.GroupID) identity.AgentID {
	t.Helper()
	set := toolgroups.Of(use...)
	_, err := a.CreateRole(t.Context(), call(operator), org.RoleSpec{Name: "for " + string(name), Use: &set})
	a.must(t, err)
	id, err := a.Start(t.Context(), org.TaskSpec{Text: "go", Caller: operator, Role: "for " + string(name)})
	a.must(t, err)
	task, _ := a.Org().Task(id)
	return task.Top
}

// fight has an attacker register and unregister what it likes, its own and
// what is not, under both its own and everybody's ids and names.
func (a *arena) fight(r *rand.Rand, attacker toolgroups.Owner, rounds int) {
	wanted := append(ids{toolgroups.OrgManagement, toolgroups.Artifact, "Vault", "vault/x"}, prize.id, prize.id, prize.id, victim.id)
	names := []string{"t0", "t1", "t9", "t9", "t9", "T0", "create_role", "put_artifact", "t10"}
	for range rounds {
		g := spec{id: wanted[r.IntN(len(wanted))], refs: []string{"t0", "create_role", "t9"}}
		for range 1 + r.IntN(2) {
			g.tools = append(g.tools, toolSpec{name: names[r.IntN(len(names))]})
		}
		if r.IntN(2) == 0 {
			_ = a.register(attacker, g)
		} else {
			_ = a.Unregister(attacker, g.id)
		}
	}
}

// Ownership with calls under way: two hostile owners register and unregister
// at random, side by side, while agents call. The victim's tools and the
// built-in ones act for every call, as their owner's; the tool both attackers
// are after acts for an agent only as that of the owner its role was written
// for, and nothing acts that was not called.
func TestWhoRunsWhileOwnersFight(t *testing.T) {
	seed := flags.Seed()
	t.Logf("seed %d", seed)
	a := newArena(t)
	var fight, calls sync.WaitGroup
	over := make(chan struct{})
	for i, owner := range attackers {
		fight.Go(func() { a.fight(rand.New(rand.NewPCG(uint64(seed), uint64(i))), owner, 10*flags.Cases) })
	}
	acted := make([]map[string]int, 3)
	for i, who := range []toolgroups.Owner{"module:a", "module:b", ""} {
		acted[i] = map[string]int{}
		calls.Go(func() { a.callAll(t, who, acted[i], over) })
	}
	fight.Wait()
	close(over)
	calls.Wait()
	for _, d := range a.deeds.read() {
		a.checkDeed(t, d)
	}
	t.Logf("acted: %v", acted)
	if acted[0]["t9"]+acted[1]["t9"]+acted[2]["t9"] == 0 {
		t.Error("nobody ever got the prize; this says nothing")
	}
}

// callAll calls every tool in turn until it is over, and counts what acted.
func (a *arena) callAll(t *testing.T, who toolgroups.Owner, acted map[string]int, over <-chan struct{}) {
	for {
		for _, name := range []string{"t0", "t9", "t1", "put_artifact", "t9"} {
			out, err := knock(a.Runtime, identity.ByAgent(a.agents[who]), name, `{}`)
			if err != nil {
				t.Error(err)
				return
			}
			if out.Allowed() {
				acted[name]++
			}
			if steady := name == "t0" || name == "t1" || name == "put_artifact" && who == ""; steady && !out.Allowed() {
				t.Errorf("agent for %q: %s of a peaceful owner: %v", who, name, out.Err)
			}
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// checkDeed looks at who acted for whom.
func (a *arena) checkDeed(t *testing.T, d deed) {
	t.Helper()
	want := map[string]toolgroups.Owner{"t0": victim.owner, "t1": victim.owner, "put_artifact": toolgroups.Builtin}[d.tool]
	if d.tool == "t9" {
		want = d.owner // anybody's, for who has all groups
		for _, owner := range attackers {
			if d.by == identity.ByAgent(a.agents[owner]) {
				want = owner
			}
		}
	}
	if want == "" || d.owner != want {
		t.Errorf("%s of %s acted for %s, want that of %q", d.tool, d.owner, d.by, want)
	}
}

// A call that is under way when its tool goes to another owner ends as what it
// began; the next one of the same role starts nothing.
func TestACallUnderWayIsNotTakenOver(t *testing.T) {
	a := newArena(t)
	began, release := make(chan struct{}), make(chan struct{})
	slow := spec{id: prize.id, owner: "module:a", tools: prize.tools}.doers(&a.deeds)
	slow.Tools[0] = waiting{slow.Tools[0].(doer), began, release}
	_, err := a.Register("module:a", slow)
	a.must(t, err)
	who := identity.ByAgent(a.agents["module:a"])
	ended := make(chan *gate.Admission, 1)
	go func() {
		out, err := knock(a.Runtime, who, "t9", `{}`)
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	if _, err := await(began); err != nil {
		t.Fatal(err)
	}
	a.must(t, a.Unregister("module:a", prize.id))
	a.must(t, a.register("module:b", prize))
	next, err := knock(a.Runtime, who, "t9", `{}`)
	if a.must(t, err); next.Allowed() {
		t.Error("the next call was let through")
	}
	close(release)
	if out, err := await(ended); err != nil || !out.Allowed() || out.Result.IsError {
		t.Errorf("the call under way: %+v, %v", out, err)
	}
	want := []deed{{"t9", "module:a", who}}
	if got := a.deeds.read(); !slices.Equal(got, want) {
		t.Errorf("acted: %v, want %v", got, want)
	}
}

// waiting is a doer that acts when it is released.
type waiting struct {
	doer
	began, release chan struct{}
}

func (w waiting) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	close(w.began)
	<-w.release
	return w.doer.Call(ctx, c)
}

// Readers and writers together: while groups come and go, no reader is ever
// allowed a tool whose group is unregistered, from the moment Unregister
// returned until it is registered again. (And the race detector is silent.)
func TestNoReaderIsAllowedAToolThatIsGone(t *testing.T) {
	house, agent := openReaders(t)
	var phases [2]atomic.Int64 // odd: the writer's group is unregistered for certain
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range phases {
		writers.Go(func() { house.comeAndGo(t, i, agent, &phases[i]) })
	}
	for range 3 {
		readers.Go(func() { house.ask(t, agent, &phases, stop) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// readers is an organization without a store, and its gate.
type readers struct {
	*desk
	gate *gate.Gate
}

// openReaders gives an organization with one agent whose role has all groups.
func openReaders(t *testing.T) (*readers, identity.Principal) {
	t.Helper()
	d := newDesk()
	log := slog.New(slog.DiscardHandler)
	o, err := org.Load(org.Config{Groups: d.Manager, Now: time.Now, Log: log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Groups: d.Manager, Directory: o, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := o.CreateRole(operator, "all", org.RoleSpec{Name: "all"})
	if err != nil {
		t.Fatal(err)
	}
	_, agent, _, err := o.StartTask("task", org.TaskSpec{Caller: operator, Role: string(role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	return &readers{d, g}, identity.ByAgent(agent.ID)
}

// pair gives the i-th writer's group and tools.
func pair(i int) toolgroups.Group {
	return spec{id: groupIDs[i], owner: owners[i], tools: []toolSpec{{name: toolNames[2*i]}, {name: toolNames[2*i+1]}}}.group(nil)
}

func (r *readers) comeAndGo(t *testing.T, i int, agent identity.Principal, phase *atomic.Int64) {
	seat := r.gate.Subject(agent)
	for range 300 {
		if _, err := r.Register(owners[i], pair(i)); err != nil {
			t.Error(err)
		}
		if err := r.Unregister(owners[i], groupIDs[i]); err != nil {
			t.Error(err)
		}
		phase.Add(1) // unregistered
		for range 50 {
			if seat.Authorize(toolNames[2*i]).Allowed() {
				t.Errorf("%s is allowed after its group was unregistered", toolNames[2*i])
			}
		}
		phase.Add(1) // about to come again
	}
}

func (r *readers) ask(t *testing.T, agent identity.Principal, phases *[2]atomic.Int64, stop <-chan struct{}) {
	seat := r.gate.Subject(agent)
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		i := n % 2
		before := phases[i].Load()
		allowed := seat.Authorize(toolNames[2*i+n/2%2]).Allowed()
		if allowed && before%2 == 1 && phases[i].Load() == before {
			t.Errorf("%s was allowed after its group was unregistered", toolNames[2*i])
			return
		}
		seat.Visible()
	}
}
