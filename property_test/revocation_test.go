package property_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// eager agents call t0 and t3 again and again. Who is at the top of a task
// never answers; nobody answers any more once they are told to stop.
type eager struct {
	mu    sync.Mutex
	asked *sync.Cond               // told when an agent is
	times map[identity.AgentID]int // asked; guarded by mu
	still bool                     // guarded by mu
}

func newEager() *eager {
	e := &eager{times: map[identity.AgentID]int{}}
	e.asked = sync.NewCond(&e.mu)
	return e
}

// Generate implements model.Model.
func (e *eager) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if r.Self.Parent == "" {
			<-ctx.Done()
			yield(model.Delta{}, ctx.Err())
			return
		}
		answer := &model.Answer{Finish: model.FinishWait, MessagesRead: read(r)}
		if e.again(r.Self.ID) {
			answer.Finish, answer.Calls = model.FinishToolCalls, []model.Call{{Name: "t0"}, {Name: "t3"}}
		}
		yield(model.Delta{Answer: answer}, nil)
	}
}

func (e *eager) again(id identity.AgentID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times[id]++
	e.asked.Broadcast()
	return !e.still
}

func (e *eager) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.still = true
}

// turns returns when every one of some agents was asked so often again: then
// each has made calls that it began to make after turns was called.
func (e *eager) turns(n int, agents ...identity.AgentID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	until := map[identity.AgentID]int{}
	for _, id := range agents {
		until[id] = e.times[id] + n
	}
	for slices.ContainsFunc(agents, func(id identity.AgentID) bool { return e.times[id] < until[id] }) {
		e.asked.Wait()
	}
}

// chronicle is a store that remembers what each commit said, by its number.
type chronicle struct {
	*memory
	mu      sync.Mutex
	commits []chapter // guarded by mu
}

// chapter is a commit: the records it put and the calls it let start.
type chapter struct {
	seq   uint64
	put   []journal.Record
	calls []journal.Event
}

// Commit implements journal.Log.
func (c *chronicle) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	seq, err := c.memory.Commit(ctx, b)
	if err != nil {
		return seq, err
	}
	calls := slices.DeleteFunc(slices.Clone(b.Events), func(e journal.Event) bool { return !allowsCall(e) })
	if len(calls)+len(b.Put) > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.commits = append(c.commits, chapter{seq, slices.Clone(b.Put), calls})
	}
	return seq, err
}

// told gives the commits in their order.
func (c *chronicle) told() []chapter {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortStableFunc(c.commits, func(a, b chapter) int { return int(a.seq) - int(b.seq) })
	return c.commits
}

// gap is a time, in commits, in which nobody had a group.
type gap struct {
	after, until uint64
	tool         string
}

// siege is an organization whose workers call without pause while the
// operator takes away and gives back what they call.
type siege struct {
	*runtime.Runtime
	store   *chronicle
	model   *eager
	groups  *toolgroups.Manager
	boss    identity.RoleID // made the workers' role
	role    identity.RoleID
	workers []identity.AgentID
	gaps    []gap

	mu    sync.Mutex
	acted map[identity.CallID]int // guarded by mu
}

// besieger is a tool of the siege.
type besieger struct {
	name  string
	siege *siege
}

func (b besieger) Definition() tool.Definition {
	return doer{name: b.name}.Definition()
}

func (b besieger) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	b.siege.mu.Lock()
	defer b.siege.mu.Unlock()
	b.siege.acted[c.ID]++
	return tool.Result{Text: "done"}, nil
}

func (s *siege) group(id toolgroups.GroupID, name string) toolgroups.Group {
	return toolgroups.Group{ID: id, Tools: []tool.Tool{besieger{name, s}}}
}

