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

// storeSource reads the records of the organization from a store. It implements
// org.RecordSource.
type storeSource struct{ store journal.Store }

// Records implements org.RecordSource.
func (s storeSource) Records(kind string) iter.Seq2[org.StoredRecord, error] {
	return func(yield func(org.StoredRecord, error) bool) {
		for r, err := range s.store.ReadRecords(context.Background(), kind, "") {
			if !yield(org.StoredRecord{Key: r.Key, Value: r.Value}, err) {
				return
			}
		}
	}
}

// readRecord reads one record. If it does not exist, the error has the given
// code.
func readRecord[T any](ctx context.Context, store journal.Store, kind org.RecordKind, key string, code errcode.Code) (T, error) {
	var v T
	value, err := store.ReadRecord(ctx, string(kind), key)
	if err != nil {
		return v, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	if value == nil {
		return v, errcode.New(code, "%s %q not found", kind, key)
	}
	if err := json.Unmarshal(value, &v); err != nil {
		return v, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	return v, nil
}

// AgentRecord returns the stored record of an agent, including its brief. It
// also returns terminated agents.
func (rt *Runtime) AgentRecord(ctx context.Context, id identity.AgentID) (org.Agent, error) {
	a, err := readRecord[org.Agent](ctx, rt.store, org.KindAgent, string(id), errcode.AgentNotFound)
	if errcode.CodeOf(err) == errcode.AgentNotFound {
		a, err = readRecord[org.Agent](ctx, rt.store, org.KindTerminated, string(id), errcode.AgentNotFound)
	}
	return a, err
}

// TaskRecord returns the stored record of a task, including its text and
// result.
func (rt *Runtime) TaskRecord(ctx context.Context, id identity.TaskID) (org.Task, error) {
	return readRecord[org.Task](ctx, rt.store, org.KindTask, string(id), errcode.TaskNotFound)
}
