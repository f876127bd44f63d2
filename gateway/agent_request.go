package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxHistory limits the steps in the history of a request to an agent.
const maxHistory = 200

// nullableAgentFields are the fields of a wire.AgentRequest that mean the same when they are
// null as when they are absent.
var nullableAgentFields = []string{"group", "state", "history", "role"}

// askAgent starts a task and answers with the answer of its first agent. The agent has the role
// of the sender, or a role that the request names. With Accept: text/event-stream it also sends
// the events of the agent's calls.
//
// Errors: the errors of runtime.Runtime.StartTask; RateLimited for too many requests of a caller at
// once; Conflict if this process starts no tasks for others. A task that fails is an answer.
func (a *api) askAgent(w http.ResponseWriter, r *http.Request) error {
	return a.askDecoded(w, r, decodeAgentRequest)
}

// askDecoded is askAgent for a request whose body decode reads.
func (a *api) askDecoded(w http.ResponseWriter, r *http.Request, decode agentDecoder) error {
	spec, release, err := a.readAgentRequest(r, decode)
	defer release()
	if err != nil {
		return err
	}
	id, end, err := a.startAgentTask(r, spec)
	if err != nil {
		return err
	}
	defer end()
	release()
	if acceptsSSE(r) {
		return a.streamAnswer(w, r, id)
	}
	task, err := a.awaitAgentTask(r, id)
	if err != nil {
		return err
	}
	answer, err := a.agentAnswer(r.Context(), task)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !answer.Status.Ended() {
		status = http.StatusAccepted
	}
	return wire.WriteJSON(w, status, answer)
}

// startAgentTask starts the task of a request to an agent. The caller calls end when it has
// answered. Without an Idempotency-Key the task is cancelled when the client disconnects before,
// because no later request can ask for its answer.
func (a *api) startAgentTask(r *http.Request, spec org.TaskSpec) (id identity.TaskID, end func(), err error) {
	if spec.Key = r.Header.Get("Idempotency-Key"); len(spec.Key) > maxKeyBytes {
		return "", nil, errcode.New(errcode.InvalidArguments, "the header Idempotency-Key has more than %d bytes", maxKeyBytes)
	}
	if a.start == nil {
		return "", nil, errNoTasks("ask an agent")
	}
	release, err := a.limitWaiting(r)
	if err != nil {
		return "", nil, err
	}
	if id, err = a.start(r.Context(), spec); err != nil {
		release()
		return "", nil, err
	}
	if spec.Key != "" {
		return id, release, nil
	}
	stop := context.AfterFunc(r.Context(), func() { a.cancelAbandoned(r.Context(), id) })
	return id, func() { stop(); release() }, nil
}

// readLargeBody reads the body of a request that may hold files. The caller calls release in any
// case, when it is done with the body.
func (a *api) readLargeBody(r *http.Request) (data []byte, release func(), err error) {
	data, release, err = a.limiter.ReadBody(http.MaxBytesReader(nil, r.Body, maxTaskBytes), auth.SenderOf(r), r.ContentLength, maxTaskBytes)
	if errcode.CodeOf(err) != errcode.RateLimited {
		err = bodyReadError(r, err, maxTaskBytes)
	}
	return data, release, err
}

// agentDecoder decodes the body of a request to an agent.
type agentDecoder func(r *http.Request, body []byte) (wire.AgentRequest, error)

// decodeAgentRequest is an agentDecoder.
func decodeAgentRequest(_ *http.Request, body []byte) (q wire.AgentRequest, err error) {
	_, err = decodeBytes(body, &q, nullableAgentFields)
	return q, err
}

// readAgentRequest reads a request to an agent. The caller calls release in any case, when it
// is done with the request.
func (a *api) readAgentRequest(r *http.Request, decode agentDecoder) (spec org.TaskSpec, release func(), err error) {
	data, release, err := a.readLargeBody(r)
	if err != nil {
		return spec, release, err
	}
	q, err := decode(r, data)
	if err != nil {
		return spec, release, err
	}
	spec, err = askSpec(q, auth.SenderOf(r))
	return spec, release, err
}

// askSpec converts a request to an agent to the task that asks it. The history is data that the agent reads: it grants
// nothing, and no call in it has happened.
func askSpec(q wire.AgentRequest, sender identity.Principal) (org.TaskSpec, error) {
	spec := org.TaskSpec{Text: q.Question, Caller: sender, Role: q.Role, State: q.State, Ask: true}
	switch {
	case q.Question == "":
		return spec, errcode.New(errcode.InvalidArguments, "field \"question\" is missing: say what to do").With("field", "question")
	case len(q.History) > maxHistory:
		return spec, errcode.New(errcode.InvalidArguments, "field \"history\" has %d steps; at most %d are allowed", len(q.History), maxHistory).With("field", "history")
	case q.Role == "" && sender.Kind == identity.Caller:
		spec.Role = string(sender.Role)
	case q.Role == "":
		return spec, errcode.New(errcode.InvalidArguments, "field \"role\" is missing: name the role of the agent; only callers in a role may leave it out").With("field", "role")
	}
	var err error
	if spec.Groups, err = groupsOf(q.Group); err != nil {
		return spec, err
	}
	if len(q.History) > 0 {
		spec.Input, _ = json.Marshal(map[string]any{"history": q.History}) // texts and maps of texts always marshal
	}
	return spec, nil
}

