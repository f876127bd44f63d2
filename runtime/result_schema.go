package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// maxResultSchema is the size of the largest schema of a result, in bytes. It is part of
// each request of the first agent.
const maxResultSchema = 16 << 10

// CheckResultSchema rejects a schema that no result can be checked against; nil is none.
// Errors: InvalidArguments.
func CheckResultSchema(schema json.RawMessage) error {
	if schema == nil {
		return nil
	}
	if len(schema) > maxResultSchema {
		return errcode.New(errcode.InvalidArguments, "start a task: the schema of its result has %d bytes, at most %d are allowed", len(schema), maxResultSchema).With("field", "result")
	}
	if _, err := argschema.Compile(schema); err != nil {
		return errcode.New(errcode.InvalidArguments, "start a task: the schema of its result: %v", errors.Unwrap(err)).With("field", "result")
	}
	return nil
}

// typedResult returns a result as the JSON object that a schema describes. A text is read as
// JSON, also within a code fence. Without a schema the result is returned unchanged.
//
// Errors: InvalidResult, with the problems in words for a model.
func typedResult(schema, result json.RawMessage) (json.RawMessage, error) {
	if schema == nil {
		return result, nil
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		result = json.RawMessage(withoutFence(text))
	}
	if !json.Valid(result) {
		return nil, errcode.New(errcode.InvalidResult, "the result is not JSON")
	}
	compiled, err := argschema.Compile(schema)
	if err == nil {
		err = compiled.Validate(result)
	}
	if err != nil {
		return nil, errcode.New(errcode.InvalidResult, "the result does not fit its schema: %s", errcode.Message(err))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, result); err != nil {
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

// checkResult replaces the value of an answer that ends the task by its typed result.
func (a *actor) checkResult(answer *model.Answer) error {
	task, ok := a.rt.org.TaskByID(a.task)
	if !ok || task.Schema == nil {
		return nil
	}
	result, err := typedResult(task.Schema, resultOf(*answer))
	if err == nil {
		answer.Value = result
	}
	return err
}

// askForResult sends the first agent of an idle task a message that says why its result does
// not fit, once, and once more after each retry. It reports whether it did; the task then goes on.
func (rt *Runtime) askForResult(ctx context.Context, task *org.Task, problem error) (asked bool, err error) {
	m := model.Message{
		ID: identity.DeriveID(string(task.ID), "result", strconv.FormatUint(task.EndSeq, 10)), From: User, To: string(task.Top), Task: task.ID, CreatedAt: rt.now(),
		Payload: textPayload(errcode.Message(problem)+". Answer again, with one JSON object that fits the schema and no other text.", nil),
	}
	top, err := rt.agentState(ctx, task.ID, task.Top)
	if err != nil || slices.ContainsFunc(top.items, func(i model.Item) bool { return i.Message != nil && i.Message.ID == m.ID }) {
		return false, err
	}
	sent := journal.Event{At: rt.now(), Task: task.ID, Agent: task.Top, Role: rt.topRoleName(task), Body: journal.MessageSent{Message: m}}
	_, err = rt.commit(&journal.Batch{Events: []journal.Event{sent}, Send: []journal.Message{{Message: m}}})
	return err == nil, err
}

// resultPrompt returns the section of the first agent's prompt that describes the result of
// its task; "" if any result will do.
func (rt *Runtime) resultPrompt(a org.Agent) string {
	task, ok := rt.org.TaskByID(a.Task)
	if !ok || task.Top != a.ID || task.Schema == nil {
		return ""
	}
	var p strings.Builder
	writeSection(&p, "Your result", "When the work is done, end with one JSON object that fits this JSON schema, and no other text:\n"+string(task.Schema))
	return p.String()
}