func newSiege(t *testing.T) *siege {
	t.Helper()
	s := &siege{store: &chronicle{memory: newMemory()}, model: newEager(), groups: newDesk().Manager, acted: map[identity.CallID]int{}}
	for id, name := range map[toolgroups.GroupID]string{"alpha": "t0", "beta": "t3"} {
		if _, err := s.groups.Register("module:a", s.group(id, name)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.Runtime, err = runtime.New(runtime.Config{
		Store: s.store, Groups: s.groups, Rounds: 1 << 30,
		Model: func(string) (model.Model, error) { return s.model, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.populate(t)
	return s
}

// populate has root make a boss, and the boss make three workers.
func (s *siege) populate(t *testing.T) {
	t.Helper()
	id, err := s.Start(t.Context(), org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := s.Org().Task(id)
	both := toolgroups.Of("alpha", "beta")
	hire := func(by identity.AgentID, spec org.RoleSpec, first []byte) (identity.RoleID, identity.AgentID) {
		role, err := s.CreateRole(t.Context(), call(identity.ByAgent(by)), spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Spawn(t.Context(), call(identity.ByAgent(by)), org.Spawn{Role: role.ID, Brief: brief}, first)
		if err != nil {
			t.Fatal(err)
		}
		return role.ID, a.ID
	}
	var boss identity.AgentID
	s.boss, boss = hire(task.Top, org.RoleSpec{Name: "boss", Use: &both, Grant: &both}, nil)
	for range 3 { // the role is the same each time
		var worker identity.AgentID
		s.role, worker = hire(boss, org.RoleSpec{Name: "worker", Use: &both}, []byte(`"go"`))
		s.workers = append(s.workers, worker)
	}
}

// strike takes something away or gives something back.
func (s *siege) strike(n int) error {
	both, beta := toolgroups.Of("alpha", "beta"), toolgroups.Of("beta")
	var err error
	switch n {
	case 0:
		_, _, err = s.UpdateRole(operator, s.role, org.RoleSpec{Use: &beta}, false)
	case 1:
		_, _, err = s.UpdateRole(operator, s.role, org.RoleSpec{Use: &both}, false)
	case 2:
		_, _, err = s.UpdateRole(operator, s.boss, org.RoleSpec{Grant: &beta}, false)
	case 3:
		_, _, err = s.UpdateRole(operator, s.boss, org.RoleSpec{Grant: &both}, false)
	case 4:
		return s.blink()
	}
	return err
}

// blink has a group go, and come again after its agents had turns without it.
func (s *siege) blink() error {
	if err := s.Unregister("module:a", "alpha"); err != nil {
		return err
	}
	after := s.store.Seq()
	s.model.turns(2, s.workers...)
	s.gaps = append(s.gaps, gap{after, s.store.Seq(), "t0"})
	_, err := s.Register("module:a", s.group("alpha", "t0"))
	return err
}

// Revocation: "A revocation that was acknowledged is in force: no call starts
// after it." Agents call in their own turns, without pause, while the operator
// revokes and restores at every place a right passes: their role, the role
// that made it, the group; at last agents end and the role goes. What was
// recorded says in which order all of it took effect: every call that was let
// start was lawful at its place in that order, and every tool that acted had
// its call let start, once.
func TestNoCallStartsAfterARevocationWasAcknowledged(t *testing.T) {
	seed := flags.Seed()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	s := newSiege(t)
	for range max(20, flags.Cases/2) {
		if err := s.strike(r.IntN(5)); err != nil {
			t.Fatal(err)
		}
		s.model.turns(1+r.IntN(2), s.workers...)
	}
	s.finish(t)
	started := s.checkOrder(t)
	if s.checkActs(t, started); len(started) < 100 {
		t.Errorf("%d calls started; this says nothing", len(started))
	}
	t.Logf("%d calls started in %d commits", len(started), s.store.Seq())
}

// finish gives all rights back, ends a worker, then takes the role away.
func (s *siege) finish(t *testing.T) {
	t.Helper()
	s.revoke(t, s.strike(1))
	s.revoke(t, s.strike(3))
	s.model.turns(2, s.workers...)
	s.revoke(t, s.Terminate(t.Context(), call(operator), s.workers[0], "enough"))
	s.workers = s.workers[1:]
	s.model.turns(2, s.workers...)
	_, err := s.DeleteRole(operator, s.role, false)
	s.revoke(t, err)
	s.model.turns(3, s.workers...)
	s.model.stop()
	s.Close()
}

func (s *siege) revoke(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkOrder holds every call that was let start against the law as it was
// then, and gives them.
func (s *siege) checkOrder(t *testing.T) map[identity.CallID]bool {
	t.Helper()
	law := newLaw(&registry{groups: []spec{
		{id: "alpha", owner: "module:a", tools: []toolSpec{{name: "t0"}}},
		{id: "beta", owner: "module:a", tools: []toolSpec{{name: "t3"}}},
	}})
	started := map[identity.CallID]bool{}
	for _, c := range s.store.told() {
		for _, e := range c.calls {
			started[e.Body.(journal.ToolCall).Call] = true
			if err := s.lawful(law, e); err != nil {
				t.Error(err)
			}
		}
		for _, r := range c.put {
			law.learn(r)
		}
	}
	return started
}

func (s *siege) lawful(law *law, e journal.Event) error {
	name := e.Body.(journal.ToolCall).Tool
	if !law.may(law.agents[e.Agent], name) {
		return fmt.Errorf("commit %d: %s started for agent %s, from whom it had been taken", e.Seq, name, e.Agent)
	}
	for _, g := range s.gaps {
		if g.tool == name && e.Seq > g.after && e.Seq <= g.until {
			return fmt.Errorf("commit %d: %s started, which nobody had from commit %d to %d", e.Seq, name, g.after, g.until)
		}
	}
	return nil
}

func (s *siege) checkActs(t *testing.T, started map[identity.CallID]bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.acted {
		if !started[id] || n != 1 {
			t.Errorf("call %s acted %d times; on record as started: %v", id, n, started[id])
		}
	}
}

// The check of order finds what it is for: a store that lets an intent commit
// although its decision was superseded.
func TestTheOrderOfCommitsTellsALateCall(t *testing.T) {
	s := newSiege(t)
	s.model.turns(2, s.workers...)
	s.revoke(t, s.strike(0))
	s.model.stop()
	s.Close()
	late := journal.Event{Agent: s.workers[0], Body: journal.ToolCall{Call: "late", Tool: "t0", Decision: journal.Allowed}}
	if _, err := s.store.Commit(t.Context(), &journal.Batch{Stream: s.workers[0], Events: []journal.Event{late}}); err != nil {
		t.Fatal(err)
	}
	law := newLaw(&registry{groups: []spec{{id: "alpha", owner: "module:a", tools: []toolSpec{{name: "t0"}}}}})
	for _, c := range s.store.told() {
		for _, r := range c.put {
			law.learn(r)
		}
	}
	if s.lawful(law, late) == nil {
		t.Error("a call that started after its revocation passes for lawful")
	}
}
