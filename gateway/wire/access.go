package wire

import (
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Question asks whether the gate would allow a call. One of Role, Agent and Caller,
// together with Tool, asks whether that role, agent or external caller may call the tool.
// Without Tool it asks which tools it may call. Who asks which roles and agents may call a
// tool. Why asks for the limits, too. Diff, together with Role, asks which tools the role
// gained and lost since an epoch.
//
// A role is checked as an agent of it directly below a root would be, in State.
// An agent is checked in its place and in its own workflow state, unless State
// is set. A caller is checked in its role and in its own workflow state, unless State is
// set. Groups restricts the check to these groups, as a task can; nil does
// not restrict, and an empty set allows nothing. A caller that names neither
// Role nor Agent asks about its own role.
type Question struct {
	Role   string               `json:"role,omitempty"`   // id or exact name
	Agent  string               `json:"agent,omitempty"`  // id, name in its task, or role name
	Caller string               `json:"caller,omitempty"` // the name of a token or a user, or user@role with the role's id or name
	Tool   string               `json:"tool,omitempty"`   // its name
	Args   json.RawMessage      `json:"args,omitempty"`   // arguments of a call of Tool, an object; they are compared with the bounds, not with the schema
	State  string               `json:"state,omitempty"`  // workflow state to check in
	Groups *toolgroups.GroupSet `json:"group,omitempty"`  // restricts the check to these groups
	Who    string               `json:"who,omitempty"`    // a tool's name
	Why    bool                 `json:"why,omitempty"`    // lists the limits that apply to the tool; for the operator only
	Diff   *uint64              `json:"diff,omitempty"`   // an epoch, with role alone; for the operator only
}

// Verdicts are the gate's decisions on all tools that the sender sees, sorted by name. They
// answer a Question with neither Tool nor Who.
type Verdicts struct {
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is the gate's decision with its reason.
type Verdict struct {
	Allowed bool               `json:"allowed"`
	Code    errcode.Code       `json:"code,omitempty"`
	Reason  string             `json:"reason"` // contains the tool's name
	Tool    string             `json:"tool"`
	Group   toolgroups.GroupID `json:"group,omitempty"` // through which the tool is granted; if it is denied, the group that owns it
	Epoch   uint64             `json:"epoch"`
	Rule    string             `json:"rule"`            // describes the rule that decided
	State   string             `json:"state,omitempty"` // workflow state of the caller that was checked

	// Waits is set if an allowed call waits until people approve it. A call of which the Question
	// has no Args may wait. Approval has the rules that select the call; only the operator sees them.
	Waits    bool           `json:"waits,omitempty"`
	Approval approval.Rules `json:"approval,omitempty"`

	Limits []Limit `json:"limits,omitempty"` // those that apply, the role's own first; set if the Question has Why
}

// Limit is one limit on a call. Of the limits that deny, the first one decides.
type Limit struct {
	org.PermissionLimit
	Decides bool `json:"decides,omitempty"`
}

// Holders lists the roles and agents that may call a tool. It also lists the roles in which
// callers may start tasks whose agents may call the tool through tasks.as. Code and Reason
// are set if the tool does not exist.
type Holders struct {
	Tool   string        `json:"tool"`
	Roles  []RoleHolder  `json:"roles"`  // sorted by name, root first
	Agents []AgentHolder `json:"agents"` // sorted by creation time
	Tasks  []TasksHolder `json:"tasks"`  // sorted by name
	Epoch  uint64        `json:"epoch"`
	Code   errcode.Code  `json:"code,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

// Matrix says which roles may call which tools. It has a page of roles, sorted by name, root first.
// It also has the tools that were compared, sorted by name. NextTool is the first tool that was not
// compared.
type Matrix struct {
	Tools []MatrixTool `json:"tools"`
	Page[MatrixRow]
	NextTool string `json:"nextTool,omitempty"`
	Epoch    uint64 `json:"epoch"`
}

// MatrixTool is a tool of a Matrix.
type MatrixTool struct {
	Name   string             `json:"name"`
	Group  toolgroups.GroupID `json:"group"`
	Effect string             `json:"effect"`
}

// MatrixRow is a role, with the names of those tools of its Matrix that it may call, sorted. Waits
// has the tools among them whose calls may wait until people approve them.
type MatrixRow struct {
	ID      identity.RoleID `json:"id"`
	Name    string          `json:"name"`
	Allowed []string        `json:"allowed"`
	Waits   []string        `json:"waits,omitempty"`
}

// RoleHolder is a role that may call a tool.
type RoleHolder struct {
	ID    identity.RoleID    `json:"id"`
	Name  string             `json:"name"`
	Group toolgroups.GroupID `json:"group"`           // through which the tool is granted
	Waits bool               `json:"waits,omitempty"` // a call may wait until people approve it
}

// TasksHolder is a role with tasks.as. The role that it names may use a tool, and so may the
// tasks that callers in the role start.
type TasksHolder struct {
	RoleHolder
	As string `json:"as"` // name of the role in tasks.as
}

// AgentHolder is an agent that may call a tool.
type AgentHolder struct {
	ID   identity.AgentID `json:"id"`
	Name string           `json:"name,omitempty"` // in its task
	Role string           `json:"role"`           // the role's name
	Task identity.TaskID  `json:"task"`

	Waits bool `json:"waits,omitempty"` // a call may wait until people approve it
}
