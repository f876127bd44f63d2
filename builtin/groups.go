package builtin

import (
	"errors"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Deps is everything that the built-in tools need. runtime.ToolHost implements it.
type Deps interface {
	RoleManager
	AgentManager
	MessageSender
	ArtifactStore
	WorkspaceOpener
	CallLimits
	ContextManager
	HostPolicy
	Console
}

// Options configures the tools that start programs or use the network. The
// functions are called at each tool call, so the configuration can change at run
// time. With the zero Options these tools fail with tool_unavailable.
type Options struct {
	Launcher *sandbox.Launcher    // starts programs; from sandbox.Enter, nil allows none
	Commands func() CommandConfig // nil means the zero CommandConfig

	Network func() NetworkPolicy // nil allows no requests
}

// NewGroups creates the built-in groups.
func NewGroups(n Deps, o Options) ([]toolgroups.Group, error) {
	var b groupSet
	b.add(toolgroups.OrgManagement, "Create roles, spawn and end agents, send messages")(organizationTools(n, n, n))
	b.add(toolgroups.Artifact, "Store and fetch pieces of work by reference")(artifactTools(n, n, n))
	b.add(toolgroups.Workspace, "Read and write files of the workspace")(workspaceTools(n, n, n))
	b.add(toolgroups.Command, "Run programs and JavaScript")(commandTools(n, o))
	b.add(toolgroups.Network, "Make HTTP requests")(networkTools(n, n, o.Network))
	b.add(toolgroups.Context, "See and compress the conversation")(contextTools(n))
	b.add(toolgroups.Console, "Print to the operator's console")(consoleTools(n))
	return b.groups, b.err
}

// RegisterGroups creates the built-in groups and registers them with m. It claims the
// owner Builtin and drops it, so that nothing can change the groups afterwards.
func RegisterGroups(m *toolgroups.Manager, n Deps, o Options) error {
	groups, err := NewGroups(n, o)
	if err != nil {
		return err
	}
	owner, err := m.ClaimOwner(toolgroups.Builtin)
	if err != nil {
		return err
	}
	return m.Update(func(tx *toolgroups.Tx) error {
		for _, g := range groups {
			if _, err := tx.RegisterGroup(owner, g); err != nil {
				return err
			}
		}
		return nil
	})
}

// groupSet collects groups and the errors of creating them.
type groupSet struct {
	groups []toolgroups.Group
	err    error
}

// add returns a function that adds a group with the given tools. It takes the two
// results of the functions that create tools.
func (s *groupSet) add(id toolgroups.GroupID, description string) func([]tool.Tool, error) {
	return func(tools []tool.Tool, err error) {
		s.groups = append(s.groups, toolgroups.Group{ID: id, Description: description, Tools: tools})
		s.err = errors.Join(s.err, err)
	}
}
