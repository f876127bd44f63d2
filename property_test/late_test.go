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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// revocation takes something from the agent of a worker; left says which of
// the tools t0 (of alpha) and t3 (of beta) it may call still.
type revocation struct {
	name string
	do   func(w *worker) error
	left []string
}

var onlyBeta = toolgroups.Of("beta")

var revocations = []revocation{
	{"a group of the role", func(w *worker) error {
		_, _, err := w.UpdateRole(operator, w.role, org.RoleSpec{Use: &onlyBeta}, false)
		return err
	}, []string{"t3"}},
	{"a group its manager may grant", func(w *worker) error {
		_, _, err := w.UpdateRole(operator, w.manager, org.RoleSpec{Grant: &onlyBeta}, false)
		return err
	}, []string{"t3"}},
	{"the role", func(w *worker) error {
		_, err := w.DeleteRole(operator, w.role, false)
		return err
	}, nil},
	{"the role of its manager", func(w *worker) error {
		_, err := w.DeleteRole(operator, w.manager, false)
		return err
	}, nil},
	{"a group altogether", func(w *worker) error { return w.Unregister("module:a", "alpha") }, []string{"t3"}},
}

// endings are revocations after which there is no agent.
var endings = []revocation{
	{"the agent", func(w *worker) error {
		return w.Terminate(context.Background(), call(operator), w.agent, "revoked")
	}, nil},
	{"the agent above it", func(w *worker) error {
		a, _ := w.Org().Agent(w.agent)
		return w.Terminate(context.Background(), call(operator), a.Parent, "revoked")
	}, nil},
	{"the task", func(w *worker) error {
		a, _ := w.Org().Agent(w.agent)
		return w.Cancel(context.Background(), a.Task, "revoked")
	}, nil},
}

// worker is an agent with the groups alpha and beta, whose role was made by
// the agent above it, a manager.
type worker struct {
	*runtime.Runtime
	desk          *desk
	role, manager identity.RoleID
	agent         identity.AgentID
}

func newWorker(store journal.Store, m model.Model) (*worker, error) {
	w := &worker{desk: newDesk()}
	for _, g := range slices.Concat(builtins, modules[:2]) {
		if _, err := w.desk.register(g); err != nil {
			return nil, err
		}
	}
	var err error
	if w.Runtime, err = newRuntime(store, w.desk.Manager, m); err != nil {
		return nil, err
	}
	id, err := w.Start(context.Background(), org.TaskSpec{Caller: operator, Text: "go"})
	if err != nil {
		return nil, err
	}
	task, _ := w.Org().Task(id)
	both := toolgroups.Of("alpha", "beta")
	var boss identity.AgentID
	if w.manager, boss, err = w.hire(task.Top, org.RoleSpec{Name: "manager", Use: &both, Grant: &both}); err == nil {
		w.role, w.agent, err = w.hire(boss, org.RoleSpec{Name: "worker", Use: &both})
	}
	return w, err
}

// hire has an agent make a role and spawn one of it.
func (w *worker) hire(by identity.AgentID, spec org.RoleSpec) (identity.RoleID, identity.AgentID, error) {
	role, err := w.CreateRole(context.Background(), call(identity.ByAgent(by)), spec)
	if err != nil {
		return "", "", err
	}
	spawned, err := w.Spawn(context.Background(), call(identity.ByAgent(by)), org.Spawn{Role: role.ID, Brief: brief}, nil)
	return role.ID, spawned.ID, err
}

// Late decision: a call starts when its record commits, not when it was
// decided. What was revoked in between, with the revocation acknowledged, does
// not run; what was not, does.
func TestRevokedBetweenDecisionAndStart(t *testing.T) {
	for _, r := range revocations {
		t.Run(r.name, func(t *testing.T) {
			w, err := newWorker(newMemory(), newBrain())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for _, name := range []string{"t0", "t3"} {
				rec := &witness{before: w.once(t, r)}
				out, err := w.Gate().Call(t.Context(), identity.ByAgent(w.agent), []gate.Request{request(name, `{}`)}, rec)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Contains(r.left, name)
				if ran := w.desk.runs.of(name) == 1; out[0].Allowed() != want || ran != want {
					t.Errorf("call of %s: allowed %v, ran %v; want %v", name, out[0].Allowed(), ran, want)
				}
			}
		})
	}
}

