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

func TestWhoIsEndedTakesAllBelowWithIt(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	before := len(said[journal.AgentTerminated](t, h))
	if err := h.Terminate(t.Context(), called(identity.ByAgent(f.root)), f.boss, "reorganisation"); err != nil {
		t.Fatal(err)
	}
	type ended struct {
		Agent, Parent identity.AgentID
		Reason        string
	}
	var got []ended
	for _, e := range happened[journal.AgentTerminated](t, h)[before:] {
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
		if a, err := h.AgentRecord(t.Context(), id); err != nil || a.Status != org.Terminated || a.Brief.Objective != "o" {
			t.Errorf("record of %s: %+v, %v", id, a, err)
		}
	}
	if a, ok := h.Org().Agent(f.peer); !ok || a.Status != org.Active {
		t.Error("one beside it is gone too")
	}
	close(free)
}

func TestOnlyDescendantsAreEnded(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	for _, c := range []struct {
		name   string
		by     identity.Principal
		target identity.AgentID
		code   errcode.Code
	}{
		{"its parent", identity.ByAgent(f.helper), f.worker, errcode.NotChildAgent},
		{"itself", identity.ByAgent(f.worker), f.worker, errcode.NotChildAgent},
		{"root by itself", identity.ByAgent(f.root), f.root, errcode.NotChildAgent},
		{"one beside it", identity.ByAgent(f.worker), f.peer, errcode.NotChildAgent},
		{"one of another task", identity.ByAgent(f.root), f.stranger, errcode.NotChildAgent},
		{"root by the operator", operator, f.root, errcode.NotChildAgent},
		{"nobody known", identity.ByAgent(f.root), "nobody", errcode.AgentNotFound},
		{"one who is gone", identity.ByAgent(f.boss), f.gone, errcode.AgentNotFound},
		{"by nobody", identity.Principal{}, f.helper, errcode.NotChildAgent},
		{"a grandchild", identity.ByAgent(f.boss), f.helper, ""},
		{"an agent by the operator", operator, f.worker, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errcode.Of(h.Terminate(t.Context(), called(c.by), c.target, "")); got != c.code {
				t.Errorf("code %q, want %q", got, c.code)
			}
		})
	}
	close(free)
}

func TestEndingIsIdempotentByCall(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	call := called(identity.ByAgent(f.root))
	for range 2 {
		if err := h.Terminate(t.Context(), call, f.boss, "enough"); err != nil {
			t.Error(err)
		}
	}
	if err := h.Terminate(t.Context(), called(identity.ByAgent(f.root)), f.boss, "enough"); errcode.Of(err) != errcode.AgentNotFound {
		t.Errorf("another call: %v, want agent_not_found", err)
	}
	if n := len(said[journal.AgentTerminated](t, h)); n != 4 { // gone, helper, worker, boss
		t.Errorf("%d terminations on record, want 4", n)
	}
	close(free)
}

func TestWhoIsEndedAtWorkStopsAndWritesNothingMore(t *testing.T) {
	for _, c := range []struct{ name, during string }{{"while a call runs", "slow"}, {"while the model thinks", ""}} {
		t.Run(c.name, func(t *testing.T) {
			free, busy, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
			block := func(ctx context.Context) {
				close(busy)
				<-ctx.Done()
				close(stopped)
			}
			slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) { block(ctx); return "late", nil })
			h := plan{tools: []tool.Tool{slow}, model: busyRoot(free, func(ctx context.Context, _ model.Request) (model.Answer, error) {
				if c.during == "slow" {
					return do("slow", obj{}), nil
				}
				block(ctx)
				return end("late"), nil
			})}.open(t)
			id := h.start(t, org.TaskSpec{})
			agent := h.hire(t, h.top(t, id), worker)
			h.tell(t, agent, `"one"`)
			<-busy
			h.tell(t, agent, `"unread"`)
			if err := h.Terminate(t.Context(), called(identity.ByAgent(h.top(t, id))), agent, ""); err != nil {
				t.Fatal(err)
			}
			<-stopped
			close(free)
			h.want(t, h.wait(t, id), `"free"`, "")
			h.empty(t, agent)
			all := happened[journal.AgentTerminated](t, h)
			for _, e := range h.events(t) {
				if e.Seq > all[0].Seq && (e.Agent == agent || e.Stream == agent) {
					t.Errorf("after its end: %s", encode(e))
				}
			}
		})
	}
}

