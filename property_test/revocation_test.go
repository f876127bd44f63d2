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
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// busyModel is a model whose agents call t0 and t3 repeatedly until it is
// stopped. The agent at the top of a task never answers.
type busyModel struct {
	mu       sync.Mutex
	asked    *sync.Cond               // signalled at every request; uses mu
	requests map[identity.AgentID]int // number of requests; guarded by mu
	stopped  bool                     // guarded by mu
}

func newBusyModel() *busyModel {
	e := &busyModel{requests: map[identity.AgentID]int{}}
	e.asked = sync.NewCond(&e.mu)
	return e
}

// Generate implements model.Model.
func (m *busyModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		if r.Self.Parent == "" {
			<-ctx.Done()
			yield(model.AnswerDelta{}, ctx.Err())
			return
		}
		answer := &model.Answer{Finish: model.FinishWait, MessagesRead: countMessages(r)}
		if m.shouldCall(r.Self.ID) {
			answer.Finish, answer.Calls = model.FinishToolCalls, []model.Call{{Name: "t0"}, {Name: "t3"}}
		}
		yield(model.AnswerDelta{Answer: answer}, nil)
	}
}

// shouldCall counts a request and reports whether the model is still running.
func (m *busyModel) shouldCall(id identity.AgentID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[id]++
	m.asked.Broadcast()
	return !m.stopped
}

func (m *busyModel) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
}

// waitTurns waits until each of some agents has made n more requests. With n of
// 2 or more, each has then made calls that it started after waitTurns was
// called.
func (m *busyModel) waitTurns(n int, agents ...identity.AgentID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	until := map[identity.AgentID]int{}
	for _, id := range agents {
		until[id] = m.requests[id] + n
	}
	for slices.ContainsFunc(agents, func(id identity.AgentID) bool { return m.requests[id] < until[id] }) {
		m.asked.Wait()
	}
}

// waitTurns is busyModel.waitTurns for the workers. While their role is paused they rest, and it
// returns at once.
func (s *revocationRace) waitTurns(n int) {
	if role, _ := s.Org().RoleByID(s.role); !role.Suspended() {
		s.model.waitTurns(n, s.workers...)
	}
}

// commitHistory is a store that records the contents of its commits.
type commitHistory struct {
	*memoryStore
	mu      sync.Mutex
	commits []committed // guarded by mu
}

// committed is a commit: its records and the calls that it started.
type committed struct {
	seq   uint64
	put   []journal.Record
	calls []journal.Event
}

// Commit implements journal.Log.
func (h *commitHistory) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	seq, err := h.memoryStore.Commit(ctx, b)
	if err != nil {
		return seq, err
	}
	calls := slices.DeleteFunc(slices.Clone(b.Events), func(e journal.Event) bool { return !startsCall(e) })
	if len(calls)+len(b.Put) > 0 {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.commits = append(h.commits, committed{seq, slices.Clone(b.Put), calls})
	}
	return seq, err
}

// sorted returns the commits by sequence number.
func (h *commitHistory) sorted() []committed {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(h.commits, func(a, b committed) int { return int(a.seq) - int(b.seq) })
	return h.commits
}

// absence is a range of commits in which a tool was not registered.
type absence struct {
	after, until uint64
	tool         string
}

// revocationRace is an organization whose workers make calls without pause
// while the operator revokes and restores their permissions.
type revocationRace struct {
	*runtime.Runtime
	store       *commitHistory
	model       *busyModel
	groups      *toolgroups.Manager
	managerRole identity.RoleID // creator of the workers' role
	role        identity.RoleID
	workers     []identity.AgentID
	absences    []absence

	mu   sync.Mutex
	runs map[identity.CallID]int // guarded by mu
}

// raceTool is a tool that counts its runs by call id.
type raceTool struct {
	name string
	race *revocationRace
}

func (t raceTool) Definition() tool.Definition {
	return effectTool{toolSpec: toolSpec{Name: t.name}}.Definition()
}

func (t raceTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	t.race.mu.Lock()
	defer t.race.mu.Unlock()
	t.race.runs[c.ID]++
	return tool.Result{Text: "done"}, nil
}

