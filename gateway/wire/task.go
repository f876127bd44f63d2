package wire

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Task is a task. Lists contain neither Result nor what it has used, and Agents only if
// they are requested. Only a task that is shown has Elapsed, Calls and ByModel.
type Task struct {
	ID         identity.TaskID     `json:"id"`
	Text       string              `json:"text"`
	Status     org.TaskStatus      `json:"status"`
	Caller     string              `json:"caller"`
	As         string              `json:"as,omitempty"`              // name of the role that bounds it in place of the caller's (tasks.as); only for the operator
	AsID       identity.RoleID     `json:"asId,omitempty"`            // its id
	Agent      identity.AgentID    `json:"agent"`                     // the task's root agent
	Requested  []string            `json:"requestedGroups,omitempty"` // the groups that the request named; absent if it named none
	Groups     toolgroups.GroupSet `json:"groups"`                    // the groups that the task is restricted to; ["*"] for no restriction
	State      string              `json:"state"`                     // workflow state in which its agents start; "undefined" for none
	Input      json.RawMessage     `json:"input,omitempty"`
	Schema     json.RawMessage     `json:"schema,omitempty"`    // that its result must fit
	Workspace  string              `json:"workspace,omitempty"` // the name of a configured workspace, or the path that the operator named
	ReadOnly   bool                `json:"readOnly,omitempty"`
	Result     json.RawMessage     `json:"result,omitempty"`
	Incomplete model.StopReason    `json:"incomplete,omitempty"` // why the result is not whole: length, content_filter or refusal
	Error      *org.TaskError      `json:"error,omitempty"`
	Reason     *org.TaskPause      `json:"reason,omitempty"` // why it is paused
	Open       bool                `json:"open,omitempty"`   // it does not end with the turn of its first agent
	Driven     bool                `json:"driven,omitempty"` // a Go program is its first agent
	Budget     *Budget             `json:"budget,omitempty"` // of its own
	Extra      *Budget             `json:"extra,omitempty"`  // what retries added to the budgets
	Limits     *TaskLimits         `json:"limits,omitempty"` // that apply to it now, or to a retry if it has ended; only of a task that is shown
	CreatedAt  time.Time           `json:"createdAt"`
	Deadline   time.Time           `json:"deadline,omitzero"` // when it is cancelled
	EndedAt    time.Time           `json:"endedAt,omitzero"`
	Elapsed    int64               `json:"elapsedMs,omitempty"`      // from the start to the end, or until now
	Calls      CallCounts          `json:"calls,omitzero"`           // of all agents so far
	Usage      model.TokenUsage    `json:"usage,omitzero"`           // of all models so far
	ByModel    []ModelUsage        `json:"byModel,omitempty"`        // sorted by name
	Budgets    []BudgetUse         `json:"budgets,omitempty"`        // of the task, then of its agents that have one; only of a task that is shown
	Agents     []Agent             `json:"agents,omitempty"`         // oldest first, including terminated ones
	Suspended  []string            `json:"suspendedRoles,omitempty"` // names of the suspended roles of its caller and its agents, sorted; only of a task that is shown and has not ended
}

// TaskLimits are the limits of a task. Tokens, Cost and Calls are its budget, with what retries added; 0
// is no limit.
type TaskLimits struct {
	Tokens   int64   `json:"tokens,omitempty"`
	Cost     float64 `json:"cost,omitempty"`  // in the currency of the prices
	Calls    int64   `json:"calls,omitempty"` // of tools
	Requests int     `json:"requests"`        // to language models
	Turns    int     `json:"turns"`           // of all its agents
	Agents   int     `json:"agents"`          // that are not terminated
	Hires    int     `json:"hires"`           // agents that one agent may spawn
	Rounds   int     `json:"rounds"`          // answers of one turn, of roles without a limit of their own
}

