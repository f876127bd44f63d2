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
	"github.com/rolecall/rolecall/identity"
)

// WriteFile writes a file atomically and creates missing folders. It replaces an
// existing file and keeps its permissions. The errors include quota_exceeded,
// workspace_read_only, and permission_denied for symbolic links and for files
// that are marked read-only.
func (d *Dir) WriteFile(ctx context.Context, name string, data []byte) error {
	name, err := CleanPath(name)
	if err != nil {
		return err
	}
	var old fs.FileInfo
	plan := func() (more Usage, err error) {
		if old, err = d.checkWritable(name); err != nil {
			return more, err
		}
		return addedUsage(d.Root, name, old, len(data))
	}
	err = d.writeWithinQuota(ctx, plan, func() error { return replaceFile(d.Root, name, data, old) })
	return fileError(d.Root, name, err)
}

// checkWritable returns the existing file at name, nil if there is none. The error
// states why name cannot be written.
func (d *Dir) checkWritable(name string) (fs.FileInfo, error) {
	switch {
	case d.ReadOnly:
		return nil, opError(errcode.WorkspaceReadOnly, "write %q: the workspace is read-only; store results with put_artifact", name)
	case isTempName(name):
		return nil, opError(errcode.InvalidArguments, "%q is a name that write_file uses for temporary files; choose another", name)
	case strings.Count(name, "/") >= maxDepth:
		return nil, opError(errcode.InvalidArguments, "the path has %d nested folders; at most %d are allowed", strings.Count(name, "/"), maxDepth-1)
	}
	info, err := d.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, linkError(d.Root, name)
	case info.Mode().IsRegular() && info.Mode()&0o200 == 0: // replacing it would bypass the mark
		return nil, opError(errcode.PermissionDenied, "%q is marked read-only", name)
	}
	return info, checkRegular(name, info)
}

// addedUsage returns what a file of length bytes adds to the usage when it
// replaces old: its bytes, its name and the folders to create.
func addedUsage(root *os.Root, name string, old fs.FileInfo, length int) (Usage, error) {
	if old != nil {
		return Usage{Bytes: int64(length) - old.Size()}, nil
	}
	more := Usage{Bytes: int64(length), Files: 1}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		_, err := root.Stat(dir)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return more, err
		}
		more.Files++
	}
	return more, nil
}

// linkError returns the error for writing to a symlink. Replacing it would break
// the link, and following it would write to a path that was not named.
func linkError(root *os.Root, name string) error {
	if _, err := root.Stat(name); errors.Is(err, rootEscapeError(root)) {
		return err
	}
	return opError(errcode.PermissionDenied, "%q is a symbolic link; write to the path of its target", name)
}

// tempPrefix begins the names of temporary files. The rest is a UUID, so that no
// other file is mistaken for one.
const tempPrefix = ".rolecall-"

// isTempFile reports whether a file is a temporary file of write_file.
func isTempFile(name string, info fs.FileInfo) bool {
	return info.Mode().IsRegular() && isTempName(name)
}

// isTempName reports whether write_file could use a name for a temporary file.
func isTempName(name string) bool {
	id, ok := strings.CutPrefix(path.Base(name), tempPrefix)
	return ok && len(id) == 36 && strings.Trim(id, "0123456789abcdef-") == ""
}

// replaceFile writes name atomically:
//
//  1. It creates the folder.
//  2. It writes and syncs a temporary file in the same folder, with the
//     permissions of old if there is one.
//  3. It renames that file to name.
func replaceFile(root *os.Root, name string, data []byte, old fs.FileInfo) error {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The name is unique, since an earlier call that timed out may still write.
	temp := path.Join(dir, tempPrefix+identity.NewID())
	err := writeSynced(root, temp, data, old)
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // it may not exist; err is the cause
		return err
	}
	syncDir(root, dir)
	return nil
}

// writeSynced creates a file with data and syncs it to disk.
func writeSynced(root *os.Root, name string, data []byte, old fs.FileInfo) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if old != nil { // independent of the umask
		err = file.Chmod(old.Mode().Perm())
	}
	if err == nil {
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir syncs the entries of a folder to disk. Errors are ignored: the file has
// its new name, and after a power failure either the old or the new one exists.
func syncDir(root *os.Root, dir string) {
	file, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_ = file.Sync()
}
