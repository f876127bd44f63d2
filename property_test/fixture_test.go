package property_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("test")

// newStoreDir returns a directory for stores that are opened and closed often.
// It is in memory where possible, since no property here is about the disk.
func newStoreDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "rolecall")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// scriptedModel is the model of all agents. The agent at the top of a task
// never answers, so that the task stays active, until failRequest is called for
// it. Other agents wait, or make the calls that were queued for them.
type scriptedModel struct {
	mu         sync.Mutex
	queued     map[identity.AgentID][]model.Call // guarded by mu
	replies    map[identity.AgentID]chan []model.CallResult
	firstAsked map[identity.AgentID]chan struct{} // closed at the first request for an agent
	requests   map[identity.AgentID]int           // number of requests for an agent
	blocked    map[identity.AgentID]chan error    // requests that wait for failRequest
}

func newScriptedModel() *scriptedModel {
	return &scriptedModel{
		queued: map[identity.AgentID][]model.Call{}, replies: map[identity.AgentID]chan []model.CallResult{},
		firstAsked: map[identity.AgentID]chan struct{}{}, requests: map[identity.AgentID]int{}, blocked: map[identity.AgentID]chan error{},
	}
}

// firstRequest returns a channel that is closed when the model is asked for an
// agent.
func (m *scriptedModel) firstRequest(id identity.AgentID) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.firstOf(id)
}

// firstOf is firstRequest; mu must be held.
func (m *scriptedModel) firstOf(id identity.AgentID) chan struct{} {
	if m.firstAsked[id] == nil {
		m.firstAsked[id] = make(chan struct{})
	}
	return m.firstAsked[id]
}

// requestCount returns how often the model was asked for an agent.
func (m *scriptedModel) requestCount(id identity.AgentID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[id]
}

// queueCalls queues calls that an agent makes when it gets its next message.
// The returned channel receives their results.
func (m *scriptedModel) queueCalls(id identity.AgentID, calls ...model.Call) <-chan []model.CallResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued[id], m.replies[id] = calls, make(chan []model.CallResult, 1)
	return m.replies[id]
}

// Generate implements model.Model.
func (m *scriptedModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		if calls := m.next(r); calls != nil {
			yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishToolCalls, Calls: calls, MessagesRead: countMessages(r)}}, nil)
			return
		}
		if r.Self.Parent == "" {
			yield(model.AnswerDelta{}, m.block(ctx, r.Self.ID))
			return
		}
		yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishWait, MessagesRead: countMessages(r)}}, nil)
	}
}

// block waits until failRequest is called for an agent, or ctx ends, and returns the
// error of the request.
func (m *scriptedModel) block(ctx context.Context, id identity.AgentID) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-m.blockedOf(id):
		return err
	}
}

// blockedOf returns the channel from which the blocked request of an agent receives its
// error.
func (m *scriptedModel) blockedOf(id identity.AgentID) chan error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.blocked[id] == nil {
		m.blocked[id] = make(chan error)
	}
	return m.blocked[id]
}

// failRequest lets the blocked request of an agent fail. It waits until there is one.
func (m *scriptedModel) failRequest(id identity.AgentID, err error) error {
	select {
	case m.blockedOf(id) <- err:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("the model is not asked for agent %s", id)
	}
}

// next returns the queued calls of an agent, and delivers the results of the
// ones before.
func (m *scriptedModel) next(r model.Request) []model.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.requests[r.Self.ID]++; m.requests[r.Self.ID] == 1 {
		close(m.firstOf(r.Self.ID))
	}
	calls := m.queued[r.Self.ID]
	delete(m.queued, r.Self.ID)
	if replies := m.replies[r.Self.ID]; calls == nil && replies != nil {
		replies <- lastResults(r)
		delete(m.replies, r.Self.ID)
	}
	return calls
}

// countMessages returns the number of messages in a request.
func countMessages(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// lastResults returns the results since the last answer in a request.
func lastResults(r model.Request) []model.CallResult {
	var list []model.CallResult
	for _, item := range r.Items {
		switch {
		case item.Answer != nil:
			list = nil
		case item.Result != nil:
			list = append(list, *item.Result)
		}
	}
	return list
}

// fixture is a runtime on a real store in a directory.
type fixture struct {
	*runtime.Runtime
	store *persist.Store
	model *scriptedModel
	dir   string
}

// openFixture opens the store in dir and starts a runtime on it.
func openFixture(dir string, groups *toolgroups.Manager) (*fixture, error) {
	store, err := persist.Open(dir)
	if err != nil {
		return nil, err
	}
	h := &fixture{store: store, model: newScriptedModel(), dir: dir}
	h.Runtime, err = newRuntime(store, groups, h.model)
	return h, err
}

// newRuntime returns a runtime that uses m for every agent.
func newRuntime(store journal.Store, groups *toolgroups.Manager, m model.Model) (*runtime.Runtime, error) {
	limits := runtime.Limits{TaskLimits: org.TaskLimits{Roles: 100_000, Agents: 100_000, Depth: 10_000}}
	return runtime.New(runtime.Config{Store: store, Groups: groups, Limits: limits, Model: func(string) (model.Model, error) { return m, nil }})
}

// close closes runtime and store. If intact is set, it also checks that the
// store is undamaged.
func (f *fixture) close(intact bool) error {
	err := f.Close()
	if intact {
		err = errors.Join(err, f.store.CheckIntegrity(context.Background()))
	}
	return errors.Join(err, f.store.Close())
}

// await receives from c, with a timeout of 30 s.
func await[T any](c <-chan T) (v T, err error) {
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		err = errors.New("timed out after 30 s")
	}
	return v, err
}

// newRequest returns a request for a call with a new id.
func newRequest(name, args string) gate.CallRequest {
	return gate.CallRequest{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: []byte(args)}}
}

// stubRecorder is a Recorder that records the calls it is given. Like every
// Recorder it rejects superseded calls. before, if set, runs once at the
// beginning of Started.
type stubRecorder struct {
	before            func()
	started, finished []*gate.Admission
}

// CallPending implements gate.CallRecorder.
func (*stubRecorder) CallPending(context.Context, []gate.CallRequest) error { return nil }

func (r *stubRecorder) CallStarted(_ context.Context, calls []*gate.Admission) error {
	if before := r.before; before != nil {
		r.before = nil
		before()
	}
	for _, c := range calls {
		if c.Superseded() {
			return gate.ErrSuperseded
		}
	}
	r.started = append(r.started, calls...)
	return nil
}

func (r *stubRecorder) CallFinished(_ context.Context, calls []*gate.Admission) error {
	r.finished = append(r.finished, calls...)
	return nil
}

// callTool makes one call at the gate of a runtime and returns its outcome.
func callTool(rt *runtime.Runtime, who identity.Principal, name, args string) (*gate.Admission, error) {
	return callGate(rt.Gate(), who, newRequest(name, args))
}

// callGate makes one call at a gate and returns its outcome.
func callGate(g *gate.Gate, who identity.Principal, r gate.CallRequest) (*gate.Admission, error) {
	w := &stubRecorder{}
	out, err := g.Call(context.Background(), who, []gate.CallRequest{r}, w)
	switch {
	case err != nil:
		return nil, err
	case len(out) != 1 || len(w.started) != 1 || len(w.finished) != 1:
		return nil, fmt.Errorf("call of %s: %d outcomes, %d start and %d end records; want one of each", r.Name, len(out), len(w.started), len(w.finished))
	}
	return out[0], nil
}
