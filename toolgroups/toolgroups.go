// Package toolgroups is the registry of tool groups and the compiler of
// permissions. It decides which tools a list of groups allows, for the agents of
// one role, in each workflow state.
//
// Data flows through these types:
//
//   - A [Group] is a set of tools under one id. Its [Owner], for example a module,
//     registers it with a [Manager].
//   - A [Snapshot] is the registry at one moment. Every change of the registry
//     publishes a new one. A Snapshot maps the name of a tool to its [Handle].
//   - A [Set] is a choice of groups, such as the groups a role may use. Bind
//     turns it into a [BoundSet], which also remembers the owner of each group.
//   - A [View] is the result of [Snapshot.Compile]: the tools that are in one BoundSet
//     and in all BoundSets that limit it.
//   - A [StateView] is the part of a View that is visible in one workflow state. It
//     holds a bit for each Handle, and [StateView.Decide] tests one of them.
//   - A [ViewRef] is an atomic reference to the current View. All agents with the
//     same permissions share one.
//
// An example:
//
//	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
//	_, err := m.Register("module:docs", toolgroups.Group{ID: "docs", Tools: tools})
//	// ...
//	s := m.Snapshot()
//	view := s.Compile(s.Bind(toolgroups.Of("docs")))
//	h, _ := s.Lookup("search")
//	allowed := view.ForState("").Decide(h).Rule == toolgroups.Granted
//
// Package gate describes the whole chain from an agent to a decision. Package org
// compiles the Views and publishes them: after each change of a role, of an agent's
// limits or of the registry (see [Manager.Watch]).
//
// The package does not know roles or agents, and it does not call tools.
package toolgroups

import (
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
)

// GroupID identifies a tool group. It has 1 to 128 bytes: ASCII letters, digits, '_',
// '.', '-', and '/' for hierarchy. CheckID checks it.
type GroupID string

// Owner identifies who registered a group. Owners are assigned by the composition
// root; a module cannot choose its own. Server returns the owner of a module.
type Owner string

// The owners that are not modules.
const (
	Builtin Owner = "builtin"
	Config  Owner = "config" // the operator's configuration
)

// The ids of the built-in groups. They are reserved.
const (
	OrgManagement GroupID = "org_management"
	Artifact      GroupID = "artifact"
	Workspace     GroupID = "workspace"
	Command       GroupID = "command"
	Network       GroupID = "network"
	Context       GroupID = "context"
	Console       GroupID = "console"
)

// ReservedIDs returns the ids that only the owner Builtin may register, sorted.
func ReservedIDs() []GroupID {
	return []GroupID{Artifact, Command, Console, Context, Network, OrgManagement, Workspace}
}

// Group is the definition of a group, as an owner registers it. A group with Refs is
// a toolset.
type Group struct {
	ID          GroupID
	Description string
	Tools       []tool.Tool // owned by this group; a tool has one owning group

	// Refs are the names of tools that other groups own. A reference is bound to the
	// owner that the tool has at registration. It has no effect if there is no such
	// tool, or if the owner of this group may not reference it: only the owner Config
	// references tools of other owners, and never those of a reserved group.
	Refs []string

	Prompts []*Prompt
}

// GroupInfo describes a registered group.
type GroupInfo struct {
	ID           GroupID   `json:"id"`
	Description  string    `json:"description"`
	Owner        Owner     `json:"owner"`
	Tools        []string  `json:"tools"` // names, in registration order, references last
	Count        int       `json:"toolCount"`
	Reserved     bool      `json:"isReserved"`
	RegisteredAt time.Time `json:"registeredAt"`
}

// Warning is a code that accompanies a success. It is "" if there is no warning.
type Warning = errcode.Code

// Handle is one registration of a tool. A tool that is registered again gets a new
// Handle, so that a View that was compiled before does not allow the new one. A
// Handle does not change; callers must not modify it.
type Handle struct {
	Tool       tool.Tool
	Definition tool.Definition // as it was at registration
	Schema     *argschema.Schema
	Group      GroupID
	Owner      Owner

	index uint32 // of its bit in Views; reused after the Handle is removed
	since uint64 // the revision that added it; older Views deny it
}

// CheckID returns an error with the code invalid_group_def if id is not a valid group
// id. The error names the part and the byte that are wrong.
func CheckID(id GroupID) error {
	if len(id) > 128 {
		return errcode.New(errcode.InvalidGroupDef, "group id %.20q… has %d bytes; at most 128 are allowed", id, len(id))
	}
	for i, part := range strings.Split(string(id), "/") {
		if err := tool.CheckName(part); err != nil {
			return errcode.New(errcode.InvalidGroupDef, "group id %q, part %d: %s", id, i+1, strings.TrimPrefix(err.Error(), "tool "))
		}
	}
	return nil
}
