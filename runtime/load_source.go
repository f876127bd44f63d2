package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// source lets org read the store's records.
type source struct{ store journal.Store }

// Records implements org.Source.
func (s source) Records(kind string) iter.Seq2[org.Record, error] {
	return func(yield func(org.Record, error) bool) {
		for r, err := range s.store.Records(context.Background(), kind, "") {
			if !yield(org.Record{Key: r.Key, Value: r.Value}, err) {
				return
			}
		}
	}
}

// stored reads one record; code is that of its absence.
func stored[T any](ctx context.Context, rt *Runtime, kind org.Kind, key string, code errcode.Code) (T, error) {
	var v T
	value, err := rt.store.Record(ctx, string(kind), key)
	if err != nil {
		return v, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	if value == nil {
		return v, errcode.New(code, "there is no %s %q", kind, key)
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return v, nil
}

// AgentRecord gives an agent as it is stored, with its brief; terminated ones too.
func (rt *Runtime) AgentRecord(ctx context.Context, id identity.AgentID) (org.Agent, error) {
	a, err := stored[org.Agent](ctx, rt, org.KindAgent, string(id), errcode.AgentNotFound)
	if errcode.Of(err) == errcode.AgentNotFound {
		a, err = stored[org.Agent](ctx, rt, org.KindTerminated, string(id), errcode.AgentNotFound)
	}
	return a, err
}

// TaskRecord gives a task as it is stored, with text and result.
func (rt *Runtime) TaskRecord(ctx context.Context, id identity.TaskID) (org.Task, error) {
	return stored[org.Task](ctx, rt, org.KindTask, string(id), errcode.TaskNotFound)
}
