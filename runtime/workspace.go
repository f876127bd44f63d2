package runtime

import (
	"context"
	"errors"
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
	if err := rt.mayServe(dir); err != nil {
		return nil, err
	}
	if dir == "" {
		entry, ok := rt.org.Entry(id)
		if !ok || rt.config.Workspaces == "" {
			return nil, unbound(id)
		}
		dir = filepath.Join(rt.config.Workspaces, string(task.ID), string(entry))
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			dir, err = resolved(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("make the workspace of agent %s: %w", id, err)
		}
	}
	root, err := openAt(dir)
	if err != nil {
		return nil, errcode.Wrap(errcode.ToolUnavailable, err, "the workspace of agent %q cannot be opened: it is gone, or something else is in its place", id)
	}
	return &builtin.Workspace{Root: root, ReadOnly: task.ReadOnly, Space: rt.spaces.Of(dir, rt.quota())}, nil
}

// openAt opens the directory that is at a resolved name, and none that a link
// leads to: agents of a workspace around this one may have put it there.
func openAt(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	name, err := resolved(dir)
	if err == nil && name != dir {
		err = fmt.Errorf("it leads to %s", name)
	}
	var opened, there os.FileInfo
	if err == nil {
		opened, err = root.Stat(".")
	}
	if err == nil {
		there, err = os.Lstat(dir)
	}
	if err == nil && !os.SameFile(opened, there) {
		err = errors.New("it was replaced meanwhile")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// resolved gives the one name of a directory.
func resolved(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find the workspace: %w", err)
	}
	return dir, nil
}

func (rt *Runtime) quota() builtin.Quota {
	return builtin.Quota{Bytes: rt.config.Storage.WorkspaceBytes, Files: rt.config.Storage.WorkspaceFiles}
}

// May implements builtin.Bounds.
func (rt *Runtime) May(by identity.Principal, tool string) bool {
	return rt.gate.Bind(by).Authorize(tool).Allowed()
}

// mayServe refuses a workspace that holds the data directory: who may write
// there could write itself every right, and read every other task.
func (rt *Runtime) mayServe(dir string) error {
	if dir == "" || rt.config.Data == "" {
		return nil
	}
	workspace, err := os.Stat(dir)
	if err != nil {
		return errcode.Wrap(errcode.ToolUnavailable, err, "the workspace %s cannot be opened", dir)
	}
	data, err := filepath.Abs(rt.config.Data)
	if err == nil {
		data, err = filepath.EvalSymlinks(data)
	}
	if err != nil {
		return fmt.Errorf("find the data directory: %w", err)
	}
	for at := data; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || os.SameFile(info, workspace) {
			return errcode.New(errcode.InsufficientPermissions, "the workspace %s holds the data directory %s; put that elsewhere with --data DIR, or work in a folder beside it", dir, data)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
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