func (s *revocationRace) group(id toolgroups.GroupID, name string) toolgroups.Group {
	return toolgroups.Group{ID: id, Tools: []tool.Tool{raceTool{name, s}}}
}

func newRevocationRace(t *testing.T) *revocationRace {
	t.Helper()
	s := &revocationRace{store: &commitHistory{memoryStore: newMemoryStore()}, model: newBusyModel(), groups: newCheckedManager().Manager, runs: map[identity.CallID]int{}}
	for id, name := range map[toolgroups.GroupID]string{"alpha": "t0", "beta": "t3"} {
		if _, err := grouptest.RegisterGroup(s.groups, "module:a", s.group(id, name)); err != nil {
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
	s.createAgents(t)
	return s
}

// createAgents creates a manager below root and three workers below the
// manager.
func (s *revocationRace) createAgents(t *testing.T) {
	t.Helper()
	id, err := s.StartTask(t.Context(), org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := s.Org().TaskByID(id)
	both := toolgroups.SetOf("alpha", "beta")
	createAgent := func(by identity.AgentID, spec org.RoleSpec, first []byte) (identity.RoleID, identity.AgentID) {
		role, err := s.CreateRole(t.Context(), newCall(identity.ByAgent(by)), spec)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.SpawnAgent(t.Context(), newCall(identity.ByAgent(by)), org.SpawnSpec{Role: role.ID, Brief: taskBrief}, first)
		if err != nil {
			t.Fatal(err)
		}
		return role.ID, a.ID
	}
	var manager identity.AgentID
	s.managerRole, manager = createAgent(task.Top, org.RoleSpec{Name: "manager", Use: &both, Grant: &both}, nil)
	for range 3 { // the roles are identical, so it is the same one each time
		var worker identity.AgentID
		s.role, worker = createAgent(manager, org.RoleSpec{Name: "worker", Use: &both}, []byte(`"go"`))
		s.workers = append(s.workers, worker)
	}
}

// changeRights makes one of seven changes that revoke or restore permissions.
func (s *revocationRace) changeRights(n int) error {
	both, beta := toolgroups.SetOf("alpha", "beta"), toolgroups.SetOf("beta")
	var err error
	switch n {
	case 0:
		_, _, err = s.UpdateRole(operator, s.role, org.RoleSpec{Use: &beta}, false)
	case 1:
		_, _, err = s.UpdateRole(operator, s.role, org.RoleSpec{Use: &both}, false)
	case 2:
		_, _, err = s.UpdateRole(operator, s.managerRole, org.RoleSpec{Grant: &beta}, false)
	case 3:
		_, _, err = s.UpdateRole(operator, s.managerRole, org.RoleSpec{Grant: &both}, false)
	case 4:
		return s.unregisterBriefly()
	case 5:
		_, _, err = s.PauseRole(operator, s.role, "")
	case 6:
		_, _, err = s.ResumeRole(operator, s.role, "")
	}
	return err
}

// unregisterBriefly unregisters a group and registers it again after the
// workers had turns without it.
func (s *revocationRace) unregisterBriefly() error {
	if err := grouptest.UnregisterGroup(s.GroupManager(), "module:a", "alpha"); err != nil {
		return err
	}
	after := s.store.LastSeq()
	s.waitTurns(2)
	s.absences = append(s.absences, absence{after, s.store.LastSeq(), "t0"})
	_, err := grouptest.RegisterGroup(s.GroupManager(), "module:a", s.group("alpha", "t0"))
	return err
}

// No call starts after the revocation of its permission was acknowledged. Agents make calls
// in their own turns without pause. Meanwhile the operator revokes and restores permissions
// at every place they pass: the role, its suspension, its creator role, and the group.
// Finally agents are terminated and the role is deleted. The commits are in the order of all
// that. Every started call must have been allowed at its position, and every tool that ran
// must have been started exactly once.
func TestRevocation_NoCallStartsAfterAcknowledgement(t *testing.T) {
	seed := flags.Seed()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	s := newRevocationRace(t)
	for range max(cases, flags.Cases) / 2 {
		if err := s.changeRights(r.IntN(7)); err != nil {
			t.Fatal(err)
		}
		s.waitTurns(1 + r.IntN(2))
	}
	s.finish(t)
	started := s.checkOrder(t)
	if s.checkEffects(t, started); len(started) < 100 {
		t.Errorf("only %d calls started; the test proves nothing", len(started))
	}
	t.Logf("%d calls started in %d commits", len(started), s.store.LastSeq())
}

// finish restores all permissions, terminates a worker, then deletes the role.
func (s *revocationRace) finish(t *testing.T) {
	t.Helper()
	s.must(t, s.changeRights(1))
	s.must(t, s.changeRights(3))
	s.must(t, s.changeRights(6))
	s.waitTurns(2)
	s.must(t, s.TerminateAgent(t.Context(), newCall(operator), s.workers[0], "enough"))
	s.workers = s.workers[1:]
	s.waitTurns(2)
	_, err := s.DeleteRole(operator, s.role, false)
	s.must(t, err)
	s.waitTurns(3)
	s.model.stop()
	s.Close()
}

// must fails the test on an error.
func (s *revocationRace) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkOrder checks every started call against the permissions at that commit,
// and returns the started calls.
func (s *revocationRace) checkOrder(t *testing.T) map[identity.CallID]bool {
	t.Helper()
	inv := newInvariants(&naiveRegistry{Groups: []groupSpec{
		{ID: "alpha", Owner: "module:a", Tools: []toolSpec{{Name: "t0"}}},
		{ID: "beta", Owner: "module:a", Tools: []toolSpec{{Name: "t3"}}},
	}})
	started := map[identity.CallID]bool{}
	for _, c := range s.store.sorted() {
		for _, e := range c.calls {
			started[e.Body.(journal.ToolCall).Call] = true
			if err := s.checkStart(inv, e); err != nil {
				t.Error(err)
			}
		}
		for _, r := range c.put {
			inv.apply(r)
		}
	}
	return started
}

// checkStart returns an error if a call was not allowed to start.
func (s *revocationRace) checkStart(inv *invariants, e journal.Event) error {
	name := e.Body.(journal.ToolCall).Tool
	if !inv.mayCall(inv.agents[e.Agent], name) {
		return fmt.Errorf("commit %d: %s started for agent %s, for which it was revoked", e.Seq, name, e.Agent)
	}
	for _, g := range s.absences {
		if g.tool == name && e.Seq > g.after && e.Seq <= g.until {
			return fmt.Errorf("commit %d: %s started, which was not registered from commit %d to %d", e.Seq, name, g.after, g.until)
		}
	}
	return nil
}

// checkEffects checks that every tool run belongs to one started call.
func (s *revocationRace) checkEffects(t *testing.T, started map[identity.CallID]bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.runs {
		if !started[id] || n != 1 {
			t.Errorf("call %s ran %d times; recorded as started: %v", id, n, started[id])
		}
	}
}

// checkStart detects a store that commits an intent although its decision was
// superseded.
func TestRevocationRace_DetectsLateCall(t *testing.T) {
	s := newRevocationRace(t)
	s.waitTurns(2)
	s.must(t, s.changeRights(0))
	s.model.stop()
	s.Close()
	late := journal.Event{Agent: s.workers[0], Body: journal.ToolCall{Call: "late", Tool: "t0", Decision: journal.Allowed}}
	if _, err := s.store.Commit(t.Context(), &journal.Batch{Stream: s.workers[0], Events: []journal.Event{late}}); err != nil {
		t.Fatal(err)
	}
	inv := newInvariants(&naiveRegistry{Groups: []groupSpec{{ID: "alpha", Owner: "module:a", Tools: []toolSpec{{Name: "t0"}}}}})
	for _, c := range s.store.sorted() {
		for _, r := range c.put {
			inv.apply(r)
		}
	}
	if s.checkStart(inv, late) == nil {
		t.Error("a call that started after its revocation was accepted")
	}
}
