package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/rolecall/rolecall/errcode"
)

// CleanPath returns name as a clean relative path with slashes. It rejects names
// that escape the workspace with path_traversal_blocked.
func CleanPath(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", opError(errcode.InvalidArguments, "path contains a NUL byte")
	}
	if escapesLexically(name) {
		return "", newEscapeError(name)
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
// a code, context errors and nil are returned unchanged.
func fileError(root *os.Root, name string, err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, rootEscapeError(root)):
		return newEscapeError(name)
	case errors.Is(err, fs.ErrNotExist):
		return opError(errcode.FileNotFound, "%q does not exist in the workspace; list_files shows what exists", name)
	case errors.Is(err, fs.ErrPermission):
		return opError(errcode.PermissionDenied, "the system does not permit access to %q", name)
	case errors.Is(err, syscall.ENOTDIR):
		return opError(errcode.NotADirectory, "%q, or a folder on the way to it, is not a directory", name)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return opError(errcode.InvalidArguments, "path of %d bytes, or a name in it, is too long", len(name))
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

// rootEscapeError returns the error that root returns for paths that escape it.
// Package os does not export it, so it is provoked.
func rootEscapeError(root *os.Root) error {
	_, err := root.Lstat("..")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// newEscapeError returns the error for a path that leads out of the workspace.
func newEscapeError(name string) error {
	return opError(errcode.PathTraversal,
		"%q leads out of the workspace; use a path relative to the workspace, without ..", name)
}

// opError returns the error of a file operation, with ok:false for the model.
func opError(code errcode.Code, format string, args ...any) error {
	return errcode.New(code, format, args...).With("ok", false)
}

// checkRegular rejects files that are not regular: reading a pipe would block, and
// opening a device may have an effect.
func checkRegular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return opError(errcode.InvalidArguments, "%q is a directory, not a file; list_files shows what is in it", name)
	}
	return opError(errcode.PermissionDenied, "%q is not a regular file or directory", name)
}
