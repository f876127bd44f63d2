package wire

import (
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Role is a role's record. Dangling lists the groups of the role that have no
// effect, because they are not registered or have another owner than when the
// role was written.
type Role struct {
	org.Role
	Dangling []toolgroups.GroupID `json:"dangling,omitempty"` // in the order of toolGroups, then grant
}

// RoleRequest describes a new role or changes to a role. Absent fields get the
// defaults of org.CreateRole, or stay unchanged.
type RoleRequest struct {
	Name   string               `json:"name,omitempty"`
	Prompt string               `json:"rolePrompt,omitempty"`
	Model  string               `json:"llmServiceId,omitempty"`
	Use    *toolgroups.GroupSet `json:"toolGroups,omitempty"`
	Grant  *toolgroups.GroupSet `json:"grant,omitempty"`
	Limits org.AgentLimits      `json:"limits,omitzero"`

	AllowUnknown bool `json:"allowUnknown,omitempty"` // accepts groups that do not exist; they have no effect until the role is written again
}

// RoleChange is a changed role and the effect of the change on its agents.
type RoleChange struct {
	Role Role               `json:"role"`
	Diff org.PermissionDiff `json:"diff"`
}
