// Package toolgroups is the registry of tool groups and the compiler of
// permissions. It decides which tools a list of groups allows, for the agents of
// one role, in each workflow state.
//
// Data flows through these types:
//
//   - A [Group] is a set of tools under one id. Its [GroupOwner], for example a module,
//     registers it with a [Manager].
//   - A [Snapshot] is the registry at one moment. Every change of the registry
//     publishes a new one. A Snapshot maps the name of a tool to its [ToolHandle].
//   - A [GroupSet] is a choice of groups, such as the groups a role may use. PinOwners
//     turns it into a [PinnedSet], which also remembers the owner of each group.
//   - A [View] is the result of [Snapshot.Compile]: the tools that are in one PinnedSet
//     and in all PinnedSets that limit it.
//   - A [StateView] is the part of a View that is visible in one workflow state. It
//     holds a bit for each ToolHandle, and [StateView.EvaluateTool] tests one of them.
//   - A [ViewRef] is an atomic reference to the current View. All agents with the
//     same permissions share one.
//
// An example:
//
//	m := toolgroups.NewManager(toolgroups.ReservedIDs()...)
//	docs, err := m.ClaimOwner("docs")
//	_, err = docs.RegisterGroup(toolgroups.Group{ID: "docs", Tools: tools})
//	// ...
//	s := m.CurrentSnapshot()
//	view := s.Compile(s.PinOwners(toolgroups.SetOf("docs")))
//	h, _ := s.LookupTool("search")
//	allowed := view.ForState("").EvaluateTool(h).Rule == toolgroups.Granted
//
// Package gate describes the whole chain from an agent to a decision. Package org
// compiles the Views and publishes them: after each change of a role, of an agent's
// limits or of the registry (see [Manager.WatchGroups]).
//
// The package does not know roles or agents, and it does not call tools. It has more than
// sixty exported names. A View is compiled from the unexported parts of Snapshots and
// ToolHandles. A second package could only reach them if they were exported.
package toolgroups

import (
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
)

// GroupID identifies a tool group. It has 1 to 128 bytes: ASCII letters, digits, '_',
// '.', '-', and '/' for hierarchy. CheckID checks it. In sets it may end with ":read", which
// stands for the read part of the group; see [GroupID.ReadPart].
type GroupID string

// GroupOwner identifies who registered a group. Owners are assigned by the composition
// root; a module cannot choose its own. ServerOwner returns the owner of a module.
type GroupOwner string

