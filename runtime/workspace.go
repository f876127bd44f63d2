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
	"github.com/rolecall/rolecall/org"
)

// Workspace implements builtin.Workspaces: of an agent the task's directory,
// which serves all its agents, or else that of the agent's ancestor directly
// below root; of a caller from outside one of its own for each of its roles.
func (rt *Runtime) Workspace(_ context.Context, by identity.Principal) (*builtin.Workspace, error) {
	dir, readOnly, err := rt.workspaceOf(by)
	if err != nil {
		return nil, err
	}
	root, err := openAt(dir)
	if err != nil {
		return nil, errcode.Wrap(errcode.ToolUnavailable, err, "the workspace of %s cannot be opened: it is gone, or something else is in its place", by)
	}
	return &builtin.Workspace{Root: root, ReadOnly: readOnly, Space: rt.quotas.Of(dir, rt.quota())}, nil
}

// callerFolder holds the workspaces of callers; no task's id is its name.
const callerFolder = "callers"

// workspaceOf gives the resolved name of a principal's directory.
func (rt *Runtime) workspaceOf(by identity.Principal) (dir string, readOnly bool, err error) {
	switch by.Kind {
	case identity.Agent:
		return rt.agentDir(by)
	case identity.Caller:
		if err := org.CheckCaller(by); err != nil {
			return "", false, err
		}
		dir, err = rt.privateDir(by, callerFolder, by.Key())
		return dir, false, err
	}
	return "", false, errNoWorkspace(by)
}

func (rt *Runtime) agentDir(by identity.Principal) (dir string, readOnly bool, err error) {
	agent, ok := rt.org.Agent(by.Agent)
	if !ok {
		return "", false, errNoWorkspace(by)
	}
	task, ok := rt.org.Task(agent.Task)
	if !ok {
		return "", false, errNoWorkspace(by)
	}
	if task.Workspace != "" {
		return task.Workspace, task.ReadOnly, rt.mayServe(task.Workspace)
	}
	entry, ok := rt.org.TopAncestor(agent.ID)
	if !ok {
		return "", false, errNoWorkspace(by)
	}
	dir, err = rt.privateDir(by, string(task.ID), string(entry))
	return dir, task.ReadOnly, err
}

// privateDir makes a directory where the runtime makes them.
func (rt *Runtime) privateDir(by identity.Principal, names ...string) (string, error) {
	if rt.config.Workspaces == "" {
		return "", errNoWorkspace(by)
	}
	dir := filepath.Join(names...)
	err := os.MkdirAll(filepath.Join(rt.config.Workspaces, dir), 0o700)
	place := ""
	if err == nil { // the place may be behind a link, what is made in it not
		place, err = resolved(rt.config.Workspaces)
	}
	if err != nil {
		return "", fmt.Errorf("make the workspace of %s: %w", by, err)
	}
	return filepath.Join(place, dir), nil
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
	return builtin.Quota{Bytes: rt.rules.Load().Storage.WorkspaceBytes, Files: rt.rules.Load().Storage.WorkspaceFiles}
}

// CanCall implements builtin.Limits.
func (rt *Runtime) CanCall(by identity.Principal, tool string) bool {
	return rt.gate.Subject(by).Authorize(tool).Allowed()
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

func errNoWorkspace(by identity.Principal) error {
	return errcode.New(errcode.WorkspaceNotBound, "%s has no workspace", by)
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
