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

// withWindow makes a model a language model with a context window.
func withWindow(window int, m model.Model) model.Model { return windowModel{m, window} }

// windowModel is a model with a context window.
type windowModel struct {
	model.Model
	window int
}

// Window implements model.LanguageModel.
func (l windowModel) Window() int { return l.window }

// streamingModel is a language model that sends deltas before its answer.
type streamingModel func(ctx context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error)

// Window implements model.LanguageModel.
func (s streamingModel) Window() int { return 100_000 }

// Generate implements model.Model.
func (s streamingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		answer, err := s(ctx, r, func(d model.AnswerDelta) { yield(d, nil) })
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		answer.MessagesRead = len(messages(r))
		yield(model.AnswerDelta{Answer: &answer}, nil)
	}
}

// modelRequests records the requests to a model, in order.
type modelRequests struct {
	mu   sync.Mutex
	list []model.Request
}

// model returns a modelFunc that records its requests; answer gets the number of
// the request.
func (q *modelRequests) model(answer func(ctx context.Context, r model.Request, n int) (model.Answer, error)) modelFunc {
	return func(ctx context.Context, r model.Request) (model.Answer, error) {
		q.mu.Lock()
		n := len(q.list)
		q.list = append(q.list, r)
		q.mu.Unlock()
		return answer(ctx, r, n)
	}
}

func (q *modelRequests) all() []model.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.list
}

// roleTask creates the role worker and returns a task for an agent of it.
func (fx *fixture) roleTask(t *testing.T, spec org.RoleSpec) org.TaskSpec {
	t.Helper()
	spec.Name = "worker"
	if _, err := fx.CreateRole(t.Context(), newCall(operator), spec); err != nil {
		t.Fatal(err)
	}
	return org.TaskSpec{Role: "worker", Text: "find the needle"}
}

// watchAll reads the events of a task up to its end and returns them as text.
// see is called with each event.
func (fx *fixture) watchAll(t *testing.T, ctx context.Context, id identity.TaskID, see func(journal.Event)) []string {
	t.Helper()
	var list []string
	for e, err := range fx.WatchTask(ctx, id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text := string(e.Body.EventType())
		if d, ok := e.Body.(journal.ModelDelta); ok {
			text = "says " + d.Text + d.Tool + d.Args
			if e.Seq != 0 {
				t.Errorf("a delta has the sequence number %d", e.Seq)
			}
		}
		list = append(list, text)
		see(e)
	}
	return list
}