// The owners that are not modules.
const (
	Builtin GroupOwner = "builtin"
	Config  GroupOwner = "config" // the operator's configuration
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

// DefaultGroup is the id of the group of declared tools that name no group. It is not reserved.
const DefaultGroup GroupID = "default"

// ReservedIDs returns the ids that only the owner Builtin may register, sorted.
func ReservedIDs() []GroupID {
	return []GroupID{Artifact, Command, Console, Context, Network, OrgManagement, Workspace}
}

// IsBuiltinID reports whether an id is one of ReservedIDs, or below one.
func IsBuiltinID(id GroupID) bool {
	first, _, _ := strings.Cut(string(id), "/")
	return slices.Contains(ReservedIDs(), GroupID(first))
}

// Group is the definition of a group, as an owner registers it. A group with Refs is
// a toolset.
type Group struct {
	ID          GroupID
	Description string
	Tools       []tool.Tool // owned by this group; a tool has one owning group

	// Refs are the names of tools that other groups own. A reference is bound to the
	// owner that the tool has at registration. It has no effect if there is no such
	// tool, or if the owner of this group may not reference the tool. Only the owner
	// Config may reference tools of other owners. It may not reference a tool in a
	// reserved group of another owner.
	Refs []string

	// RefOwners binds names in Refs to an owner, whether or not it has such a tool at
	// registration. The reference has an effect whenever the owner has the tool: the tools
	// of an MCP server come and go.
	RefOwners map[string]GroupOwner
	// OwnerRefs are references to all tools of an owner, also to tools that come later.
	OwnerRefs []OwnerRef

	Prompts []Prompt

	// Hours make the group a switch: unless Open is set it has no tools and no prompts. A
	// group with Hours has no Tools, only Refs. A group without Hours is always open.
	Hours Hours
	Open  bool

	// Children are the ids of the groups whose tools and prompts this group holds too, also
	// of groups that are registered later. Only groups of the same owner are children, and
	// children may have children. Sets that contain this group cover its children. The '/'
	// of an id means nothing: only this list makes a child. Reserved groups have none.
	Children []GroupID

	// Fallback are the ids of groups whose tools a caller may use instead, while the tools of
	// this group are unavailable. It grants nothing; see StateView.FallbackTools. Ids
	// without a group have no effect.
	Fallback []GroupID

	// APIs are the names of tools of Tools at the server that owns them, by the tools'
	// names. A role can list such a tool alone, as server/api, and is then offered it under
	// the CallName of this id. A name that forms no id, or whose CallName is the name of
	// another tool, is left out. Only modules are servers (ServerOwner).
	APIs map[string]string

	// OpenAPIs reserves all ids server/api for the owner. It includes ids of tools that the owner
	// does not offer now: the tools of an MCP server come and go.
	OpenAPIs bool
}

// OwnerRef is a reference to the tools of one owner, except those with the names in Except.
// The same rule applies as to Group.Refs: only the owner Config references tools of others.
type OwnerRef struct {
	Owner  GroupOwner
	Except []string
}

// Equal reports whether both are references to the same tools, named in the same order.
func (r OwnerRef) Equal(other OwnerRef) bool {
	return r.Owner == other.Owner && slices.Equal(r.Except, other.Except)
}

// GroupInfo describes a registered group.
type GroupInfo struct {
	ID           GroupID    `json:"id"`
	Description  string     `json:"description"`
	Owner        GroupOwner `json:"owner"`
	Tools        []string   `json:"tools"` // names, in registration order: its own, references, then those of its children; none while it is closed
	Count        int        `json:"toolCount"`
	Reserved     bool       `json:"isReserved"`
	RegisteredAt time.Time  `json:"registeredAt"`
	Children     []GroupID  `json:"children,omitempty"` // as declared; the API shows those that the sender sees
	Fallback     []GroupID  `json:"fallback,omitempty"` // as declared; the API shows those that the sender sees

	Hours *GroupHours `json:"hours,omitempty"`
}

// WarningCode is a code that accompanies a success. It is "" if there is no warning.
type WarningCode = errcode.Code

// ToolHandle is one registration of a tool. A tool that is registered again gets a new
// ToolHandle. So a View that was compiled before does not allow the new tool. A
// ToolHandle does not change; callers must not modify it.
type ToolHandle struct {
	Tool       tool.Tool
	Definition tool.Definition // as it was at registration
	Schema     *argschema.Schema
	Group      GroupID
	Owner      GroupOwner

	original *ToolHandle // the same tool under its own name; nil unless this is the tool of a group server/api
	api      *ToolHandle // the same tool in its group server/api; nil if there is none

	index uint32 // of its bit in Views; reused after the ToolHandle is removed
	since uint64 // the revision that added it; older Views deny it
}

// CheckID returns an error with the code invalid_group_def if id is not a valid group
// id. The error names the part and the byte that are wrong.
func CheckID(id GroupID) error {
	if _, reads := id.WholeGroup(); reads {
		return errcode.New(errcode.InvalidGroupDef, "group id %.140q: the ending %q is reserved for the part of a group that only reads", id, readSuffix)
	}
	if len(id) > 128 {
		return errcode.New(errcode.InvalidGroupDef, "group id %.20q… has %d bytes; at most 128 are allowed", id, len(id))
	}
	parts := strings.Split(string(id), "/")
	for i, part := range parts {
		err := tool.CheckName(part)
		if err == nil {
			continue
		}
		if len(parts) == 1 {
			return errcode.New(errcode.InvalidGroupDef, "group id %s", strings.TrimPrefix(err.Error(), "tool name "))
		}
		return errcode.New(errcode.InvalidGroupDef, "group id %q, part %d: %s", id, i+1, strings.TrimPrefix(err.Error(), "tool "))
	}
	return nil
}
