package property_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// revocation revokes something from the agent of a workerFixture. remaining
// lists which of the tools t0 (of alpha) and t3 (of beta) it may still call.
type revocation struct {
	name      string
	apply     func(w *workerFixture) error
	remaining []string
}

var onlyBeta = toolgroups.SetOf("beta")

var revocations = []revocation{
	{"group of the role", func(w *workerFixture) error {
		_, _, err := w.UpdateRole(operator, w.role, org.RoleSpec{Use: &onlyBeta}, false)
		return err
	}, []string{"t3"}},
	{"group in the grant of the creator role", func(w *workerFixture) error {
		_, _, err := w.UpdateRole(operator, w.manager, org.RoleSpec{Grant: &onlyBeta}, false)
		return err
	}, []string{"t3"}},
	{"role", func(w *workerFixture) error {
		_, err := w.DeleteRole(operator, w.role, false)
		return err
	}, nil},
	{"creator role", func(w *workerFixture) error {
		_, err := w.DeleteRole(operator, w.manager, false)
		return err
	}, nil},
	{"registration of the group", func(w *workerFixture) error { return grouptest.UnregisterGroup(w.GroupManager(), "module:a", "alpha") }, []string{"t3"}},
}

// terminations are revocations after which the agent does not exist.
var terminations = []revocation{
	{"agent", func(w *workerFixture) error {
		return w.TerminateAgent(context.Background(), newCall(operator), w.agent, "revoked")
	}, nil},
	{"parent agent", func(w *workerFixture) error {
		a, _ := w.Org().AgentByID(w.agent)
		return w.TerminateAgent(context.Background(), newCall(operator), a.Parent, "revoked")
	}, nil},
	{"task", func(w *workerFixture) error {
		a, _ := w.Org().AgentByID(w.agent)
		return w.CancelTask(context.Background(), a.Task, "revoked")
	}, nil},
}

// workerFixture is an agent with the groups alpha and beta. Its role was
// created by its parent, a manager.
type workerFixture struct {
	*runtime.Runtime
	groups        *checkedManager
	role, manager identity.RoleID
	agent         identity.AgentID
}

// newWorkerFixture starts a task whose root creates a manager, and the manager
// the worker.
func newWorkerFixture(store journal.Store, m model.Model) (*workerFixture, error) {
	w := &workerFixture{groups: newCheckedManager()}
	for _, g := range slices.Concat(builtinSpecs, moduleGroups[:2]) {
		if _, err := w.groups.Register(g); err != nil {
			return nil, err
		}
	}
	var err error
	if w.Runtime, err = newRuntime(store, w.groups.Manager, m); err != nil {
		return nil, err
	}
	id, err := w.StartTask(context.Background(), org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		return nil, err
	}
	task, _ := w.Org().TaskByID(id)
	both := toolgroups.SetOf("alpha", "beta")
	var manager identity.AgentID
	if w.manager, manager, err = w.createAgent(task.Top, org.RoleSpec{Name: "manager", Use: &both, Grant: &both}); err == nil {
		w.role, w.agent, err = w.createAgent(manager, org.RoleSpec{Name: "worker", Use: &both})
	}
	return w, err
}

// createAgent creates a role and spawns an agent of it, both as the agent by.
func (f *workerFixture) createAgent(by identity.AgentID, spec org.RoleSpec) (identity.RoleID, identity.AgentID, error) {
	role, err := f.CreateRole(context.Background(), newCall(identity.ByAgent(by)), spec)
	if err != nil {
		return "", "", err
	}
	spawned, err := f.SpawnAgent(context.Background(), newCall(identity.ByAgent(by)), org.SpawnSpec{Role: role.ID, Brief: taskBrief}, nil)
	return role.ID, spawned.ID, err
}

// A call starts when its record commits, not when it is authorized. If a
// permission is revoked in between and the revocation acknowledged, the tool
// does not run; tools that remain allowed do.
func TestRevocation_BetweenDecisionAndStart(t *testing.T) {
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			w, err := newWorkerFixture(newMemoryStore(), newScriptedModel())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for _, name := range []string{"t0", "t3"} {
				rec := &stubRecorder{before: w.revokeOnce(t, r)}
				out, err := w.Gate().Call(t.Context(), identity.ByAgent(w.agent), []gate.CallRequest{newRequest(name, `{}`)}, rec)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Contains(r.remaining, name)
				if ran := w.groups.Runs.Of(name) == 1; out[0].Allowed() != want || ran != want {
					t.Errorf("call of %s: allowed %v, ran %v; want %v", name, out[0].Allowed(), ran, want)
				}
			}
		})
	}
}

