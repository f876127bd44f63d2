package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Workspace implements builtin.Workspaces: the task's directory, which serves
// all its agents, or else that of the agent's ancestor directly below root.
func (rt *Runtime) Workspace(_ context.Context, id identity.AgentID) (*builtin.Workspace, error) {
	agent, ok := rt.org.Agent(id)
	if !ok {
		return nil, unbound(id)
	}
	task, ok := rt.org.Task(agent.Task)
	if !ok {
		return nil, unbound(id)
	}
	dir := task.Workspace
	if dir == "" {
		entry, ok := rt.org.Entry(id)
		if !ok || rt.config.Workspaces == "" {
			return nil, unbound(id)
		}
		dir = filepath.Join(rt.config.Workspaces, string(task.ID), string(entry))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the workspace of agent %s: %w", id, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errcode.Wrap(errcode.ToolUnavailable, err, "the workspace of agent %q cannot be opened", id)
	}
	return &builtin.Workspace{Root: root, ReadOnly: task.ReadOnly}, nil
}

func unbound(id identity.AgentID) error {
	return errcode.New(errcode.WorkspaceNotBound, "agent %q has no workspace", id)
}

// printable takes from a text what could act on a terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
