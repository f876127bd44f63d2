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
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("test")

// scratch is a directory for stores that are opened and closed often: in
// memory where there is such a place, since no property here is about the disk.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "rolecall")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// brain thinks for all agents: who is at the top of a task never answers, so
// that the task goes on; the others wait, or make the calls they are told to.
type brain struct {
	mu    sync.Mutex
	tell  map[identity.AgentID][]model.Call // guarded by mu
	heard map[identity.AgentID]chan []model.Result
	first map[identity.AgentID]chan struct{} // closed when an agent is asked
	times map[identity.AgentID]int           // that an agent was asked
}

func newBrain() *brain {
	return &brain{
		tell: map[identity.AgentID][]model.Call{}, heard: map[identity.AgentID]chan []model.Result{},
		first: map[identity.AgentID]chan struct{}{}, times: map[identity.AgentID]int{},
	}
}

// met gives what is closed when an agent is asked.
func (b *brain) met(id identity.AgentID) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.firstOf(id)
}

// firstOf wants mu held.
func (b *brain) firstOf(id identity.AgentID) chan struct{} {
	if b.first[id] == nil {
		b.first[id] = make(chan struct{})
	}
	return b.first[id]
}

// asked says how often an agent was asked.
func (b *brain) asked(id identity.AgentID) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.times[id]
}

// order has an agent make calls when it is next written to; the channel gets
// their results.
func (b *brain) order(id identity.AgentID, calls ...model.Call) <-chan []model.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell[id], b.heard[id] = calls, make(chan []model.Result, 1)
	return b.heard[id]
}

// Generate implements model.Model.
func (b *brain) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if calls := b.next(r); calls != nil {
			yield(model.Delta{Answer: &model.Answer{Finish: model.FinishToolCalls, Calls: calls, MessagesRead: read(r)}}, nil)
			return
		}
		if r.Self.Parent == "" {
			<-ctx.Done()
			yield(model.Delta{}, ctx.Err())
			return
		}
		yield(model.Delta{Answer: &model.Answer{Finish: model.FinishWait, MessagesRead: read(r)}}, nil)
	}
}

// next takes the calls an agent is told to make, and hands on their results.
func (b *brain) next(r model.Request) []model.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.times[r.Self.ID]++; b.times[r.Self.ID] == 1 {
		close(b.firstOf(r.Self.ID))
	}
	calls := b.tell[r.Self.ID]
	delete(b.tell, r.Self.ID)
	if heard := b.heard[r.Self.ID]; calls == nil && heard != nil {
		heard <- results(r)
		delete(b.heard, r.Self.ID)
	}
	return calls
}

func read(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// results lists what came after the last answer.
func results(r model.Request) []model.Result {
	var list []model.Result
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

// house is a runtime on a real store in a directory.
type house struct {
	*runtime.Runtime
	store *persist.Store
	brain *brain
	dir   string
}

func openHouse(dir string, groups *toolgroups.Manager) (*house, error) {
	store, err := persist.Open(dir)
	if err != nil {
		return nil, err
	}
	h := &house{store: store, brain: newBrain(), dir: dir}
	h.Runtime, err = newRuntime(store, groups, h.brain)
	return h, err
}

func newRuntime(store journal.Store, groups *toolgroups.Manager, m model.Model) (*runtime.Runtime, error) {
	return runtime.New(runtime.Config{Store: store, Groups: groups, Model: func(string) (model.Model, error) { return m, nil }})
}

// Close ends the house; with intact the store must be without damage.
func (h *house) close(intact bool) error {
	err := h.Close()
	if intact {
		err = errors.Join(err, h.store.Check(context.Background()))
	}
	return errors.Join(err, h.store.Close())
}

// await gives what comes from a channel, or an error when nothing does.
func await[T any](c <-chan T) (v T, err error) {
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		err = errors.New("nothing happened in 30 s")
	}
	return v, err
}

// request is a call with an id of its own.
func request(name, args string) gate.Request {
	return gate.Request{Call: tool.Call{ID: identity.CallID(identity.NewID()), Name: name, Args: []byte(args)}}
}

// witness is a Recorder that remembers what it was shown and, as it must,
// refuses what is superseded. before, if set, runs once, first in Started.
type witness struct {
	before            func()
	started, finished []*gate.Admission
}

func (w *witness) Started(_ context.Context, calls []*gate.Admission) error {
	if before := w.before; before != nil {
		w.before = nil
		before()
	}
	for _, c := range calls {
		if c.Superseded() {
			return gate.ErrSuperseded
		}
	}
	w.started = append(w.started, calls...)
	return nil
}

func (w *witness) Finished(_ context.Context, calls []*gate.Admission) error {
	w.finished = append(w.finished, calls...)
	return nil
}

// knock takes one call to the gate for an agent and says how it ended.
func knock(rt *runtime.Runtime, who identity.Principal, name, args string) (*gate.Admission, error) {
	return ask(rt.Gate(), who, request(name, args))
}

// ask takes one call to a gate and says how it ended.
func ask(g *gate.Gate, who identity.Principal, r gate.Request) (*gate.Admission, error) {
	w := &witness{}
	out, err := g.Call(context.Background(), who, []gate.Request{r}, w)
	switch {
	case err != nil:
		return nil, err
	case len(out) != 1 || len(w.started) != 1 || len(w.finished) != 1:
		return nil, fmt.Errorf("call of %s: %d outcomes, %d records of its start, %d of its end; want one of each", r.Name, len(out), len(w.started), len(w.finished))
	}
	return out[0], nil
}
