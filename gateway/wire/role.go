package wire

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Role is a role's record. Tools lists what its agents and callers may call, if one role is
// shown. Dangling lists the groups of the role that have no effect. They are not
// registered, or have another owner than when the role was written.
type Role struct {
	org.Role
	Dangling []toolgroups.GroupID `json:"dangling,omitempty"` // in the order of toolGroups, then grant
	Tools    []RoleTool           `json:"tools,omitempty"`    // sorted by name
	TasksAs  *BoundingRole        `json:"tasksAs,omitempty"`  // the role in tasks.as; nil if there is none

	// Unchecked lists the fields that the request has set and that could not be checked:
	// llmServiceId while no configuration is active. Only answers to requests that write
	// a role have it.
	Unchecked []string `json:"unchecked,omitempty"`

	// Reach is what agents would reach through the agents that they spawn, as in RoleChange. Only
	// the answer to dryRun of a new role has it.
	Reach []org.ReachDiff `json:"reach,omitempty"`
}

// BoundingRole is the role that bounds the tasks of callers in another role. A role that is
// not active bounds them by nothing: they are denied everything.
type BoundingRole struct {
	Name   string              `json:"name"`
	Status org.LifecycleStatus `json:"status"`
}

// TasksRequest says what bounds the tasks that callers in a role start.
type TasksRequest struct {
	As string `json:"as"` // id or exact name of a role
}

// RoleTool is a tool that a role has, in some workflow state or in all.
type RoleTool struct {
	Name   string             `json:"name"`
	Group  toolgroups.GroupID `json:"group"` // through which the role has it
	Effect string             `json:"effect"`
	ToolFlags
}

// RoleRequest describes a new role or changes to a role. Absent fields get the
// defaults of org.CreateRole, or stay unchanged. In a change, a field that is
// null in JSON gets its default; Defaults lists these fields.
type RoleRequest struct {
	Name        string               `json:"name,omitempty"`         // unique among the active roles
	Description string               `json:"description,omitempty"`  // one line: what its agents are for
	Prompt      string               `json:"rolePrompt,omitempty"`   // instructions for its agents
	Model       string               `json:"llmServiceId,omitempty"` // a declared model; default: that of the organization
	Use         *toolgroups.GroupSet `json:"toolGroups,omitempty"`   // what its agents and callers may call
	Grant       *toolgroups.GroupSet `json:"grant,omitempty"`        // what its agents may put into roles they create
	Limits      org.AgentLimits      `json:"limits,omitzero"`        // of each of its agents

	Pattern   org.CollaborationPattern `json:"pattern,omitempty"`   // how its agents work
	ToolGated *toolgroups.Gating       `json:"toolGated,omitempty"` // its agents must answer from tools alone
	Server    *string                  `json:"server,omitempty"`    // restricts its agents to the tools of this server; "" is no restriction
	Tasks     *TasksRequest            `json:"tasks,omitempty"`     // what bounds the tasks that its callers start
	Result    *ResultSpec              `json:"result,omitempty"`    // what the results of its agents must be

	Agent  *org.AskSettings `json:"agent,omitempty"`  // lets its callers ask its agents
	States []string         `json:"states,omitempty"` // workflow states in which requests of its callers may begin
	Bind   json.RawMessage  `json:"bind,omitempty"`   // bounds the arguments of tools wherever the role uses or grants them

	AllowUnknown bool `json:"allowUnknown,omitempty"` // accepts groups, a server and a model that do not exist; groups have no effect until the role is written again

	Defaults []org.RoleField `json:"-"` // fields to set to their default: null in JSON
	Revision uint64          `json:"-"` // changes the role only if it has this revision: the header If-Match; 0 is any
}

// NullableRoleFields are the fields of a RoleRequest that may be null.
func NullableRoleFields() []string {
	return []string{"description", "rolePrompt", "llmServiceId", "toolGroups", "grant", "limits", "pattern", "toolGated", "server", "tasks", "result", "agent", "states", "bind"}
}

// NullableLimits are the limits of a RoleRequest that may be null.
func NullableLimits() []string { return []string{"rounds", "budget", "depth", "hires", "seconds"} }

// MarshalJSON implements json.Marshaler. It writes the fields in Defaults as null.
func (q RoleRequest) MarshalJSON() ([]byte, error) {
	type plain RoleRequest
	text, err := json.Marshal(plain(q))
	if err != nil || len(q.Defaults) == 0 {
		return text, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for _, f := range q.Defaults {
		if err := setNull(fields, f); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// setNull sets a field of a request to null. A limit is a member of limits, unless all are null.
func setNull(fields map[string]json.RawMessage, f org.RoleField) (err error) {
	limit, isLimit := strings.CutPrefix(string(f), "limits.")
	if !isLimit {
		fields[string(f)] = json.RawMessage("null")
		return nil
	}
	limits := map[string]json.RawMessage{}
	if text := fields["limits"]; string(text) == "null" {
		return nil
	} else if text != nil {
		if err := json.Unmarshal(text, &limits); err != nil {
			return err
		}
	}
	limits[limit] = json.RawMessage("null")
	fields["limits"], err = json.Marshal(limits)
	return err
}

// RevisionTag returns the ETag of a revision of a role.
func RevisionTag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// RoleChange is a changed role and the effect of the change. Reach is what agents would reach
// through the agents that they spawn, sorted by the name of their role. Only an answer to dryRun
// has it.
type RoleChange struct {
	Role    Role               `json:"role"`
	Diff    org.PermissionDiff `json:"diff"`
	Reach   []org.ReachDiff    `json:"reach,omitempty"`
	Refusal string             `json:"refusal,omitempty"` // of a dryRun of PATCH: the change would be rejected, since the role is changed in its file
}
