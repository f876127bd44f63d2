package wire

import (
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// RoleLint compares what a role holds with what the record shows as used. ToolGroups and Grant
// have the smallest groups that would have allowed the same.
type RoleLint struct {
	RoleID    identity.RoleID `json:"roleId"`
	Role      string          `json:"role"` // its name
	Revision  uint64          `json:"revision"`
	CreatedBy string          `json:"createdBy"` // config: the role is changed in its file

	RecordBegins time.Time `json:"recordBegins,omitzero"` // the time of the first event of the record
	From         time.Time `json:"from,omitzero"`         // the span that was searched
	To           time.Time `json:"to,omitzero"`
	FirstCall    time.Time `json:"firstCall,omitzero"` // of the counted ones
	LastCall     time.Time `json:"lastCall,omitzero"`

	Calls      CallCounts `json:"calls"`      // of its agents and callers
	OtherCalls int        `json:"otherCalls"` // allowed ones of others, within what the role uses or grants
	Grants     int        `json:"grants"`     // roles, agents and tasks that were created within what the role uses or grants

	Used    bool `json:"used"`    // the record shows a use; if it does not, nothing is recommended
	Narrows bool `json:"narrows"` // fewer groups would have been enough

	ToolGroups LintSet       `json:"toolGroups"`
	Grant      LintSet       `json:"grant"`
	Findings   []LintFinding `json:"findings"` // of the record, if it shows a use, then the joins

	Tools  []LintTool `json:"tools"`  // that were called, sorted by name
	Denied []LintTool `json:"denied"` // whose calls were denied, sorted by name; at most 100
}

// RoleJoins are the findings of the kind join about a role.
type RoleJoins struct {
	RoleID   identity.RoleID `json:"roleId"`
	Role     string          `json:"role"` // its name
	Findings []LintFinding   `json:"findings"`
}

// LintFinding is one thing that a lint says about a role.
type LintFinding struct {
	// Kind says what to do with the group. unused: the group is not needed. read: its read part is
	// enough. part: the group is enough in place of a group above it. tools: a toolset of Tools is
	// enough in place of the group. join: tools with all flags come together.
	Kind   string             `json:"kind"`
	Set    string             `json:"set"`              // toolGroups, grant, or reach: both together
	Group  toolgroups.GroupID `json:"group,omitempty"`  // absent for join
	Tools  []string           `json:"tools,omitempty"`  // for tools
	Joined []JoinedFlag       `json:"joined,omitempty"` // for join: one for each flag
}

// JoinedFlag is a flag that a set has, and two ways to take it away: leave out the tools, or change the groups.
type JoinedFlag struct {
	Flag       string       `json:"flag"`
	Tool       string       `json:"tool"`       // a tool with the flag
	FlagsKnown bool         `json:"flagsKnown"` // false: the flag counts only because no tool with it has flags that are set
	Tools      []string     `json:"tools"`      // with the flag; at most 20
	ToolCount  int          `json:"toolCount"`  // of all tools with the flag
	ExactTools bool         `json:"exactTools"` // none of them is built in: a toolset, or SERVER/API, can have the others without them
	Changes    []LintChange `json:"changes"`    // of all groups with the flag
}

// LintChange is the removal of a group from a set, or its read part in place of it.
type LintChange struct {
	Set      string             `json:"set"` // toolGroups or grant
	Group    toolgroups.GroupID `json:"group"`
	ReadPart bool               `json:"readPart"` // the read part takes its place
}

// LintSet is what a role uses, or what it may grant.
type LintSet struct {
	Held        toolgroups.GroupSet  `json:"held"`
	Recommended *toolgroups.GroupSet `json:"recommended,omitempty"` // no wider than held; absent if the record shows no use
	HeldTools   int                  `json:"heldTools"`             // while all groups with hours are open
	KeptTools   int                  `json:"keptTools"`             // those of recommended
	Exact       bool                 `json:"exact"`                 // no other choice of groups has fewer tools; false if the search was too long
	Groups      []LintGroup          `json:"groups"`                // the held and the recommended ones; of all groups only those with calls
	Unused      int                  `json:"unusedGroups"`          // those that are not listed
}

// LintGroup is a group that a role holds, or that would be enough in its place.
type LintGroup struct {
	ID        toolgroups.GroupID   `json:"id"`
	Held      bool                 `json:"held"` // it is not only below a held group
	Kept      bool                 `json:"kept"` // it is recommended
	Away      bool                 `json:"away"` // it is not registered, or has another owner than when the role was written
	HasHours  bool                 `json:"hasHours"`
	Tools     int                  `json:"tools"` // while all groups with hours are open
	UsedTools int                  `json:"usedTools"`
	Calls     int                  `json:"calls"`               // of its tools
	Called    []string             `json:"called,omitempty"`    // those of its tools that were called
	Fallbacks []toolgroups.GroupID `json:"fallbacks,omitempty"` // that stand in for it and are not recommended
}

// LintTool is a tool that was called.
type LintTool struct {
	Name       string             `json:"name"`
	Group      toolgroups.GroupID `json:"group,omitempty"` // through which the last call was allowed
	Gone       bool               `json:"gone"`            // it is not registered now
	Calls      int                `json:"calls"`           // of the role's agents and callers
	OtherCalls int                `json:"otherCalls"`      // of others, within what the role uses or grants
}
