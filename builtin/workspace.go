package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// workspaceTools returns the four file tools. write_file can copy content from
// artifacts in a.
func workspaceTools(w Workspaces, a Artifacts, l Limits) ([]tool.Tool, error) {
	f := files{w, a, l}
	var s toolBuilder
	s.add(tool.New("read_file", readFileText, withErrorCode(f.read), toolOptions(tool.ReadOnly, readFileInput)))
	s.add(tool.New("write_file", writeFileText, withErrorCode(f.write), toolOptions(tool.Idempotent, writeFileInput)))
	s.add(tool.New("list_files", listFilesText, withErrorCode(f.list), toolOptions(tool.ReadOnly, listFilesInput)))
	s.add(tool.New("get_workspace_info", workspaceInfoText, withErrorCode(f.info), toolOptions(tool.ReadOnly, workspaceInfoInput)))
	return s.tools, s.err
}

// files handles the calls of the workspace group.
//
// Two layers keep paths inside the workspace. cleanPath rejects names whose text
// escapes. All file access goes through os.Root, which rejects symlinks that
// escape.
type files struct {
	workspaces Workspaces
	artifacts  Artifacts
	limits     Limits
}

// inWorkspace calls do with the caller's open workspace and the cleaned name. The
// returned error has an error code, except for context errors.
func inWorkspace[Out any](ctx context.Context, f files, name string, do func(*Workspace, string) (Out, error)) (Out, error) {
	var none Out
	name, err := cleanPath(name)
	if err != nil {
		return none, err
	}
	ws, err := openWorkspace(ctx, f.workspaces)
	if err != nil {
		return none, err
	}
	defer ws.Root.Close()
	out, err := do(ws, name)
	if err != nil {
		return none, fileError(ws.Root, name, err)
	}
	return out, nil
}

// openWorkspace opens the caller's workspace.
func openWorkspace(ctx context.Context, w Workspaces) (*Workspace, error) {
	by := currentCall(ctx).By
	if by.Key() == "" { // this principal has no identity that a folder could belong to
		return nil, errcode.New(errcode.WorkspaceNotBound, "only agents and callers with a role have a workspace")
	}
	return w.Workspace(ctx, by)
}

// cleanPath returns name as a clean relative path with slashes. It rejects names
// that escape the workspace.
func cleanPath(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", fileOpError(errcode.InvalidArguments, "path contains a NUL byte")
	}
	if escapesLexically(name) {
		return "", errEscapes(name)
	}
	return path.Clean(name), nil
}

// escapesLexically reports whether the text of name leads out of a folder. It
// interprets name both as a Unix and as a Windows path, since a workspace may be
// moved between systems.
func escapesLexically(name string) bool {
	windows := strings.ReplaceAll(name, `\`, "/")
	return !fs.ValidPath(path.Clean(name)) || !fs.ValidPath(path.Clean(windows)) || hasDrive(name)
}

// hasDrive reports whether name begins with a Windows drive letter.
func hasDrive(name string) bool {
	return len(name) >= 2 && name[1] == ':' && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z'
}

// fileError returns err with an error code and a text for models. Errors that have
// a code, and context errors, are returned unchanged.
func fileError(root *os.Root, name string, err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, escapeError(root)):
		return errEscapes(name)
	case errors.Is(err, fs.ErrNotExist):
		return fileOpError(errcode.FileNotFound, "%q does not exist in the workspace; list_files shows what exists", name)
	case errors.Is(err, fs.ErrPermission):
		return fileOpError(errcode.PermissionDenied, "the system does not permit access to %q", name)
	case errors.Is(err, syscall.ENOTDIR):
		return fileOpError(errcode.NotADirectory, "%q, or a folder on the way to it, is not a directory", name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fileOpError(errcode.InvalidArguments, "path of %d bytes, or a name in it, is too long", len(name))
	}
	return errcode.Wrap(errcode.ToolExecutionFailed, err, "%q: %s", name, systemReason(err)).With("ok", false)
}

// systemReason returns the text of the system error in err. It omits paths of the
// host that err may contain.
func systemReason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "rejected by the system"
}

// escapeError returns the error that root returns for paths that escape it.
// Package os does not export it, so it is provoked.
func escapeError(root *os.Root) error {
	_, err := root.Lstat("..")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// errEscapes returns the error for a path that leads out of the workspace.
func errEscapes(name string) error {
	return fileOpError(errcode.PathTraversal,
		"%q leads out of the workspace; give a relative path inside it, such as notes/plan.md", name)
}

// fileOpError returns the error of a file operation, with ok:false for the model.
func fileOpError(code errcode.Code, format string, args ...any) error {
	return errcode.New(code, format, args...).With("ok", false)
}

// checkRegular rejects files that are not regular: reading a pipe would block, and
// opening a device may have an effect.
func checkRegular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fileOpError(errcode.InvalidArguments, "%q is a directory, not a file; list_files shows what is in it", name)
	}
	return fileOpError(errcode.PermissionDenied, "%q is not a regular file or directory", name)
}

// pathProperty is the schema of a path in all tools.
const pathProperty = `{
			"type": "string",
			"description": "Path relative to the workspace, with slashes; it may not lead out of it.",
			"minLength": 1,
			"maxLength": 4096
		}`
