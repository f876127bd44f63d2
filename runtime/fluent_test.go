package runtime_test

import (
	"context"
	"iter"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// fluent makes a language model of what thinks.
func fluent(window int, m model.Model) model.Model { return ofWindow{m, window} }

type ofWindow struct {
	model.Model
	window int
}

// Window implements model.LanguageModel.
func (l ofWindow) Window() int { return l.window }

// speaker is a language model that says its answers piece by piece.
type speaker func(ctx context.Context, r model.Request, say func(model.Delta)) (model.Answer, error)

// Window implements model.LanguageModel.
func (s speaker) Window() int { return 100_000 }

// Generate implements model.Model.
func (s speaker) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		answer, err := s(ctx, r, func(d model.Delta) { yield(d, nil) })
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		answer.MessagesRead = len(messages(r))
		yield(model.Delta{Answer: &answer}, nil)
	}
}

// requests remembers what a model was asked, in order.
type requests struct {
	mu   sync.Mutex
	list []model.Request
}

// of makes a model that remembers what it is asked.
func (q *requests) of(think func(ctx context.Context, r model.Request, n int) (model.Answer, error)) mind {
	return func(ctx context.Context, r model.Request) (model.Answer, error) {
		q.mu.Lock()
		n := len(q.list)
		q.list = append(q.list, r)
		q.mu.Unlock()
		return think(ctx, r, n)
	}
}

func (q *requests) all() []model.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.list
}

// worker makes the role worker and gives a task bound to it.
func (h *house) worker(t *testing.T, spec org.RoleSpec) org.TaskSpec {
	t.Helper()
	spec.Name = "worker"
	if _, err := h.CreateRole(t.Context(), called(operator), spec); err != nil {
		t.Fatal(err)
	}
	return org.TaskSpec{Role: "worker", Text: "find the needle"}
}

// watched reads what Watch gives of a task, as text, to its end; see is told
// of each event while the watcher holds it.
func (h *house) watched(t *testing.T, ctx context.Context, id identity.TaskID, see func(journal.Event)) []string {
	t.Helper()
	var list []string
	for e, err := range h.Watch(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text := string(e.Body.Type())
		if d, ok := e.Body.(journal.ModelDelta); ok {
			text = "says " + d.Text + d.Tool + d.Args
			if e.Seq != 0 {
				t.Errorf("a piece of an answer has the number %d", e.Seq)
			}
		}
		list = append(list, text)
		see(e)
	}
	return list
}
