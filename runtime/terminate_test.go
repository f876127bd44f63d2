package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

func TestTerminate_Cascades(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	before := len(bodiesOf[journal.AgentTerminated](t, fx))
	if err := fx.TerminateAgent(t.Context(), newCall(identity.ByAgent(f.root)), f.boss, "reorganisation"); err != nil {
		t.Fatal(err)
	}
	type ended struct {
		Agent, Parent identity.AgentID
		Reason        string
	}
	var got []ended
	for _, e := range eventsOf[journal.AgentTerminated](t, fx)[before:] {
		b := e.Body.(journal.AgentTerminated)
		got = append(got, ended{e.Agent, b.Parent, b.Reason})
		if b.By != "agent:"+string(f.root) {
			t.Errorf("ended by %q, want root", b.By)
		}
	}
	const cascade = "parent terminated (cascade)"
	want := []ended{{f.helper, f.worker, cascade}, {f.worker, f.boss, cascade}, {f.boss, f.root, "reorganisation"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, id := range []identity.AgentID{f.helper, f.worker, f.boss} {
		if a, err := fx.AgentRecord(t.Context(), id); err != nil || a.Status != org.Terminated || a.Brief.Objective != "o" {
			t.Errorf("record of %s: %+v, %v", id, a, err)
		}
	}
	if a, ok := fx.Org().AgentByID(f.peer); !ok || a.Status != org.Active {
		t.Error("a sibling was terminated too")
	}
	close(free)
}

func TestTerminate_OnlyDescendants(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	for _, c := range []struct {
		name   string
		by     identity.Principal
		target identity.AgentID
		code   errcode.Code
	}{
		{"its parent", identity.ByAgent(f.helper), f.worker, errcode.NotChildAgent},
		{"itself", identity.ByAgent(f.worker), f.worker, errcode.NotChildAgent},
		{"root by itself", identity.ByAgent(f.root), f.root, errcode.NotChildAgent},
		{"a sibling", identity.ByAgent(f.worker), f.peer, errcode.NotChildAgent},
		{"an agent of another task", identity.ByAgent(f.root), f.otherAgent, errcode.NotChildAgent},
		{"root by the operator", operator, f.root, errcode.NotChildAgent},
		{"an unknown agent", identity.ByAgent(f.root), "nobody", errcode.AgentNotFound},
		{"a terminated agent", identity.ByAgent(f.boss), f.terminated, errcode.AgentNotFound},
		{"without a principal", identity.Principal{}, f.helper, errcode.NotChildAgent},
		{"a grandchild", identity.ByAgent(f.boss), f.helper, ""},
		{"an agent by the operator", operator, f.worker, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errcode.CodeOf(fx.TerminateAgent(t.Context(), newCall(c.by), c.target, "")); got != c.code {
				t.Errorf("code %q, want %q", got, c.code)
			}
		})
	}
	close(free)
}

func TestTerminate_IdempotentPerCall(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	call := newCall(identity.ByAgent(f.root))
	for range 2 {
		if err := fx.TerminateAgent(t.Context(), call, f.boss, "enough"); err != nil {
			t.Error(err)
		}
	}
	if err := fx.TerminateAgent(t.Context(), newCall(identity.ByAgent(f.root)), f.boss, "enough"); errcode.CodeOf(err) != errcode.AgentNotFound {
		t.Errorf("another call: %v, want agent_not_found", err)
	}
	if n := len(bodiesOf[journal.AgentTerminated](t, fx)); n != 4 { // gone, helper, worker, boss
		t.Errorf("%d terminations on record, want 4", n)
	}
	close(free)
}

func TestTerminate_StopsActiveAgent(t *testing.T) {
	for _, c := range []struct{ name, during string }{{"while a call runs", "slow"}, {"during a model request", ""}} {
		t.Run(c.name, func(t *testing.T) {
			free, busy, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
			block := func(ctx context.Context) {
				close(busy)
				<-ctx.Done()
				close(stopped)
			}
			slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) { block(ctx); return "late", nil })
			fx := fixtureConfig{tools: []tool.Tool{slow}, model: blockingRoot(free, func(ctx context.Context, _ model.Request) (model.Answer, error) {
				if c.during == "slow" {
					return callTools("slow", obj{}), nil
				}
				block(ctx)
				return endWith("late"), nil
			})}.open(t)
			id := fx.start(t, org.TaskSpec{})
			agent := fx.spawnAgent(t, fx.topAgent(t, id), workerSpec)
			fx.send(t, agent, `"one"`)
			<-busy
			fx.send(t, agent, `"unread"`)
			if err := fx.TerminateAgent(t.Context(), newCall(identity.ByAgent(fx.topAgent(t, id))), agent, ""); err != nil {
				t.Fatal(err)
			}
			<-stopped
			close(free)
			fx.wantResult(t, fx.wait(t, id), `"free"`, "")
			fx.wantNoWork(t, agent)
			all := eventsOf[journal.AgentTerminated](t, fx)
			for _, e := range fx.events(t) {
				if e.Seq > all[0].Seq && (e.Agent == agent || e.Stream == agent) {
					t.Errorf("after its end: %s", mustJSON(e))
				}
			}
		})
	}
}