// groupsOf returns the groups that a request names, nil if it names none.
func groupsOf(names []string) (*toolgroups.GroupSet, error) {
	if names == nil {
		return nil, nil
	}
	if slices.Contains(names, "") {
		return nil, errcode.New(errcode.InvalidArguments, "field \"group\" has an empty id; [] stands for no groups").With("field", "group")
	}
	set := toolgroups.SetOfNames(names...)
	return &set, nil
}

// cancelAbandoned cancels the task of a request whose client has disconnected. A task goes on
// when the server shuts down: it is resumed.
func (a *api) cancelAbandoned(ctx context.Context, id identity.TaskID) {
	if serving, ok := ctx.Value(shutdownKey{}).(context.Context); ok && serving.Err() != nil {
		return
	}
	if err := a.rt.CancelTask(context.WithoutCancel(ctx), id, "the client disconnected"); err != nil {
		a.log.Error("task of a disconnected client not cancelled", "task", id, "error", err)
	}
}

// awaitAgentTask returns the record of a task when it has ended or is paused, or after maxWait.
func (a *api) awaitAgentTask(r *http.Request, id identity.TaskID) (org.Task, error) {
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, maxWait)
	defer cancel()
	task, err := a.rt.WaitTask(ctx, id)
	if err != nil && ctx.Err() != nil {
		task, err = a.rt.TaskRecord(r.Context(), id)
	}
	if err == nil {
		err = a.authenticate.Revalidate(r)
	}
	return task, err
}

// agentAnswer converts a task for the answer to a request to an agent.
func (a *api) agentAnswer(ctx context.Context, task org.Task) (out wire.AgentAnswer, err error) {
	out = wire.AgentAnswer{
		Task: task.ID, Agent: task.Top, Status: a.rt.TaskStatus(task), Answer: task.Result, Incomplete: task.Incomplete,
		Error: task.Error, Reason: task.Pause, Requested: requestedGroups(task), Granted: task.Groups.Set.Names(),
	}
	if out.Usage, err = a.rt.TaskUsage(ctx, task.ID); err != nil {
		return out, err
	}
	out.State, err = a.stateOfTask(ctx, task)
	return out, err
}

// requestedGroups returns the groups that the request for a task named, nil if it named none.
func requestedGroups(task org.Task) []string {
	if task.Requested == nil {
		return nil
	}
	return task.Requested.Names()
}

// stateOfTask returns the workflow state of the first agent of a task, which may have ended.
func (a *api) stateOfTask(ctx context.Context, task org.Task) (string, error) {
	if caller, external := task.ExternalCaller(); external {
		_, state := a.org().ResolveView(caller)
		return toolgroups.StateName(state), nil
	}
	agent, err := a.rt.AgentRecord(ctx, task.Top)
	return toolgroups.StateName(agent.State), err
}

// answerEvents are the types of the events that a stream of an answer has before its end.
var answerEvents = map[journal.EventType]bool{
	journal.ToolCall{}.EventType(): true, journal.ToolResult{}.EventType(): true, journal.ToolError{}.EventType(): true,
	journal.StateTransition{}.EventType(): true,
}

// streamAnswer sends the events of the calls of the first agent of a task, and then the event
// answer or error. Each event has its type as its name.
func (a *api) streamAnswer(w http.ResponseWriter, r *http.Request, id identity.TaskID) error {
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	task, ok := a.org().TaskByID(id)
	if !ok {
		return errcode.New(errcode.TaskNotFound, "task %s not found", id)
	}
	s := newEventStream(w, r)
	s.open()
	for e, err := range a.eventsFor(r, a.rt.JournalStore().FollowTask(ctx, id, task.FirstSeq, journal.WaitForMore)) {
		if err == nil {
			err = a.authenticate.Revalidate(r)
		}
		if err != nil {
			return a.abortStream(s, err)
		}
		if e.Agent == task.Top && answerEvents[e.Body.EventType()] {
			if s.sendNamed(string(e.Body.EventType()), e.Seq, e) != nil {
				return nil
			}
		}
		if a.endsWait(e) {
			break
		}
	}
	a.logUnsent(r, id, a.sendAnswer(s, r, id))
	return nil
}

// logUnsent logs why the end of a stream was not sent, unless the client has gone. err may be nil.
func (a *api) logUnsent(r *http.Request, id identity.TaskID, err error) {
	if err != nil && r.Context().Err() == nil {
		a.log.Error("answer not sent", "task", id, "error", err)
	}
}

// endsWait reports whether a request that waits for a task is answered at an event: the task has
// ended, or is paused and was not retried since.
func (a *api) endsWait(e journal.Event) bool {
	if _, paused := e.Body.(journal.TaskPaused); paused {
		task, ok := a.rt.Org().TaskByID(e.Task)
		return !ok || task.Status == org.Paused
	}
	return a.rt.EndsTask(e)
}

// sendAnswer sends the last event of a stream. The error says why there is none.
func (a *api) sendAnswer(s *eventStream, r *http.Request, id identity.TaskID) error {
	task, err := a.awaitAgentTask(r, id)
	if err != nil {
		return err
	}
	answer, err := a.agentAnswer(r.Context(), task)
	if err != nil {
		return err
	}
	name := "answer"
	if answer.Error != nil {
		name = "error"
	}
	_ = s.sendNamed(name, 0, answer)
	return nil
}

// sendNamed writes a server-sent event with a name. 0 is no number.
func (s *eventStream) sendNamed(name string, seq uint64, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	id := ""
	if seq > 0 {
		id = fmt.Sprintf("id: %d\n", seq)
	}
	if _, err := fmt.Fprintf(s.w, "%sevent: %s\ndata: %s\n\n", id, name, text); err != nil {
		return err
	}
	return s.flush()
}
