package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/openaiapi"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// openaiRoutes have the shapes of the OpenAI API: each role that the sender may ask is a model.
func (a *api) openaiRoutes() []route {
	return []route{
		{
			method: "GET", path: "/v1/models", id: "listModels", summary: "List the roles that the sender may ask, as models",
			scopes: toolUsers, protocol: openaiProtocol, answer: openaiapi.ModelList{}, serve: a.listEndpoint(a.listModels),
		}, {
			method: "GET", path: "/v1/models/{model}", id: "findModel", summary: "Show one role that the sender may ask, as a model",
			scopes: toolUsers, protocol: openaiProtocol, answer: openaiapi.ModelEntry{}, errors: []errcode.Code{errcode.RoleNotFound}, serve: a.listEndpoint(a.showModel),
		}, {
			method: "POST", path: "/v1/chat/completions", id: "completeChat", summary: "Ask an agent of the role that model names, and wait for its answer",
			params: []parameter{idempotencyKey}, scopes: toolUsers, protocol: openaiProtocol, body: map[string]any{}, answer: openaiapi.Completion{},
			media: answerStream, errors: askErrors, serve: a.completeChat,
		},
	}
}

// listModels lists the roles that the sender may ask.
func (a *api) listModels(r *http.Request) (any, error) {
	out := openaiapi.ModelList{Object: "list", Data: []openaiapi.ModelEntry{}}
	for _, role := range a.org().AskableRoles(auth.SenderOf(r)) {
		out.Data = append(out.Data, openaiapi.NewModel(role.Name, role.CreatedAt))
	}
	return out, nil
}

// showModel shows a role that the sender may ask.
func (a *api) showModel(r *http.Request) (any, error) {
	role, err := a.askableRole(auth.SenderOf(r), r.PathValue("model"))
	return openaiapi.NewModel(role.Name, role.CreatedAt), err
}

// askableRole returns the role with a name that the sender may ask.
//
// Errors: RoleNotFound.
func (a *api) askableRole(sender identity.Principal, name string) (org.Role, error) {
	for _, role := range a.org().AskableRoles(sender) {
		if role.Name == name {
			return role, nil
		}
	}
	return org.Role{}, errcode.New(errcode.RoleNotFound, "there is no role %.200q", name)
}

// completeChat asks an agent as askAgent does, with the last message of a conversation. The
// messages before are data that the agent reads. A task that fails is an error.
func (a *api) completeChat(w http.ResponseWriter, r *http.Request) error {
	data, release, err := a.readLargeBody(r)
	defer release()
	if err != nil {
		return err
	}
	q, err := openaiapi.DecodeRequest(data)
	if err != nil {
		return err
	}
	spec, err := a.chatSpec(q, auth.SenderOf(r))
	if err != nil {
		return err
	}
	id, end, err := a.startAgentTask(r, spec)
	if err != nil {
		return err
	}
	defer end()
	release()
	task, err := a.rt.TaskRecord(r.Context(), id)
	if err != nil {
		return err
	}
	out := openaiapi.CompletionBuilder{ID: "chatcmpl-" + string(id), Model: q.Model, Created: task.CreatedAt}
	if q.Stream {
		return a.streamCompletion(w, r, task, out, q.StreamOptions != nil && q.StreamOptions.IncludeUsage)
	}
	if task, err = a.awaitCompletion(r, id); err != nil {
		return err
	}
	usage, err := a.rt.TaskUsage(r.Context(), id)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, http.StatusOK, out.WholeAnswer(task.Result, task.Incomplete, openaiapi.NewUsage(usage)))
}

// chatSpec converts a request for a chat completion. Such a request cannot name groups. Without
// default groups of the role, the agent has all groups that the role and the sender may use.
func (a *api) chatSpec(q openaiapi.Request, sender identity.Principal) (org.TaskSpec, error) {
	asked, err := q.Question()
	if err != nil {
		return org.TaskSpec{}, err
	}
	role, err := a.askableRole(sender, q.Model)
	if err != nil {
		return org.TaskSpec{}, err
	}
	spec := org.TaskSpec{Text: asked.Text, Caller: sender, Role: string(role.ID), Files: asked.Files, Schema: asked.Schema, Ask: true}
	if role.Agent == nil || role.Agent.DefaultGroups == nil {
		spec.Groups = new(toolgroups.AllGroups())
	}
	if len(asked.History) > 0 {
		spec.Input, _ = json.Marshal(map[string]any{"history": asked.History}) // texts always marshal
	}
	return spec, nil
}

