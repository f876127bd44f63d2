// Package toolgroups owns the registry of tool groups: which groups there
// are, who brought them, which tools they hold, and the compiled views that
// say what a list of groups lets through.
//
// Owners register groups with a Manager; readers take a Snapshot, which never
// changes, and Compile it into a View: the answer for one role under its
// limits, in every workflow state. The package does not know roles or agents
// (org) and calls no tool (gate).
package toolgroups

import (
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// GroupID names a tool group: ASCII letters, digits, '_', '.', '-' and, for
// hierarchy, '/'; 1 to 128 bytes.
type GroupID string

// Owner says who registered a group. Owners are handed out by the
// composition root, never chosen by a module.
type Owner string

// The owners that are not module instances.
const (
	Builtin Owner = "builtin"
	Config  Owner = "config" // the operator's configuration
)

// The built-in groups. Their ids are reserved.
const (
	OrgManagement GroupID = "org_management"
	Artifact      GroupID = "artifact"
	Workspace     GroupID = "workspace"
	Command       GroupID = "command"
	Network       GroupID = "network"
	Context       GroupID = "context"
	Console       GroupID = "console"
)

// Reserved lists the ids only Builtin may register, sorted.
func Reserved() []GroupID {
	return []GroupID{Artifact, Command, Console, Context, Network, OrgManagement, Workspace}
}

// Group is what one owner brings under one id: tools of its own, for a toolset
// the names of tools that other groups own, and prompts.
type Group struct {
	ID          GroupID
	Description string
	Tools       []tool.Tool
	Refs        []string // bound to the owners the tools have now; unknown names, and those the owner may not reference, stay inert
	Prompts     []*Prompt
}

// Info describes a registered group.
type Info struct {
	ID           GroupID   `json:"id"`
	Description  string    `json:"description"`
	Owner        Owner     `json:"owner"`
	Tools        []string  `json:"tools"` // in registration order
	Count        int       `json:"toolCount"`
	Reserved     bool      `json:"isReserved"`
	RegisteredAt time.Time `json:"registeredAt"`
}

// Warning is a code that goes with a success; "" is none.
type Warning = errcode.Code

// Handle is one registered tool. A tool that is registered again gets another
// Handle, so a View that was compiled before never lets the newcomer through.
type Handle struct {
	Tool       tool.Tool
	Definition tool.Definition // as it was at registration
	Schema     *tool.Schema
	Group      GroupID
	Owner      Owner

	index uint32 // its bit in views
	since uint64 // the revision that brought it; views older than that do not know it
}

// CheckID says what is wrong with a group id, nil when nothing is.
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