// revokeOnce returns a function that applies a revocation unless it was applied
// before.
func (f *workerFixture) revokeOnce(t *testing.T, r revocation) func() {
	return func() {
		if !slices.Contains(definitionNames(f.Gate().Subject(identity.ByAgent(f.agent)).VisibleTools()), "t0") {
			return
		}
		if err := r.apply(f); err != nil {
			t.Error(err)
		}
	}
}

// The same in an agent's own turn with the Recorder of the runtime: the
// revocation is acknowledged before the commit of the intent is queued.
func TestRevocation_DuringAgentTurn(t *testing.T) {
	for _, r := range slices.Concat(revocations, terminations) {
		t.Run(r.name, func(t *testing.T) {
			store, b := &hookStore{memoryStore: newMemoryStore()}, newScriptedModel()
			w, err := newWorkerFixture(store, b)
			if err != nil {
				t.Fatal(err)
			}
			store.beforeFirstCall(func() {
				if err := r.apply(w); err != nil {
					t.Error(err)
				}
			})
			replies := b.queueCalls(w.agent, model.Call{Name: "t0", Args: []byte(`{}`)}, model.Call{Name: "t3", Args: []byte(`{}`)})
			if _, err := w.SendMessage(t.Context(), newCall(operator), string(w.agent), []byte(`"go"`), 0); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(terminations, func(e revocation) bool { return e.name == r.name }) { // a terminated agent gets no results
				_, err = await(replies)
			}
			if _, slow := await(store.done); err != nil || slow != nil {
				t.Fatal(err, slow)
			}
			w.Close()
			for _, name := range []string{"t0", "t3"} {
				if ran, want := w.groups.Runs.Of(name), slices.Contains(r.remaining, name); (ran == 1) != want {
					t.Errorf("%s ran %d times, want it to run %v", name, ran, want)
				}
			}
		})
	}
}

// hookStore is a store that calls hook before it commits the first start of a
// call.
type hookStore struct {
	*memoryStore
	mu   sync.Mutex
	hook func()        // guarded by mu
	done chan struct{} // closed after hook has run
}

func (s *hookStore) beforeFirstCall(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook, s.done = do, make(chan struct{})
}

// Commit implements journal.Log.
func (s *hookStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if slices.ContainsFunc(b.Events, startsCall) {
		s.mu.Lock()
		do := s.hook
		s.hook = nil
		s.mu.Unlock()
		if do != nil {
			do()
			close(s.done)
		}
	}
	return s.memoryStore.Commit(ctx, b)
}

// startsCall reports whether an event records the start of an allowed call.
func startsCall(e journal.Event) bool {
	c, ok := e.Body.(journal.ToolCall)
	return ok && c.Decision == journal.Allowed
}

// A call whose permission changes before every start is denied in the end. It
// never runs with an outdated decision.
func TestGate_DeniesWhenDecisionKeepsChanging(t *testing.T) {
	w, err := newWorkerFixture(newMemoryStore(), newScriptedModel())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n := 0
	rec := &changingRecorder{change: func() {
		n++
		if _, _, err := w.UpdateRole(operator, w.role, org.RoleSpec{Prompt: fmt.Sprint("prompt ", n)}, false); err != nil {
			t.Error(err)
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := w.Gate().Call(ctx, identity.ByAgent(w.agent), []gate.CallRequest{newRequest("t0", `{}`)}, rec)
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Allowed() || w.groups.Runs.Of("t0") != 0 {
		t.Errorf("after %d changes: %+v, ran %d times", n, out[0].Err, w.groups.Runs.Of("t0"))
	}
}

// changingRecorder is a stubRecorder that calls change at the beginning of
// every Started.
type changingRecorder struct {
	stubRecorder
	change func()
}

func (r *changingRecorder) CallStarted(ctx context.Context, calls []*gate.Admission) error {
	r.change()
	return r.stubRecorder.CallStarted(ctx, calls)
}