// An agent that is terminated while it is being woken has no turn that could be
// cancelled. It must not start one.
func TestTerminate_WhileAgentWakes(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(fx *fixture, agent org.Agent) error
	}{
		{"the agent", func(fx *fixture, a org.Agent) error {
			return fx.TerminateAgent(t.Context(), newCall(operator), a.ID, "")
		}},
		{"its task", func(fx *fixture, a org.Agent) error { return fx.CancelTask(t.Context(), a.Task, "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			free, waking, wake := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var watched atomic.Value
			watched.Store("")
			var thought atomic.Bool
			fx := fixtureConfig{
				wrapStore: func(s journal.Store) journal.Store {
					return &hookStore{Store: s, record: func(_, key string) {
						if key != "" && watched.CompareAndSwap(key, "") {
							close(waking)
							<-wake
						}
					}}
				},
				model: blockingRoot(free, func(context.Context, model.Request) (model.Answer, error) {
					thought.Store(true)
					return waitForMessage(), nil
				}),
			}.open(t)
			id := fx.start(t, org.TaskSpec{})
			agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
			watched.Store(string(agent))
			fx.send(t, agent, `"one"`)
			<-waking
			a, _ := fx.Org().AgentByID(agent)
			if err := c.end(fx, a); err != nil {
				t.Fatal(err)
			}
			close(wake)
			close(free)
			for fx.IsBusy(agent) {
				goruntime.Gosched()
			}
			if thought.Load() {
				t.Error("its model was asked")
			}
		})
	}
}

func TestEnded_ListsTerminatedAgents(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	task, _ := fx.Org().AgentByID(f.root)
	list := func(id identity.TaskID) (ids []identity.AgentID) {
		for a, err := range fx.EndedAgents(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, a.ID)
		}
		return ids
	}
	if got := list(task.Task); !slices.Equal(got, []identity.AgentID{f.terminated}) {
		t.Errorf("of the task: %v, want %v", got, f.terminated)
	}
	if got := list("another"); len(got) > 0 {
		t.Errorf("of another task: %v", got)
	}
	if got := list(""); !slices.Equal(got, []identity.AgentID{f.terminated}) {
		t.Errorf("of all: %v, want %v", got, f.terminated)
	}
	close(free)
}

func TestTerminate_KeepsRolesOfAgent(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	role, _ := fx.Org().RoleByName("helper") // created by worker
	if err := fx.TerminateAgent(t.Context(), newCall(operator), f.worker, ""); err != nil {
		t.Fatal(err)
	}
	if after, ok := fx.Org().RoleByID(role.ID); !ok || after.Status != org.Active || after.Revision != role.Revision {
		t.Errorf("the role of a terminated creator: %+v, %v", after, ok)
	}
	close(free)
}

// Stores written by earlier versions keep terminated agents among the active
// ones.
func TestEnded_ReadsOldRecords(t *testing.T) {
	dir, free := fastTempDir(t), make(chan struct{})
	fx := openFixture(t, dir, blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	task, _ := fx.Org().AgentByID(f.root)
	old := org.Agent{ID: "old", Role: "r", Parent: f.root, Task: task.Task, Status: org.Terminated, EndedBy: "c"}
	if _, err := fx.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: string(org.KindAgent), Key: "old", Value: mustJSON(old)}}}); err != nil {
		t.Fatal(err)
	}
	fx.shutdown(t)
	fx = openFixture(t, dir, blockingRoot(free, alwaysWait))
	if a, err := fx.AgentRecord(t.Context(), "old"); err != nil || a.Status != org.Terminated {
		t.Errorf("got %+v, %v", a, err)
	}
	if a, ok := fx.Org().AgentByID("old"); ok {
		t.Errorf("it is active: %+v", a)
	}
	var got []identity.AgentID
	for a, err := range fx.EndedAgents(t.Context(), task.Task) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.ID)
	}
	if !slices.Equal(got, []identity.AgentID{"old", f.terminated}) {
		t.Errorf("got %v, want it and %s", got, f.terminated)
	}
	close(free)
}

// A repeated spawn fails if it cannot read whether its agent was terminated, so
// a lost record does not bring an agent back.
func TestSpawn_RepeatFailsOnUnreadableRecord(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	damaged := &damagedStore{}
	fx := fixtureConfig{model: blockingRoot(free, alwaysWait), wrapStore: func(s journal.Store) journal.Store { damaged.Store = s; return damaged }}.open(t)
	f := newAgentTree(t, fx)
	worker, _ := fx.Org().AgentByID(f.root)
	role := fx.Org().ListRoles()[0]
	c := newCall(identity.ByAgent(worker.ID))
	s := org.SpawnSpec{Role: role.ID, Brief: org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	spawned, err := fx.SpawnAgent(t.Context(), c, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fx.TerminateAgent(t.Context(), newCall(operator), spawned.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	damaged.kind.Store(string(org.KindTerminated))
	if _, err := fx.SpawnAgent(t.Context(), c, s, nil); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if _, ok := fx.Org().AgentByID(spawned.ID); ok {
		t.Error("the agent is back")
	}
}

// damagedStore is a store whose records of one kind are damaged.
type damagedStore struct {
	journal.Store
	kind atomic.Value // a string
}

// ReadRecord implements journal.RecordReader.
func (s *damagedStore) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	if kind == s.kind.Load() {
		return nil, journal.ErrDamaged
	}
	return s.Store.ReadRecord(ctx, kind, key)
}
