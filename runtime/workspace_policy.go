package runtime

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// Workspace is a directory that the operator has configured for callers and tasks. The zero
// Workspace means no workspace.
type Workspace struct {
	Name     string // by which requests name it; "" if they cannot
	Path     string // as ResolveWorkspace returns it
	ReadOnly bool
}

// TokenWorkspace is the workspace of the holder of a token.
type TokenWorkspace struct {
	Workspace
	Role string // name of the token's configured role; "" for a token of the operator
}

// WorkspacePolicy says which directories callers work in. A caller has the workspace of its
// token, else the workspace of its role, else the default. A caller without any of them has
// a private directory in each role. With the zero WorkspacePolicy, all callers have private
// directories.
type WorkspacePolicy struct {
	Named   map[string]Workspace // by name; requests of the operator may name all of them
	Default Workspace
	Roles   map[string]Workspace // by the name of a configured role
	Tokens  map[identity.UserName]TokenWorkspace
}

// workspaceOf returns the configured workspace of an external caller, the zero Workspace if
// it has none.
func (w *workspaces) workspaceOf(caller identity.Principal) Workspace {
	return w.workspaceIn(caller, caller.Role)
}

// taskWorkspaceOf returns the configured workspace of the tasks of an external caller: its
// own. If its role has tasks.as, that role's workspace takes the place of its role's.
func (w *workspaces) taskWorkspaceOf(caller identity.Principal) Workspace {
	if as, given := w.org.TaskRole(caller.Role); given {
		return w.workspaceIn(caller, as.ID)
	}
	return w.workspaceOf(caller)
}

// workspaceIn returns the workspace of a caller's token, else the workspace of a role, else the
// default.
func (w *workspaces) workspaceIn(caller identity.Principal, id identity.RoleID) Workspace {
	p := w.policy()
	if t, ok := p.Tokens[caller.User]; ok && t.Path != "" && (t.Role == "" || w.isConfigured(t.Role, caller.Role)) {
		return t.Workspace
	}
	if role, ok := w.org.RoleByID(id); ok && p.Roles[role.Name].Path != "" && w.isConfigured(role.Name, role.ID) {
		return p.Roles[role.Name]
	}
	return p.Default
}

// isConfigured reports whether id is the role that the configuration created under a name.
func (w *workspaces) isConfigured(name string, id identity.RoleID) bool {
	role, ok := w.org.ConfiguredRole(name)
	return ok && role.ID == id
}

// sessionDirKey is the context key for the directory of WithSessionDir.
type sessionDirKey struct{}

// WithSessionDir returns a context for calls and tasks of one external caller. They use dir
// in place of the caller's configured workspace. Calls are denied if dir is not that
// workspace or a directory below it. Tasks that work in the workspace of the role in tasks.as
// do not use dir. dir is a path as ResolveWorkspace returns it.
func WithSessionDir(ctx context.Context, dir string) context.Context {
	return context.WithValue(ctx, sessionDirKey{}, dir)
}

// callerPlace returns where an external caller works.
func (w *workspaces) callerPlace(ctx context.Context, by identity.Principal) (place, error) {
	if err := org.CheckCaller(by); err != nil {
		return place{}, err
	}
	ws := w.workspaceOf(by)
	at := place{dir: ws.Path, readOnly: ws.ReadOnly, shared: ws.Path, holder: by.Key()}
	narrowed, _ := ctx.Value(sessionDirKey{}).(string)
	switch {
	case narrowed != "" && !isBelow(ws.Path, narrowed):
		return place{}, errWorkspaceNotAllowed(by)
	case narrowed != "":
		at.dir = narrowed
	case ws.Path == "":
		dir, err := w.privateDir(by, callerFolder, by.Key())
		return place{dir: dir}, err
	}
	return at, w.checkWithoutPath(by, at.dir)
}

// operatorHolder is the holder of what the operator's tasks add to configured workspaces.
const operatorHolder = "operator"

// sharedPlace returns where all agents of a task with a directory work. The task of an
// external caller may use it as long as the caller may. A task may use a named workspace
// as long as it is configured.
func (w *workspaces) sharedPlace(by identity.Principal, task *org.Task) (place, error) {
	caller, external := task.ExternalCaller()
	if !external && task.WorkspaceName == "" { // the operator named a path
		return place{dir: task.Workspace, readOnly: task.ReadOnly}, w.checkExcludesData(task.Workspace)
	}
	allowed, holder := w.policy().Named[task.WorkspaceName], operatorHolder
	if external {
		allowed, holder = w.taskWorkspaceOf(caller), caller.Key()
	}
	if !isBelow(allowed.Path, task.Workspace) {
		return place{}, errWorkspaceNotAllowed(by)
	}
	return place{task.Workspace, task.ReadOnly || allowed.ReadOnly, allowed.Path, holder}, w.checkWithoutPath(by, task.Workspace)
}

