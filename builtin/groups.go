package builtin

import (
	"errors"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Deps is what the built-in tools work with; runtime.ToolHost implements it.
type Deps interface {
	Roles
	Agents
	Messages
	Artifacts
	Workspaces
	Limits
	Contexts
	Hosts
	Console
}

// Options is what the operator's configuration says of the tools that reach
// out of the process. They are asked at each call. The zero Options let
// nothing out: such tools answer tool_unavailable.
type Options struct {
	Launcher *sandbox.Launcher // starts programs; from sandbox.Enter
	Commands func() Commands   // nil is the zero Commands

	Network func() NetworkPolicy // nil lets no request out
}

// Groups makes the seven built-in groups over what they need.
func Groups(n Deps, o Options) ([]toolgroups.Group, error) {
	var b groupSet
	b.add(toolgroups.OrgManagement, "Create roles, spawn and end agents, send messages")(organizationTools(n, n, n))
	b.add(toolgroups.Artifact, "Keep and fetch pieces of work by reference")(artifactTools(n, n, n))
	b.add(toolgroups.Workspace, "Read and write files of the workspace")(workspaceTools(n, n, n))
	b.add(toolgroups.Command, "Run programs and JavaScript")(commandTools(n, o))
	b.add(toolgroups.Network, "Make HTTP requests")(networkTools(n, n, o.Network))
	b.add(toolgroups.Context, "See and compress the conversation")(contextTools(n))
	b.add(toolgroups.Console, "Print to the operator's console")(consoleTools(n))
	return b.groups, b.err
}

// Register makes the built-in groups and registers them.
func Register(m *toolgroups.Manager, n Deps, o Options) error {
	groups, err := Groups(n, o)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := m.Register(toolgroups.Builtin, g); err != nil {
			return err
		}
	}
	return nil
}

type groupSet struct {
	groups []toolgroups.Group
	err    error
}

func (b *groupSet) add(id toolgroups.GroupID, description string) func([]tool.Tool, error) {
	return func(tools []tool.Tool, err error) {
		b.groups = append(b.groups, toolgroups.Group{ID: id, Description: description, Tools: tools})
		b.err = errors.Join(b.err, err)
	}
}
