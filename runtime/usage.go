package runtime

import (
	"cmp"
	"context"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// TaskTally is what a task has done so far, as it is recorded. It does not include failed
// or discarded requests to models, whose usage only the provider knows.
type TaskTally struct {
	AgentTally
	Agents map[identity.AgentID]AgentTally
	Models []ModelTally // sorted by name

	Budgets []BudgetTally // of the task, then of its agents that have one and have not ended

	budgets *budgetTree
	parents map[identity.AgentID]identity.AgentID // of all agents
}

// AgentTally is what an agent has done so far.
type AgentTally struct {
	Calls  int // with the denied ones
	Denied int
	Usage  model.TokenUsage
}

// ModelTally is the usage of a model. Name is "" for models that are no language models,
// and for answers of earlier versions.
type ModelTally struct {
	Name  string
	Usage model.TokenUsage
}

// BudgetTally is what was used of one limit of a budget.
type BudgetTally struct {
	Agent    identity.AgentID // "" for the task
	Name     string           // of the agent
	Quantity string           // requests, tokens, cost or calls
	Limit    int64            // a cost is in billionths of the currency of the prices
	Used     int64            // with what the agents below use
	Reserved int64            // of the rest, for the budgets of agents below
	Warned   bool             // a warning about this limit is on record
}

// TaskUsage returns the model usage of a task: the sum over its recorded answers
// and summaries.
func (rt *Runtime) TaskUsage(ctx context.Context, id identity.TaskID) (model.TokenUsage, error) {
	tally, err := rt.TaskTally(ctx, id)
	return tally.Usage, err
}

// TaskTally counts what a task has done. It reads the events of the task.
func (rt *Runtime) TaskTally(ctx context.Context, id identity.TaskID) (TaskTally, error) {
	task, err := rt.TaskRecord(ctx, id)
	if err != nil {
		return TaskTally{}, err
	}
	return rt.tally(ctx, task)
}

func (rt *Runtime) tally(ctx context.Context, task org.Task) (TaskTally, error) {
	sum := TaskTally{Agents: map[identity.AgentID]AgentTally{}, budgets: &budgetTree{}, parents: map[identity.AgentID]identity.AgentID{}}
	for e, err := range rt.store.FollowTask(ctx, task.ID, task.FirstSeq, journal.StoredOnly) {
		if err != nil {
			return sum, err
		}
		if e.Task != task.ID {
			continue
		}
		if rt.EndsTask(e) {
			break
		}
		sum.add(e)
		sum.foldBudgets(e)
	}
	sum.Budgets = rt.listBudgets(&task, sum.budgets)
	slices.SortFunc(sum.Models, func(a, b ModelTally) int { return cmp.Compare(a.Name, b.Name) })
	return sum, nil
}

// add counts an event.
func (t *TaskTally) add(e journal.Event) {
	one := tallyOf(e.Body)
	switch b := e.Body.(type) {
	case journal.TurnFailed:
		t.countRequests(e.Agent, b.Unanswered, one.Usage)
		return
	case journal.ModelAnswered:
		t.countRequests(e.Agent, b.Unanswered, one.Usage)
		t.addModel(b.Answer.Model, one.Usage)
	case journal.ContextCompressed:
		t.countRequests(e.Agent, b.Unanswered, one.Usage)
		t.addModel(b.Model, one.Usage)
	case journal.ToolCall:
		if b.Decision == journal.Allowed {
			t.nodeOf(e.Agent).used[callQuantity]++
		}
	default:
		return
	}
	t.AgentTally = t.AgentTally.plus(one)
	t.Agents[e.Agent] = t.Agents[e.Agent].plus(one)
}

// countRequests counts requests of an agent. It counts the requests without an answer, and the request with
// this usage if it is of a language model. What such a model does not report is estimated.
func (t *TaskTally) countRequests(agent identity.AgentID, unanswered int, u model.TokenUsage) {
	used := usageAmounts(u)
	used[requestQuantity] = int64(unanswered)
	if u.Input > 0 {
		used[requestQuantity]++
	}
	t.nodeOf(agent).used.add(used)
}

// tallyOf returns what one event counts.
func tallyOf(body journal.EventBody) (one AgentTally) {
	switch b := body.(type) {
	case journal.ModelAnswered:
		one.Usage = b.Answer.Usage
	case journal.ContextCompressed:
		one.Usage = b.Usage
	case journal.ToolCall:
		if one.Calls = 1; b.Decision == journal.Denied && b.Code != errcode.ToolInterrupted { // an interrupted call is not repeated
			one.Denied = 1
		}
	}
	return one
}

// addModel adds the usage of a model. One that reports none, such as a script, is left out.
func (t *TaskTally) addModel(name string, u model.TokenUsage) {
	if u == (model.TokenUsage{}) {
		return
	}
	at := slices.IndexFunc(t.Models, func(m ModelTally) bool { return m.Name == name })
	if at < 0 {
		at, t.Models = len(t.Models), append(t.Models, ModelTally{Name: name})
	}
	t.Models[at].Usage = t.Models[at].Usage.Add(u)
}

// plus returns the sum of two tallies.
func (t AgentTally) plus(u AgentTally) AgentTally {
	return AgentTally{t.Calls + u.Calls, t.Denied + u.Denied, t.Usage.Add(u.Usage)}
}
