package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// TasksOf lists the tasks that a principal may see, without texts and results,
// oldest first. The operator sees all tasks, an external caller those it
// started in its role, other principals none.
func (rt *Runtime) TasksOf(by identity.Principal) []org.Task {
	switch by.Kind {
	case identity.Operator:
		return rt.org.ListTasks()
	case identity.Caller:
		return slices.DeleteFunc(rt.org.ListTasks(), func(t org.Task) bool { return !t.StartedBy(by) })
	}
	return nil
}

// Ended yields the terminated agents of a task, or all for "", with their
// briefs. Agents whose record has kind agent come before those of kind
// terminated; both are sorted by id. A damaged record is yielded with its
// error, and the sequence continues.
func (rt *Runtime) Ended(ctx context.Context, task identity.TaskID) iter.Seq2[org.Agent, error] {
	return func(yield func(org.Agent, error) bool) {
		_ = rt.terminatedOfKind(ctx, org.KindAgent, task, yield) && rt.terminatedOfKind(ctx, org.KindTerminated, task, yield)
	}
}

// terminatedOfKind yields the terminated agents of one record kind. It returns
// false if the consumer has stopped.
func (rt *Runtime) terminatedOfKind(ctx context.Context, kind org.Kind, task identity.TaskID, yield func(org.Agent, error) bool) bool {
	for r, err := range rt.store.ReadRecords(ctx, string(kind), "") {
		var a org.Agent
		if err == nil {
			if !isTerminatedRecord(r.Value, task) {
				continue
			}
			err = json.Unmarshal(r.Value, &a)
		}
		if !yield(a, err) {
			return false
		}
	}
	return true
}

// wasTerminated reports whether an agent was created and is terminated. An
// unreadable record is an error, so that no terminated agent is created again.
func (rt *Runtime) wasTerminated(ctx context.Context, id identity.AgentID) (bool, error) {
	for _, kind := range []org.Kind{org.KindAgent, org.KindTerminated} { // in this order: termination moves a record from the first to the second
		record, err := rt.store.ReadRecord(ctx, string(kind), string(id))
		if err != nil {
			return false, fmt.Errorf("read %s %s: %w", kind, id, err)
		}
		if record != nil {
			return isTerminatedRecord(record, ""), nil
		}
	}
	return false, nil
}

// isTerminatedRecord reports whether a record is that of a terminated agent of
// the task. It does not decode the record, since most agents are not
// terminated.
func isTerminatedRecord(record []byte, task identity.TaskID) bool {
	return gjson.GetBytes(record, "status").Str == string(org.Terminated) &&
		(task == "" || gjson.GetBytes(record, "taskId").Str == string(task))
}