// assign sets the directory of a task to start.
//
// Errors:
//
//   - WorkspaceNotBound if the caller may not use the workspace that the task names,
//     whether or not the workspace exists
//   - InsufficientPermissions if an external caller names a path, or if the workspace
//     contains the data directory
func (w *workspaces) assign(ctx context.Context, spec *org.TaskSpec) error {
	if spec.Caller.Kind == identity.Caller {
		return w.assignOfCaller(ctx, spec)
	}
	ws := Workspace{Name: spec.WorkspaceName, Path: spec.Workspace}
	switch {
	case ws.Name != "" && ws.Path != "":
		return errcode.New(errcode.InvalidArguments, "start a task: it has either the name of a workspace or a directory").With("field", "workspace")
	case ws.Name != "":
		if ws = w.policy().Named[ws.Name]; ws.Path == "" {
			return errUnknownWorkspace(spec.WorkspaceName)
		}
	case ws.Path == "":
		return nil
	default:
		if err := w.checkExcludesData(ws.Path); err != nil {
			return err
		}
		var err error // symbolic links are resolved once: a later change of a link does not move the task
		if ws.Path, err = resolveDir(ws.Path); err != nil {
			return err
		}
		spec.Workspace = ws.Path
	}
	spec.Assigned = org.AssignedDir(ws)
	return w.checkExcludesData(ws.Path)
}

// assignOfCaller sets the directory of a task of an external caller: its configured
// workspace, if it has one.
func (w *workspaces) assignOfCaller(ctx context.Context, spec *org.TaskSpec) error {
	if spec.Workspace != "" {
		return errcode.New(errcode.InsufficientPermissions, "start a task: only the operator may name a directory").With("field", "workspace")
	}
	ws := w.taskWorkspaceOf(spec.Caller)
	if spec.WorkspaceName != "" && (ws.Path == "" || ws.Name != spec.WorkspaceName) {
		return errUnknownWorkspace(spec.WorkspaceName)
	}
	narrowed, _ := ctx.Value(sessionDirKey{}).(string)
	switch {
	case narrowed == "":
	case isBelow(ws.Path, narrowed):
		ws.Path = narrowed
	case !isBelow(w.workspaceOf(spec.Caller).Path, narrowed):
		return errWorkspaceNotAllowed(spec.Caller)
	} // else tasks.as sets another workspace for the task, in which the directory is not
	if ws.Path == "" {
		return nil
	}
	spec.Assigned = org.AssignedDir(ws)
	return w.checkWithoutPath(spec.Caller, ws.Path)
}

// ResolveWorkspace returns the absolute path of a directory without symbolic links. Configured
// workspaces are resolved once: a later change of a link does not move them.
//
// Errors: InsufficientPermissions if the directory contains the data directory or is in it.
func (rt *Runtime) ResolveWorkspace(dir string) (string, error) {
	dir, err := resolveDir(dir)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", cmp.Or(err, fmt.Errorf("%s is not a directory", dir))
	}
	if err := rt.workspaces.checkExcludesData(dir); err != nil {
		return "", err
	}
	return dir, rt.workspaces.checkOutsideData(dir)
}

// checkOutsideData rejects a configured workspace in the data directory, where the private
// directories of callers are.
func (w *workspaces) checkOutsideData(dir string) error {
	for _, ours := range []string{w.data, w.base} {
		if ours == "" {
			continue
		}
		if name, err := resolveDir(ours); err == nil && isBelow(name, dir) {
			return errcode.New(errcode.InsufficientPermissions, "the workspace %s is in the data directory %s; choose another", dir, name)
		}
	}
	return nil
}

// IsDefaultWorkspace reports whether a directory is the workspace of callers whose token and
// role have none.
func (rt *Runtime) IsDefaultWorkspace(dir string, readOnly bool) bool {
	dir, err := resolveDir(dir)
	ws := rt.workspaces.policy().Default
	return err == nil && ws.Path == dir && ws.ReadOnly == readOnly
}

// IsInWorkspace reports whether a directory is the configured workspace of an external caller
// or below it. dir is a path as ResolveWorkspace returns it.
func (rt *Runtime) IsInWorkspace(caller identity.Principal, dir string) bool {
	return isBelow(rt.workspaces.workspaceOf(caller).Path, dir)
}

// checkWithoutPath is checkExcludesData for a principal that must not learn paths of the host. It also
// requires that the directory is still there.
func (w *workspaces) checkWithoutPath(by identity.Principal, dir string) error {
	name, err := resolveDir(dir)
	if err == nil && name != dir {
		err = fmt.Errorf("path resolves to %s", name)
	}
	if err == nil {
		err = w.checkExcludesData(dir)
	}
	if err != nil {
		return errWorkspaceRemoved(by, err)
	}
	return nil
}

// isBelow reports whether a resolved path is dir or below it. Nothing is below "".
func isBelow(dir, path string) bool {
	if dir == "" || path == "" {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// errUnknownWorkspace is the error for a name that the caller may not use, whether or not
// there is such a workspace.
func errUnknownWorkspace(name string) error {
	return errcode.New(errcode.WorkspaceNotBound, "start a task: there is no workspace %.200q", name).With("field", "workspace")
}

// errWorkspaceNotAllowed is the error for a directory that its caller may not use any more.
func errWorkspaceNotAllowed(by identity.Principal) error {
	return errcode.New(errcode.WorkspaceNotBound, "%s may not use its workspace any more: the configuration has changed", by)
}