// awaitCompletion returns the record of a task that is done.
//
// Errors: the error of a task that has failed or is cancelled; Conflict for a task that is
// paused or still runs after maxWait.
func (a *api) awaitCompletion(r *http.Request, id identity.TaskID) (org.Task, error) {
	task, err := a.awaitAgentTask(r, id)
	switch {
	case err != nil:
		return task, err
	case task.Error != nil:
		return task, wire.WithStatus(errcode.New(task.Error.Code, "%s", task.Error.Message).With("task", id), http.StatusBadGateway)
	case !task.Status.Ended():
		return task, errcode.New(errcode.Conflict, "task %s is %s; read its answer later with GET /api/v1/tasks/%s", id, a.rt.TaskStatus(task), id).With("task", id)
	}
	return task, nil
}

// streamCompletion streams what the first agent of a task writes. It has the text that the agent
// writes before its calls, too.
func (a *api) streamCompletion(w http.ResponseWriter, r *http.Request, task org.Task, out openaiapi.CompletionBuilder, usage bool) error {
	ctx, cancel := UntilShutdown(r.Context())
	defer cancel()
	s := &chunkStream{eventStream: newEventStream(w, r), out: out}
	s.sse = true
	s.open()
	for e, err := range a.eventsFor(r, a.rt.WatchTask(ctx, task.ID, task.FirstSeq)) {
		if err == nil {
			err = a.authenticate.Revalidate(r)
		}
		if err != nil {
			return a.abortStream(s.eventStream, err)
		}
		if e.Agent == task.Top && s.sendEvent(e.Body) != nil {
			return nil
		}
		if a.endsWait(e) {
			break
		}
	}
	a.logUnsent(r, task.ID, a.endCompletion(r.Context(), r, s, task.ID, usage))
	return nil
}

// endCompletion sends what of the result was not streamed, and the end of the stream.
func (a *api) endCompletion(ctx context.Context, r *http.Request, s *chunkStream, id identity.TaskID, usage bool) error {
	task, err := a.awaitCompletion(r, id)
	if err != nil {
		return s.sendError(err)
	}
	used, err := a.rt.TaskUsage(ctx, id)
	if err != nil {
		return err
	}
	if err := s.sendRest(openaiapi.ResultText(task.Result)); err != nil {
		return nil // the client has gone
	}
	_ = s.sendData(s.out.FinalChunk(task.Incomplete))
	if usage {
		_ = s.sendData(s.out.UsageChunk(openaiapi.NewUsage(used)))
	}
	_, err = fmt.Fprint(s.w, "data: [DONE]\n\n")
	_ = s.flush()
	return err
}

// chunkStream writes chunks of a chat completion.
type chunkStream struct {
	*eventStream
	out     openaiapi.CompletionBuilder
	begun   bool            // a chunk was sent
	current strings.Builder // what was sent of the answer in progress
	ended   bool            // the answer in progress has ended: another one begins a paragraph
}

// sendEvent sends the text of an event. An error means that the client has gone.
func (s *chunkStream) sendEvent(body journal.EventBody) error {
	switch b := body.(type) {
	case journal.ModelDelta:
		if b.Restart {
			s.ended = s.current.Len() > 0
		}
		return s.sendText(b.Text)
	case journal.ModelAnswered:
		err := s.sendRest(b.Answer.Text) // what was written before the stream began
		s.ended = s.current.Len() > 0
		return err
	}
	return nil
}

// sendText sends a part of an answer.
func (s *chunkStream) sendText(text string) error {
	if text == "" {
		return nil
	}
	if s.ended {
		s.ended = false
		s.current.Reset()
		if err := s.sendChunk("\n\n"); err != nil {
			return err
		}
	}
	s.current.WriteString(text)
	return s.sendChunk(text)
}

// sendRest sends what of a text was not sent as the answer in progress, or as the last one.
func (s *chunkStream) sendRest(text string) error {
	rest, sent := strings.CutPrefix(text, s.current.String())
	if sent && s.current.Len() > 0 {
		s.ended = false
		text = rest
	}
	return s.sendText(text)
}

func (s *chunkStream) sendChunk(text string) error {
	first := !s.begun
	s.begun = true
	return s.sendData(s.out.Chunk(text, first))
}

// sendError ends the stream with an error.
func (s *chunkStream) sendError(err error) error {
	return s.sendData(wire.ErrorBody{Error: wire.DetailOf(err)})
}

// sendData writes an event without a name.
func (s *chunkStream) sendData(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(0, text)
}
