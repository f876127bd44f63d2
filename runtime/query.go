package runtime

import (
	"cmp"
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

// EndedAgents yields the terminated agents of a task, or all for "", with their
// briefs. Agents whose record has kind agent come before agents whose record
// has kind terminated. Both are sorted by id. A damaged record is yielded with
// its error, and the sequence continues.
func (rt *Runtime) EndedAgents(ctx context.Context, task identity.TaskID) iter.Seq2[org.Agent, error] {
	return func(yield func(org.Agent, error) bool) {
		_ = rt.yieldTerminated(ctx, org.KindAgent, task, yield) && rt.yieldTerminated(ctx, org.KindTerminated, task, yield)
	}
}

// AgentsOfTasks returns the agents of some tasks by task, including terminated
// ones, without briefs and oldest first. Its time grows with the agents in
// memory. It also grows with the agents that terminated since the oldest of the
// tasks began. Damaged records are logged and left out.
func (rt *Runtime) AgentsOfTasks(ctx context.Context, tasks []org.Task) (map[identity.TaskID][]org.Agent, error) {
	wanted, oldest := map[identity.TaskID]bool{}, rt.now()
	for _, t := range tasks {
		wanted[t.ID] = true
		if t.CreatedAt.Before(oldest) {
			oldest = t.CreatedAt
		}
	}
	list := rt.org.AgentsOfTasks(wanted)
	for r, err := range rt.store.ReadRecordsFrom(ctx, string(org.KindTerminated), identity.FirstIDAt(oldest)) {
		var a org.Agent
		if err == nil && !wanted[identity.TaskID(gjson.GetBytes(r.Value, "taskId").Str)] {
			continue
		}
		if err == nil {
			err = json.Unmarshal(r.Value, &a)
		}
		switch {
		case ctx.Err() != nil:
			return nil, err
		case err != nil:
			rt.log.Error("agent skipped", "agent", r.Key, "error", err)
		default:
			list = append(list, a)
		}
	}
	return groupByTask(list), nil
}

// groupByTask returns agents by task, oldest first. An agent that was read
// before and after its end is in it once.
func groupByTask(list []org.Agent) map[identity.TaskID][]org.Agent {
	slices.SortStableFunc(list, func(a, b org.Agent) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	byTask := map[identity.TaskID][]org.Agent{}
	for _, a := range slices.CompactFunc(list, func(a, b org.Agent) bool { return a.ID == b.ID }) {
		byTask[a.Task] = append(byTask[a.Task], a)
	}
	return byTask
}

// yieldTerminated yields the terminated agents of one record kind. It returns
// false if the consumer has stopped.
func (rt *Runtime) yieldTerminated(ctx context.Context, kind org.RecordKind, task identity.TaskID, yield func(org.Agent, error) bool) bool {
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
	for _, kind := range []org.RecordKind{org.KindAgent, org.KindTerminated} { // in this order: termination moves a record from the first to the second
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

// isTerminatedRecord reports whether a record belongs to a terminated agent of
// the task. It does not decode the record, since most agents are not
// terminated.
func isTerminatedRecord(record []byte, task identity.TaskID) bool {
	return gjson.GetBytes(record, "status").Str == string(org.Terminated) &&
		(task == "" || gjson.GetBytes(record, "taskId").Str == string(task))
}