// Who is ended just when it wakes has no turn yet that could be stopped: it
// must not begin one.
func TestWhoIsEndedWhileItWakesThinksNoMore(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(h *house, agent org.Agent) error
	}{
		{"the agent", func(h *house, a org.Agent) error { return h.Terminate(t.Context(), called(operator), a.ID, "") }},
		{"its task", func(h *house, a org.Agent) error { return h.Cancel(t.Context(), a.Task, "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			free, waking, wake := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var watched atomic.Value
			watched.Store("")
			var thought atomic.Bool
			h := plan{
				store: func(s journal.Store) journal.Store {
					return &between{Store: s, record: func(_, key string) {
						if key != "" && watched.CompareAndSwap(key, "") {
							close(waking)
							<-wake
						}
					}}
				},
				model: busyRoot(free, func(context.Context, model.Request) (model.Answer, error) {
					thought.Store(true)
					return wait(), nil
				}),
			}.open(t)
			id := h.start(t, org.TaskSpec{})
			agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
			watched.Store(string(agent))
			h.tell(t, agent, `"one"`)
			<-waking
			a, _ := h.Org().Agent(agent)
			if err := c.end(h, a); err != nil {
				t.Fatal(err)
			}
			close(wake)
			close(free)
			for h.Busy(agent) {
				goruntime.Gosched()
			}
			if thought.Load() {
				t.Error("its model was asked")
			}
		})
	}
}

func TestEndedListsWhoIsGone(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	task, _ := h.Org().Agent(f.root)
	list := func(id identity.TaskID) (ids []identity.AgentID) {
		for a, err := range h.Ended(t.Context(), id) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, a.ID)
		}
		return ids
	}
	if got := list(task.Task); !slices.Equal(got, []identity.AgentID{f.gone}) {
		t.Errorf("of the task: %v, want %v", got, f.gone)
	}
	if got := list("another"); len(got) > 0 {
		t.Errorf("of another task: %v", got)
	}
	if got := list(""); !slices.Equal(got, []identity.AgentID{f.gone}) {
		t.Errorf("of all: %v, want %v", got, f.gone)
	}
	close(free)
}

func TestARoleOutlivesTheAgentThatMadeIt(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	role, _ := h.Org().RoleNamed("helper") // made by worker
	if err := h.Terminate(t.Context(), called(operator), f.worker, ""); err != nil {
		t.Fatal(err)
	}
	if after, ok := h.Org().Role(role.ID); !ok || after.Status != org.Active || after.Revision != role.Revision {
		t.Errorf("the role its maker left: %+v, %v", after, ok)
	}
	close(free)
}

// Who had ended when the ended were kept with the others has ended still.
func TestWhoEndedBeforeIsKnown(t *testing.T) {
	dir, free := scratch(t), make(chan struct{})
	h := open(t, dir, busyRoot(free, waits))
	f := newFamily(t, h)
	task, _ := h.Org().Agent(f.root)
	old := org.Agent{ID: "old", Role: "r", Parent: f.root, Task: task.Task, Status: org.Terminated, EndedBy: "c"}
	if _, err := h.store.Commit(t.Context(), &journal.Batch{Put: []journal.Record{{Kind: string(org.KindAgent), Key: "old", Value: encode(old)}}}); err != nil {
		t.Fatal(err)
	}
	h.leave(t)
	h = open(t, dir, busyRoot(free, waits))
	if a, err := h.AgentRecord(t.Context(), "old"); err != nil || a.Status != org.Terminated {
		t.Errorf("got %+v, %v", a, err)
	}
	if a, ok := h.Org().Agent("old"); ok {
		t.Errorf("it is in being: %+v", a)
	}
	var got []identity.AgentID
	for a, err := range h.Ended(t.Context(), task.Task) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.ID)
	}
	if !slices.Equal(got, []identity.AgentID{"old", f.gone}) {
		t.Errorf("got %v, want it and %s", got, f.gone)
	}
	close(free)
}

// A repeated spawn that cannot read whether its agent was ended makes nobody: a
// record that is lost brings nobody back.
func TestARepeatedSpawnThatCannotLookMakesNobody(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	blind := &unreadable{}
	h := plan{model: busyRoot(free, waits), store: func(s journal.Store) journal.Store { blind.Store = s; return blind }}.open(t)
	f := newFamily(t, h)
	worker, _ := h.Org().Agent(f.root)
	role := h.Org().Roles()[0]
	c := called(identity.ByAgent(worker.ID))
	s := org.Spawn{Role: role.ID, Brief: org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	spawned, err := h.Spawn(t.Context(), c, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Terminate(t.Context(), called(operator), spawned.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	blind.kind.Store(string(org.KindTerminated))
	if _, err := h.Spawn(t.Context(), c, s, nil); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if _, ok := h.Org().Agent(spawned.ID); ok {
		t.Error("the agent is back")
	}
}

// unreadable is a store whose records of one kind are damaged.
type unreadable struct {
	journal.Store
	kind atomic.Value // a string
}

// Record implements journal.Records.
func (s *unreadable) Record(ctx context.Context, kind, key string) ([]byte, error) {
	if kind == s.kind.Load() {
		return nil, journal.ErrDamaged
	}
	return s.Store.Record(ctx, kind, key)
}