// BudgetUse is what was used of one limit of the budget of a task or of an agent. A cost is in the
// currency of the prices.
type BudgetUse struct {
	Agent    identity.AgentID `json:"agent,omitempty"` // absent for the task
	Name     string           `json:"name,omitempty"`  // of the agent
	Quantity string           `json:"quantity"`        // requests, tokens, cost or calls
	Limit    float64          `json:"limit"`
	Used     float64          `json:"used"`               // with what the agents below use
	Reserved float64          `json:"reserved,omitempty"` // of the rest, for the budgets of agents below
	Warned   bool             `json:"warned,omitempty"`   // a warning about this limit is on record
}

// CallCounts are numbers of tool calls.
type CallCounts struct {
	Total  int `json:"total"` // with the denied ones
	Denied int `json:"denied"`
}

// ModelUsage is what the answers of a model have used. Model is "" if its name was not
// recorded.
type ModelUsage struct {
	Model string           `json:"model"`
	Usage model.TokenUsage `json:"usage"`
}

// TaskRequest is the body of POST /api/v1/tasks. Only Text is required.
type TaskRequest struct {
	Text      string         `json:"text"`                // what to do
	Role      string         `json:"role,omitempty"`      // id or name of the role of the first agent; "" is root
	Group     []string       `json:"group,omitempty"`     // groups that the task is restricted to
	Ask       bool           `json:"ask,omitempty"`       // asks an agent of the role: without group, the default groups of the role hold (agent.defaultGroups)
	State     string         `json:"state,omitempty"`     // workflow state in which its agents start; callers in a role: one that the role lists, if none is on record for them
	Workspace string         `json:"workspace,omitempty"` // the name of a configured workspace; through the socket of the data directory also an absolute path
	ReadOnly  bool           `json:"readOnly,omitempty"`  // of the workspace
	Input     Object         `json:"input,omitempty"`     // data for the first agent
	Files     []org.TaskFile `json:"files,omitempty"`     // for the first agent; they become artifacts of the task
	Timeout   string         `json:"timeout,omitempty"`   // after which the task is cancelled, such as "10m"
	Result    *ResultSpec    `json:"result,omitempty"`    // what the result must be
	Open      bool           `json:"open,omitempty"`      // the first agent then waits for messages until the task is cancelled; only of the operator
	Budget    *Budget        `json:"budget,omitempty"`    // of the task; not more than the organization's
}

// Object is the text of a JSON object. It is not decoded, because many small members would take many times their size.
type Object json.RawMessage

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON implements json.Unmarshaler. The text is without spaces between the values.
func (o *Object) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, new(struct{})); err != nil { // no object
		return err
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, text)
	*o = compact.Bytes()
	return err
}

// ResultSpec describes the result of a task, or of the agents of a role.
type ResultSpec = org.ResultSpec

// RetryRequest is the body of POST /api/v1/tasks/{id}/retry. The task's models may use so
// much more than before. An empty object adds nothing.
type RetryRequest Budget

// Budget is an amount of model usage and of tool calls. A field that is 0 is not set.
type Budget struct {
	Tokens   int64   `json:"tokens,omitempty"`   // sent and generated
	Cost     float64 `json:"cost,omitempty"`     // in the currency of the prices
	Requests int64   `json:"requests,omitempty"` // to language models, since the last retry
	Calls    int64   `json:"calls,omitempty"`    // of tools, that are started
}

// Allowance converts a budget. It reports false if a field is negative or too large, or
// the cost is less than a billionth.
func (b Budget) Allowance() (org.ModelAllowance, bool) {
	return org.ModelAllowance{Tokens: b.Tokens, Requests: b.Requests, Calls: b.Calls}.WithCost(b.Cost)
}

// BudgetOf converts an allowance; nil for none.
func BudgetOf(a org.ModelAllowance) *Budget {
	if a == (org.ModelAllowance{}) {
		return nil
	}
	return &Budget{Tokens: a.Tokens, Cost: float64(a.Cost) / 1e9, Requests: a.Requests, Calls: a.Calls}
}