// once gives what does a revocation and, asked again, nothing: it is done.
func (w *worker) once(t *testing.T, r revocation) func() {
	return func() {
		if !slices.Contains(definitionNames(w.Gate().Subject(identity.ByAgent(w.agent)).Visible()), "t0") {
			return
		}
		if err := r.do(w); err != nil {
			t.Error(err)
		}
	}
}

// The same in an agent's own turn, where the Recorder is the runtime's: the
// revocation is acknowledged while the commit of the intent waits to be queued.
func TestRevokedInAnAgentsOwnTurn(t *testing.T) {
	for _, r := range slices.Concat(revocations, endings) {
		t.Run(r.name, func(t *testing.T) {
			store, b := &slow{memory: newMemory()}, newBrain()
			w, err := newWorker(store, b)
			if err != nil {
				t.Fatal(err)
			}
			store.before(func() {
				if err := r.do(w); err != nil {
					t.Error(err)
				}
			})
			heard := b.order(w.agent, model.Call{Name: "t0", Args: []byte(`{}`)}, model.Call{Name: "t3", Args: []byte(`{}`)})
			if _, err := w.Send(t.Context(), call(operator), string(w.agent), []byte(`"go"`), 0); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(endings, func(e revocation) bool { return e.name == r.name }) { // who is gone hears nothing
				_, err = await(heard)
			}
			if _, slow := await(store.done); err != nil || slow != nil {
				t.Fatal(err, slow)
			}
			w.Close()
			for _, name := range []string{"t0", "t3"} {
				if ran, want := w.desk.runs.of(name), slices.Contains(r.left, name); (ran == 1) != want {
					t.Errorf("%s ran %d times, want it to run %v", name, ran, want)
				}
			}
		})
	}
}

// slow is a store that does something before it takes the first intent.
type slow struct {
	*memory
	mu   sync.Mutex
	do   func()        // guarded by mu
	done chan struct{} // closed when it was done
}

func (s *slow) before(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.do, s.done = do, make(chan struct{})
}

// Commit implements journal.Log.
func (s *slow) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if slices.ContainsFunc(b.Events, allowsCall) {
		s.mu.Lock()
		do := s.do
		s.do = nil
		s.mu.Unlock()
		if do != nil {
			do()
			close(s.done)
		}
	}
	return s.memory.Commit(ctx, b)
}

func allowsCall(e journal.Event) bool {
	c, ok := e.Body.(journal.ToolCall)
	return ok && c.Decision == journal.Allowed
}

// A decision that never holds is a denial in the end: who keeps changing what
// a role may do stops its calls, and never lets one through undecided.
func TestADecisionThatKeepsChangingIsADenial(t *testing.T) {
	w, err := newWorker(newMemory(), newBrain())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n := 0
	rec := &restless{change: func() {
		n++
		if _, _, err := w.UpdateRole(operator, w.role, org.RoleSpec{Prompt: fmt.Sprint("prompt ", n)}, false); err != nil {
			t.Error(err)
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := w.Gate().Call(ctx, identity.ByAgent(w.agent), []gate.Request{request("t0", `{}`)}, rec)
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Allowed() || w.desk.runs.of("t0") != 0 {
		t.Errorf("after %d changes: %+v, ran %d times", n, out[0].Err, w.desk.runs.of("t0"))
	}
}

// restless is a witness before whom something changes every time.
type restless struct {
	witness
	change func()
}

func (r *restless) Started(ctx context.Context, calls []*gate.Admission) error {
	r.change()
	return r.witness.Started(ctx, calls)
}
