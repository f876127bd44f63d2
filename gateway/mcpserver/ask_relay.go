package mcpserver

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// questionRelay asks the client that waits in ask_organization what tools of its task ask, one question
// after the other. Each question can also be answered over the HTTP API; the first answer counts. What
// the client cannot be asked stays open there. All methods of a nil relay do nothing.
type questionRelay struct {
	server *Server
	sc     *clientScope
	task   identity.TaskID
	client *sessionInput
	asked  map[string]bool // ids of questions
	more   chan struct{}   // a question was asked

	mu      sync.Mutex         // guards what follows
	current string             // id of the question that is asked
	cancel  context.CancelFunc // ends it; nil if none is asked
}

// relayQuestions starts a questionRelay for a call that can ask its client. wait ends it and returns when it
// has ended.
func (s *Server) relayQuestions(ctx context.Context, sc *clientScope, task identity.TaskID, input tool.InputSource) (r *questionRelay, wait func()) {
	client, ok := input.(*sessionInput)
	if !ok {
		return nil, func() {}
	}
	r = &questionRelay{server: s, sc: sc, task: task, client: client, asked: map[string]bool{}, more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx) })
	return r, func() {
		cancel()
		running.Wait()
	}
}

// observe tells the relay of an event of the task.
func (r *questionRelay) observe(e journal.Event) {
	if r == nil {
		return
	}
	switch e.Body.(type) {
	case journal.QuestionAsked:
		select {
		case r.more <- struct{}{}:
		default:
		}
	case journal.QuestionAnswered: // perhaps an earlier one, of the same call
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.cancel != nil && !r.isOpen(r.current) {
			r.cancel()
		}
	}
}

// run asks what is open until ctx ends.
func (r *questionRelay) run(ctx context.Context) {
	for ctx.Err() == nil {
		list := r.server.rt.ListQuestions(r.task)
		next := slices.IndexFunc(list, func(q runtime.Question) bool { return !r.asked[q.ID] })
		if next < 0 {
			select {
			case <-r.more:
			case <-ctx.Done():
			}
			continue
		}
		r.asked[list[next].ID] = true
		if err := r.relay(ctx, list[next]); err != nil && ctx.Err() == nil {
			r.server.log.Debug("question of a task not relayed", "task", r.task, "question", list[next].ID, "error", err)
		}
	}
}

// relay asks the client one question and passes the answer on.
func (r *questionRelay) relay(ctx context.Context, q runtime.Question) error {
	request := tool.InputRequest{Name: q.ID, Question: &q.Question}
	switch {
	case !abilitiesOfSession(r.client.session).allows(request):
		return errors.New("the client has not declared that it can be asked")
	case !r.sc.stillAuthorized():
		return errors.New(tokenInvalid)
	}
	ctx, end := r.begin(ctx, q)
	defer end()
	got, err := r.client.send(ctx, tool.Call{ID: q.Call, Name: q.Tool}, request)
	switch {
	case err != nil:
		return err
	case got.Answer == nil:
		return errWrongResponse(q.ID)
	case !r.sc.stillAuthorized():
		return errors.New(tokenInvalid)
	}
	err = r.server.rt.AnswerQuestion(r.sc.caller, r.task, q.ID, *got.Answer)
	if errcode.CodeOf(err) == errcode.QuestionNotFound { // answered elsewhere, or too late
		return nil
	}
	return err
}

// isOpen reports whether a question of the task waits for an answer.
func (r *questionRelay) isOpen(id string) bool {
	return slices.ContainsFunc(r.server.rt.ListQuestions(r.task), func(q runtime.Question) bool { return q.ID == id })
}

// begin returns a context that ends with the question. end must be called.
func (r *questionRelay) begin(ctx context.Context, q runtime.Question) (_ context.Context, end func()) {
	ctx, cancel := context.WithTimeout(ctx, q.Until.Sub(q.Asked))
	r.mu.Lock()
	r.current, r.cancel = q.ID, cancel
	r.mu.Unlock()
	if !r.isOpen(q.ID) { // answered before
		cancel()
	}
	return ctx, func() {
		r.mu.Lock()
		r.cancel = nil
		r.mu.Unlock()
		cancel()
	}
}
