package rolecall

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

// Run starts a task, waits for its end and returns the result. The result
// fits the JSON schema of T, which is inferred as for the arguments of tools: the agents are
// told, and asked again if it does not fit. A T of json.RawMessage accepts any result.
//
// If ctx ends before the task, the task is cancelled. A paused task, for example because its
// model needs a key, stays paused. The error has the code of the failure. With the code
// IncompleteResult, Run returns the result that there is: the model's answer was cut,
// filtered or refused.
//
// With TaskSpec.Key, Run starts one task for the key. It waits for the task that an earlier
// Run has started, also in another process. That task goes on if it was interrupted or
// paused. If the task has ended, its outcome stays. Such a task is not cancelled when ctx
// ends. Run returns an error with the code Conflict if the key was used for something else.
func Run[T any](ctx context.Context, o *Organization, s TaskSpec) (result T, err error) {
	schema, err := schemaOf[T]()
	if err != nil {
		return result, err
	}
	text, failure := o.run(ctx, s, schema)
	if failure != nil && errcode.CodeOf(failure) != errcode.IncompleteResult {
		return result, failure
	}
	if err := json.Unmarshal(text, &result); err != nil && failure == nil {
		failure = errcode.Wrap(errcode.InvalidResult, err, "the result is not a %T", result)
	}
	return result, failure
}

// schemaOf returns the JSON schema of T, nil for any JSON.
func schemaOf[T any]() (json.RawMessage, error) {
	if _, raw := any(new(T)).(*json.RawMessage); raw {
		return nil, nil
	}
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err, "no JSON schema describes the type of the result")
	}
	return json.Marshal(schema)
}

// run starts a task, waits for its end and returns its result.
func (o *Organization) run(ctx context.Context, s TaskSpec, schema json.RawMessage) (json.RawMessage, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	id, err := o.rt.StartTask(ctx, o.spec(s, schema))
	if err != nil {
		return nil, err
	}
	if s.Key != "" {
		if err := o.takeUp(ctx, s.As, id); err != nil {
			return nil, err
		}
	}
	task, err := o.rt.WaitTask(ctx, id)
	if ctx.Err() != nil && err != nil && s.Key == "" {
		_ = o.rt.CancelTask(context.WithoutCancel(ctx), id, "its program stopped waiting") // fails only with the store, which reports it
	}
	if err != nil {
		return nil, err
	}
	return task.Result, outcomeError(task)
}

// outcomeError returns nil for a task that is done with a complete result, else what is
// wrong with it.
func outcomeError(task org.Task) error {
	switch {
	case task.Incomplete != "":
		return errcode.New(errcode.IncompleteResult, "the result of task %s is incomplete: %s", task.ID, task.Incomplete).With("incomplete", task.Incomplete)
	case task.Status == org.Done:
		return nil
	case task.Error != nil:
		return errcode.New(task.Error.Code, "task %s %s: %s", task.ID, task.Status, logHint(task.Error.Message))
	case task.Pause != nil:
		return errcode.New(task.Pause.Code, "task %s %s: %s", task.ID, task.Status, logHint(task.Pause.Message))
	}
	return errcode.New(errcode.Conflict, "task %s is %s", task.ID, task.Status)
}

// logHint returns a message of the runtime that names the log with what a program has to set.
// The cause itself is in the log only: agents read such messages, too.
func logHint(message string) string {
	if strings.HasSuffix(message, "see the log") {
		return message + " (set Options.Log)"
	}
	return message
}
