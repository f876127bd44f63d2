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

// workspaceTools makes the four file tools over w; a is where write_file may
// take content from.
func workspaceTools(w Workspaces, a Artifacts, b Limits) ([]tool.Tool, error) {
	f := files{w, a, b}
	var s toolBuilder
	s.add(tool.New("read_file", readFileText, guarded(f.read), options(tool.ReadOnly, readFileInput)))
	s.add(tool.New("write_file", writeFileText, guarded(f.write), options(tool.Idempotent, writeFileInput)))
	s.add(tool.New("list_files", listFilesText, guarded(f.list), options(tool.ReadOnly, listFilesInput)))
	s.add(tool.New("get_workspace_info", workspaceInfoText, guarded(f.info), options(tool.ReadOnly, workspaceInfoInput)))
	return s.tools, s.err
}

// files handles the calls of the workspace group.
//
// Two walls keep a path inside: local refuses names that lead out by their
// text, and os.Root, through which alone files are touched, refuses what the
// file system itself would lead out, such as symlinks.
type files struct {
	workspaces Workspaces
	artifacts  Artifacts
	bounds     Limits
}

// within opens the caller's workspace for do and gives it the cleaned name.
// Whatever do or the opening runs into comes back with a code.
func within[Out any](ctx context.Context, f files, name string, do func(*Workspace, string) (Out, error)) (Out, error) {
	var none Out
	name, err := cleanPath(name)
	if err != nil {
		return none, err
	}
	ws, err := open(ctx, f.workspaces)
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

// open opens the caller's workspace.
func open(ctx context.Context, w Workspaces) (*Workspace, error) {
	by := caller(ctx).By
	if by.Key() == "" { // nobody's workspace is not a workspace
		return nil, errcode.New(errcode.WorkspaceNotBound, "only agents, and callers who act in a role, have a workspace")
	}
	return w.Workspace(ctx, by)
}

// cleanPath gives name cleaned, relative and with slashes, or refuses it.
func cleanPath(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", refused(errcode.InvalidArguments, "path has a NUL byte; no file name does")
	}
	if escapesLexically(name) {
		return "", errEscapes(name)
	}
	return path.Clean(name), nil
}

// escapesLexically says whether the text of name leads out of a folder. It reads name
// both as Unix and as Windows would, since a workspace may travel.
func escapesLexically(name string) bool {
	windows := strings.ReplaceAll(name, `\`, "/")
	return !fs.ValidPath(path.Clean(name)) || !fs.ValidPath(path.Clean(windows)) || hasDrive(name)
}

func hasDrive(name string) bool {
	return len(name) >= 2 && name[1] == ':' && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z'
}

// fileError gives err the code a model can act on. Errors that have one, and
// the end of ctx, stay as they are.
func fileError(root *os.Root, name string, err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, escape(root)):
		return errEscapes(name)
	case errors.Is(err, fs.ErrNotExist):
		return refused(errcode.FileNotFound, "nothing is at %q in the workspace; list_files shows what there is", name)
	case errors.Is(err, fs.ErrPermission):
		return refused(errcode.PermissionDenied, "the system does not permit access to %q", name)
	case errors.Is(err, syscall.ENOTDIR):
		return refused(errcode.NotADirectory, "%q, or a folder on the way to it, is not a directory", name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return refused(errcode.InvalidArguments, "path of %d bytes, or a name in it, is too long", len(name))
	}
	return errcode.Wrap(errcode.ToolExecutionFailed, err, "%q: %s", name, reason(err)).With("ok", false)
}

// reason is what the system says of err, without the paths of the host that
// err may name.
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return "the system refused"
}

// escape gives the error root answers to paths that lead out. Package os does
// not export it, so root is asked.
func escape(root *os.Root) error {
	_, err := root.Lstat("..")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func errEscapes(name string) error {
	return refused(errcode.PathTraversal,
		"%q leads out of the workspace; name a relative path inside it, such as notes/plan.md", name)
}

// refused makes the error of a file operation, marked ok:false for the model.
func refused(code errcode.Code, format string, args ...any) error {
	return errcode.New(code, format, args...).With("ok", false)
}

// regular refuses what is not a regular file: a pipe would block its reader,
// a device may act when it is opened.
func regular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return refused(errcode.InvalidArguments, "%q is a directory, not a file; list_files shows what is in it", name)
	}
	return refused(errcode.PermissionDenied, "%q is neither a file nor a directory, and is not opened", name)
}

// pathProperty is the schema of a path, shared so that all tools say the same.
const pathProperty = `{
			"type": "string",
			"description": "Path relative to the workspace, with slashes; it may not lead out of it.",
			"minLength": 1,
			"maxLength": 4096
		}`
