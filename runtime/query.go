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

// TasksOf lists the tasks that a principal may look at, without texts and
// results, oldest first: of a caller from outside those it gave itself in its
// role, of the operator all, of others none.
func (rt *Runtime) TasksOf(by identity.Principal) []org.Task {
	switch by.Kind {
	case identity.Operator:
		return rt.org.Tasks()
	case identity.Caller:
		return slices.DeleteFunc(rt.org.Tasks(), func(t org.Task) bool { return !t.StartedBy(by) })
	}
	return nil
}

// Ended lists the agents that are terminated, of one task or of all for "",
// with their briefs: those that ended while they were kept with the others,
// then the rest, each sorted by id. A damaged record comes with its error, and
// the sequence goes on.
func (rt *Runtime) Ended(ctx context.Context, task identity.TaskID) iter.Seq2[org.Agent, error] {
	return func(yield func(org.Agent, error) bool) {
		_ = rt.endedIn(ctx, org.KindAgent, task, yield) && rt.endedIn(ctx, org.KindTerminated, task, yield)
	}
}

// endedIn yields those of one kind of records; false when the caller has enough.
func (rt *Runtime) endedIn(ctx context.Context, kind org.Kind, task identity.TaskID, yield func(org.Agent, error) bool) bool {
	for r, err := range rt.store.Records(ctx, string(kind), "") {
		var a org.Agent
		if err == nil {
			if !isEnded(r.Value, task) {
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

// hasEnded says whether an agent was made and is terminated. What cannot be
// read is an error: nobody comes back because of it.
func (rt *Runtime) hasEnded(ctx context.Context, id identity.AgentID) (bool, error) {
	for _, kind := range []org.Kind{org.KindAgent, org.KindTerminated} { // who ends goes from one to the other
		record, err := rt.store.Record(ctx, string(kind), string(id))
		if err != nil {
			return false, fmt.Errorf("read %s %s: %w", kind, id, err)
		}
		if record != nil {
			return isEnded(record, ""), nil
		}
	}
	return false, nil
}

// isEnded looks into an agent's record without decoding it: most are alive.
func isEnded(record []byte, task identity.TaskID) bool {
	return gjson.GetBytes(record, "status").Str == string(org.Terminated) &&
		(task == "" || gjson.GetBytes(record, "taskId").Str == string(task))
}
