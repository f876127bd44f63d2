package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// CheckResultSchema rejects a schema that no result can be checked against. Nil means no schema.
// Errors: InvalidArguments.
func CheckResultSchema(schema json.RawMessage) error {
	if schema == nil {
		return nil
	}
	if problem := org.ResultProblem(schema); problem != "" {
		return errcode.New(errcode.InvalidArguments, "start a task: the schema of its result: %s", problem).With("field", "result")
	}
	return nil
}

// typedResult returns a result as the JSON value that a schema describes. A text is read as
// JSON, also within a code fence, or taken as it is if the schema wants a text. Without a
// schema the result is returned unchanged.
//
// Errors: InvalidResult, with the problems in words for a model.
func typedResult(schema, result json.RawMessage) (json.RawMessage, error) {
	if schema == nil {
		return result, nil
	}
	compiled, err := argschema.CompileValue(schema)
	if err != nil {
		return nil, errcode.New(errcode.InvalidResult, "the result does not fit its schema: %v", err)
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		return typedText(compiled, result, text)
	}
	return typedValue(compiled, result)
}

// typedText returns the value that a text has as JSON, or else the text itself if that fits.
// quoted is the text as JSON.
func typedText(schema *argschema.ValueSchema, quoted json.RawMessage, text string) (json.RawMessage, error) {
	document := json.RawMessage(withoutFence(text))
	value, problem := typedValue(schema, document)
	if problem == nil {
		return value, nil
	}
	switch err := schema.Validate(quoted); {
	case err == nil:
		return quoted, nil
	case !json.Valid(document):
		return nil, errcode.New(errcode.InvalidResult, "the result is not JSON, and does not fit its schema as a text: %s", errcode.Message(err))
	}
	return nil, problem
}

// typedValue returns a value that fits, without white space between its tokens.
func typedValue(schema *argschema.ValueSchema, value json.RawMessage) (json.RawMessage, error) {
	if err := schema.Validate(value); err != nil {
		return nil, errcode.New(errcode.InvalidResult, "the result does not fit its schema: %s", errcode.Message(err))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return nil, errcode.Wrap(errcode.InvalidResult, err, "the result is not JSON")
	}
	return compact.Bytes(), nil
}

// withoutFence returns the content of a Markdown code fence, or the text if it is not one.
func withoutFence(text string) string {
	text = strings.TrimSpace(text)
	inner, fenced := strings.CutPrefix(text, "```")
	inner, ended := strings.CutSuffix(inner, "```")
	if !fenced || !ended {
		return text
	}
	_, inner, _ = strings.Cut(inner, "\n") // the first line may name the language
	return strings.TrimSpace(inner)
}

// setTypedResult replaces the value of an answer with finish result by its typed result.
func (a *actor) setTypedResult(answer *model.Answer) error {
	schema := a.rt.resultSchema(a.agent)
	if schema == nil {
		return nil
	}
	result, err := typedResult(schema, resultOf(*answer))
	if err == nil {
		answer.Value = result
	}
	return err
}

// correctionSender is the sender of the message that asks an agent below the first for
// another result. No agent and no caller has this name.
const correctionSender = "rolecall"

// isCorrection reports whether a message asks for another result.
func isCorrection(m *model.Message) bool { return m.From == correctionSender }

// finishBelow records the final answer of an agent that is not the first. If its role wants
// a typed result, that is what the parent gets. A correction follows an answer that does not
// fit, in the same commit. After the second such answer the turn fails with invalid_result.
func (a *actor) finishBelow(b *journal.Batch, answer *model.Answer) error {
	schema := a.rt.resultSchema(a.agent)
	if schema == nil {
		a.reportAnswer(b, answer)
		return a.commit(b)
	}
	result, problem := wholeResult(schema, answer)
	switch {
	case problem == nil:
		a.report(b, result, "end")
	case !a.state.corrected:
		m := a.message(string(a.agent.ID), textPayload(correction(problem)), "correction")
		m.From, m.FromName, m.FromRole = correctionSender, "", ""
		b.Idle = false
		b.Events = append(b.Events, a.event(journal.MessageSent{Message: m}), a.event(journal.MessageReceived{Message: m}))
	default:
		failed := a.failureBatch(problem)
		b.Idle, b.Events = failed.Idle, append(b.Events, failed.Events...)
		a.report(b, a.errorPayload(problem), "error")
	}
	return a.commit(b)
}

// wholeResult returns the typed result of an answer that is not the first agent's. The parent reads
// only the value, so an answer that is not whole has no typed result.
func wholeResult(schema json.RawMessage, answer *model.Answer) (json.RawMessage, error) {
	if answer.Stop != "" {
		return nil, errcode.New(errcode.InvalidResult, "the result is incomplete (%s)", answer.Stop)
	}
	return typedResult(schema, resultOf(*answer))
}

// correction returns the text that asks for another result.
func correction(problem error) string {
	return errcode.Message(problem) + ". Answer again, with one JSON value that fits the schema and no other text."
}

// askForResult sends a message to the first agent of an idle task. The message says why its result
// does not fit. It is sent once, and once more after each retry. askForResult reports whether it
// sent the message; the task then goes on.
func (rt *Runtime) askForResult(ctx context.Context, task *org.Task, problem error) (asked bool, err error) {
	m := model.Message{
		ID: identity.DeriveID(string(task.ID), "result", strconv.FormatUint(task.EndSeq, 10)), From: User, To: string(task.Top), Task: task.ID, CreatedAt: rt.now(),
		Payload: textPayload(correction(problem)),
	}
	top, err := rt.agentState(ctx, task.ID, task.Top)
	if err != nil || slices.ContainsFunc(top.items, func(i model.Item) bool { return i.Message != nil && i.Message.ID == m.ID }) {
		return false, err
	}
	sent := journal.Event{At: rt.now(), Task: task.ID, Agent: task.Top, Role: rt.topRoleName(task), Body: journal.MessageSent{Message: m}}
	_, err = rt.commit(&journal.Batch{Events: []journal.Event{sent}, Send: []journal.Message{{Message: m}}})
	return err == nil, err
}

// resultSchema returns the schema that the result of an agent must fit. The first agent of a task
// has the schema of the task. Any other agent has the schema of its role. Nil allows any result.
func (rt *Runtime) resultSchema(a org.Agent) json.RawMessage {
	task, ok := rt.org.TaskByID(a.Task)
	if !ok || task.Top == a.ID {
		return task.Schema
	}
	if role, ok := rt.org.RoleByID(a.Role); ok && role.Result != nil {
		return role.Result.Schema
	}
	return nil
}

// roleResultPrompt returns the section of the system prompt with the schema of the results
// of a role. The results of all its agents below the first agent of a task fit that schema.
// It returns "" if there is none.
func (rt *Runtime) roleResultPrompt(a org.Agent) string {
	if a.Parent == "" {
		return ""
	}
	return resultPrompt(rt.resultSchema(a))
}

// taskResultPrompt returns the section with the schema of a task's result for its first agent;
// "" if there is none.
func (rt *Runtime) taskResultPrompt(a org.Agent) string {
	if a.Parent != "" {
		return ""
	}
	return resultPrompt(rt.resultSchema(a))
}

// resultPrompt returns the section that describes a result; "" if any result will do.
func resultPrompt(schema json.RawMessage) string {
	if schema == nil {
		return ""
	}
	var p strings.Builder
	writeSection(&p, "Your result", "When the work is done, end with one JSON value that fits this JSON schema, and no other text:\n"+string(schema))
	return p.String()
}
