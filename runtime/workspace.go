package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// workspaces finds and opens the directories that agents and callers work in.
// It is safe for concurrent use.
type workspaces struct {
	base   string                 // Config.Workspaces
	data   string                 // Config.Data
	limits func() StorageLimits   // the active limits
	policy func() WorkspacePolicy // the active policy
	org    *org.Org
	disk   *diskGuard
	quotas workspace.QuotaManager
	shares workspace.ShareStore
}

// OpenWorkspace implements builtin.WorkspaceOpener. Agents of a task with a directory
// share that directory. Otherwise an agent uses the directory of its ancestor
// directly below root. An external caller has its configured workspace, else one directory
// per role.
func (h *ToolHost) OpenWorkspace(ctx context.Context, by identity.Principal) (*workspace.Dir, error) {
	return h.rt.workspaces.open(ctx, by)
}

// place is where a principal works.
type place struct {
	dir      string // resolved
	readOnly bool

	shared string // the configured workspace that is dir or contains it; "" for a directory that has one quota
	holder string // whose quota in shared counts
}

// open opens the workspace of a principal.
func (w *workspaces) open(ctx context.Context, by identity.Principal) (*workspace.Dir, error) {
	at, err := w.placeOf(ctx, by)
	if err != nil {
		return nil, err
	}
	root, err := openResolved(at.dir)
	if err != nil {
		return nil, errWorkspaceRemoved(by, err)
	}
	return &workspace.Dir{Root: root, ReadOnly: at.readOnly, Quota: w.quotaOf(at), DiskSpace: w.disk.freeForPrograms}, nil
}

// quotaOf returns the quota of a place. In a configured workspace each holder has its own.
func (w *workspaces) quotaOf(at place) *workspace.DirQuota {
	limits := w.limits()
	quota := workspace.Quota{Bytes: limits.WorkspaceBytes, Files: limits.WorkspaceFiles}
	if at.shared == "" {
		return w.quotas.DirQuota(at.dir, quota)
	}
	return w.quotas.SharedQuota(at.shared, quota, at.holder, w.shares)
}

// callerFolder contains the workspaces of callers. It is not a task id.
const callerFolder = "callers"

// placeOf returns where a principal works.
func (w *workspaces) placeOf(ctx context.Context, by identity.Principal) (place, error) {
	switch by.Kind {
	case identity.Agent:
		return w.agentPlace(by)
	case identity.Caller:
		return w.callerPlace(ctx, by)
	}
	return place{}, errNoWorkspace(by)
}

// agentPlace returns where an agent works.
func (w *workspaces) agentPlace(by identity.Principal) (place, error) {
	agent, ok := w.org.AgentByID(by.Agent)
	if !ok {
		return place{}, errNoWorkspace(by)
	}
	task, ok := w.org.TaskByID(agent.Task)
	if !ok {
		return place{}, errNoWorkspace(by)
	}
	if task.Workspace != "" {
		return w.sharedPlace(by, &task)
	}
	entry, ok := w.org.TopAncestor(agent.ID)
	if !ok {
		return place{}, errNoWorkspace(by)
	}
	dir, err := w.privateDir(by, string(task.ID), string(entry))
	return place{dir: dir, readOnly: task.ReadOnly}, err
}

// privateDir creates a directory below Config.Workspaces and returns its
// resolved path.
func (w *workspaces) privateDir(by identity.Principal, names ...string) (string, error) {
	if w.base == "" {
		return "", errNoWorkspace(by)
	}
	dir := filepath.Join(names...)
	err := os.MkdirAll(filepath.Join(w.base, dir), 0o700)
	place := ""
	if err == nil { // the base directory may be a symbolic link, what is created in it must not be
		place, err = resolveDir(w.base)
	}
	if err != nil {
		return "", fmt.Errorf("make the workspace of %s: %w", by, err)
	}
	return filepath.Join(place, dir), nil
}

// openResolved opens the directory at a resolved path. It fails if a symbolic
// link leads elsewhere: agents of an enclosing workspace may have created one.
func openResolved(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	name, err := resolveDir(dir)
	if err == nil && name != dir {
		err = fmt.Errorf("path resolves to %s", name)
	}
	var opened, there os.FileInfo
	if err == nil {
		opened, err = root.Stat(".")
	}
	if err == nil {
		there, err = os.Lstat(dir)
	}
	if err == nil && !os.SameFile(opened, there) {
		err = errors.New("directory was replaced while it was opened")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// resolveDir returns the absolute path of a directory without symbolic links.
func resolveDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("resolve workspace: %w", err)
	}
	return dir, nil
}

// checkExcludesData rejects a workspace that contains the data directory: its
// agents could grant themselves every permission and read every task.
func (w *workspaces) checkExcludesData(dir string) error {
	if dir == "" || w.data == "" {
		return nil
	}
	dirInfo, err := os.Stat(dir)
	if err != nil {
		return errcode.Wrap(errcode.ToolUnavailable, err, "open workspace %s", dir)
	}
	data, err := filepath.Abs(w.data)
	if err == nil {
		data, err = filepath.EvalSymlinks(data)
	}
	if err != nil {
		return fmt.Errorf("resolve data directory: %w", err)
	}
	for at := data; ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || os.SameFile(info, dirInfo) {
			return errcode.New(errcode.InsufficientPermissions, "the workspace %s contains the data directory %s; move the data directory with --data DIR or choose another workspace", dir, data)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// errWorkspaceRemoved is the error for a workspace that cannot be opened. It names no path.
func errWorkspaceRemoved(by identity.Principal, cause error) error {
	return errcode.Wrap(errcode.ToolUnavailable, cause, "open workspace of %s: the directory was removed or replaced", by)
}

func errNoWorkspace(by identity.Principal) error {
	return errcode.New(errcode.WorkspaceNotBound, "%s has no workspace", by)
}
