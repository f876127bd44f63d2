package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// Limits of questions. maxTaskQuestions is for a task. questionTimeout, the default, is for one
// question.
const (
	maxTaskQuestions = 100
	questionTimeout  = 5 * time.Minute
)

// Question is a question of a tool that waits for the person who started the task.
type Question struct {
	tool.Question
	ID    string
	Task  identity.TaskID
	Agent identity.AgentID // that called the tool
	Call  identity.CallID
	Tool  string
	Asked time.Time
	Until time.Time // when it counts as declined
}

// openQuestion is a Question, and where its answer is sent.
type openQuestion struct {
	Question
	answer chan<- personAnswer // has room for one
}

// personAnswer is an answer, and the name of the person who answered.
type personAnswer struct {
	tool.Answer
	by string
}

// openQuestions are the questions that wait for an answer. They are in memory: after a restart, a call
// that was interrupted is handled as any other. The zero value is empty. It is safe for concurrent
// use.
type openQuestions struct {
	mu   sync.Mutex
	byID map[string]openQuestion
}

func (o *openQuestions) add(q openQuestion) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byID == nil {
		o.byID = map[string]openQuestion{}
	}
	o.byID[q.ID] = q
}

// remove closes a question. It reports whether the question was open, that is, not answered.
func (o *openQuestions) remove(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, open := o.byID[id]
	delete(o.byID, id)
	return open
}

// ListQuestions returns the questions of a task that wait for an answer, oldest first.
func (rt *Runtime) ListQuestions(task identity.TaskID) []Question {
	rt.questions.mu.Lock()
	defer rt.questions.mu.Unlock()
	list := []Question{}
	for _, q := range rt.questions.byID {
		if q.Task == task {
			list = append(list, q.Question)
		}
	}
	slices.SortFunc(list, func(a, b Question) int { return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID)) })
	return list
}

// AnswerQuestion answers a question of a task, once. by is the operator, or the caller that started
// the task. The question stays open if the answer is not valid.
//
// Errors:
//
//   - TaskNotFound, also for a task of another caller
//   - QuestionNotFound for a question of another task, and for a question that was answered or
//     whose time is over
//   - InvalidArguments for an answer that does not match the schema
func (rt *Runtime) AnswerQuestion(by identity.Principal, task identity.TaskID, id string, a tool.Answer) error {
	t, ok := rt.org.TaskByID(task)
	if !ok || by.Kind != identity.Operator && !t.StartedBy(by) {
		return errcode.New(errcode.TaskNotFound, "answer a question: there is no task %.200q", task)
	}
	rt.questions.mu.Lock()
	defer rt.questions.mu.Unlock()
	q, ok := rt.questions.byID[id]
	if !ok || q.Task != task {
		return errcode.New(errcode.QuestionNotFound, "task %s waits for no answer to a question %.80q; it may have been answered, or its time may be over", task, id)
	}
	checked, err := q.CheckAnswer(a)
	if err != nil {
		return err
	}
	delete(rt.questions.byID, id)
	q.answer <- personAnswer{checked, by.String()}
	return nil
}

// starterInput asks the person who started the task of an agent.
type starterInput struct {
	rt    *Runtime
	task  identity.TaskID
	agent identity.AgentID
}

// SupportsInput implements tool.InputSource.
func (starterInput) SupportsInput(kind tool.InputKind) bool { return kind == tool.PersonInput }

// LastMemo implements tool.InputSource: the function of an agent's call runs once and waits for the
// answer.
func (starterInput) LastMemo() json.RawMessage { return nil }

// RequestInput implements tool.InputSource. It asks one question after the other.
func (in starterInput) RequestInput(ctx context.Context, round tool.InputRound) ([]tool.InputResponse, error) {
	if slices.ContainsFunc(round.Requests, func(r tool.InputRequest) bool { return r.Question == nil }) {
		return nil, errcode.New(errcode.InputUnavailable, "%s asks for a model or for roots, which only a client of MCP has", round.Call.Name)
	}
	var list []tool.InputResponse
	for _, r := range round.Requests {
		if err := in.rt.tracker.countQuestion(in.task); err != nil {
			return nil, err
		}
		got, err := in.ask(ctx, round, r)
		if err != nil {
			return nil, err
		}
		list = append(list, got)
	}
	return list, nil
}

// ask asks one question and waits for the answer. A question that is not answered in time is
// declined.
func (in starterInput) ask(ctx context.Context, round tool.InputRound, r tool.InputRequest) (tool.InputResponse, error) {
	timeout := in.rt.config.QuestionTimeout
	answers := make(chan personAnswer, 1)
	q := openQuestion{Question{
		Question: *r.Question, ID: identity.NewID(), Task: in.task, Agent: in.agent, Call: round.Call.ID, Tool: round.Call.Name,
		Asked: in.rt.now(), Until: in.rt.now().Add(timeout),
	}, answers}
	in.rt.questions.add(q) // before it is seen, so that it can be answered at once
	defer in.rt.questions.remove(q.ID)
	if err := round.Log.InputAsked(r, q.ID, q.Until); err != nil {
		return tool.InputResponse{}, err
	}
	got, reason := personAnswer{Answer: tool.Answer{Action: tool.Decline}}, "not answered in time"
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case got = <-answers:
		reason = ""
	case <-timer.C:
	case <-ctx.Done():
		got, reason = personAnswer{Answer: tool.Answer{Action: tool.Cancel}}, "the call ended"
	}
	if reason != "" && !in.rt.questions.remove(q.ID) {
		got, reason = <-answers, "" // a person answered at the same time, and was told that it counts
	}
	response := tool.InputResponse{Answer: &got.Answer}
	if err := round.Log.InputAnswered(r, response, got.by, reason); err != nil {
		return response, err
	}
	return response, ctx.Err()
}

// countQuestion counts a question of a task. It returns InputUnavailable if the task has ended or
// has asked too many.
func (t *tracker) countQuestion(id identity.TaskID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	switch {
	case run == nil:
		return errcode.New(errcode.InputUnavailable, "the task has ended; its questions are not answered any more")
	case run.questions >= maxTaskQuestions:
		return errcode.New(errcode.InputUnavailable, "the tools of this task have asked %d questions; no more are allowed", maxTaskQuestions)
	}
	run.questions++
	return nil
}
