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
	"github.com/rolecall/rolecall/identity"
)

const writeFileText = `Write a file of your workspace, replacing an existing one; missing folders are created. ` +
	`Use it to store work as files; use put_artifact to hand work to others. ` +
	`Give content, the whole new content as text, or as a base64 string with encoding "base64" for binary data; at most 8 MiB. ` +
	`Or give artifactRef instead, and the file gets the content of that artifact of your task: a text as it is, bytes as they are, anything else as JSON; this also needs get_artifact. ` +
	`The file is replaced atomically, so a reader never sees a part of it. Symbolic links and files marked read-only are not written. ` +
	`The workspace has a quota, which get_workspace_info shows; a write over it fails with quota_exceeded. ` +
	`Answers {ok, path, size} with size in bytes. ` +
	`Example: {"path":"notes/plan.md","content":"# Plan\n"}`

const writeFileInput = `{
	"type": "object",
	"properties": {
		"path": ` + pathProperty + `,
		"content": {
			"type": "string",
			"description": "The whole new content: text, or a base64 string when encoding is base64. Leave out when artifactRef is given."
		},
		"encoding": {
			"type": "string",
			"description": "Set to base64 when content is binary data as a base64 string; leave out for text.",
			"enum": ["base64"]
		},
		"artifactRef": {
			"type": "string",
			"description": "Reference of an artifact, as put_artifact gave it, whose content the file gets. Leave out when content is given.",
			"minLength": 1,
			"maxLength": 200
		},
		"mimeType": {
			"type": "string",
			"description": "Media type of the content, such as text/markdown. Optional; it has no effect.",
			"maxLength": 200
		}
	},
	"required": ["path"],
	"additionalProperties": false
}`

// writeFile holds the arguments of write_file. Exactly one of Content and
// Artifact is set.
type writeFile struct {
	Path     string  `json:"path"`
	Content  *string `json:"content,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
	Artifact string  `json:"artifactRef,omitempty"`
	MimeType string  `json:"mimeType,omitempty"` // accepted because models send it; not stored
}

// written is the result of write_file.
type written struct {
	OK   bool   `json:"ok"`
	Path string `json:"path"`
	Size int    `json:"size"`
}

// write handles write_file.
func (f files) write(ctx context.Context, in writeFile) (written, error) {
	data, err := f.content(ctx, in)
	if err != nil {
		return written{}, err
	}
	return inWorkspace(ctx, f, in.Path, func(ws *Workspace, name string) (written, error) {
		return written{true, name, len(data)}, ws.write(ctx, name, data)
	})
}

// content returns the bytes to write.
func (f files) content(ctx context.Context, in writeFile) ([]byte, error) {
	switch {
	case in.Content != nil && in.Artifact == "":
		return decode(*in.Content, in.Encoding)
	case in.Content != nil || in.Artifact == "":
		return nil, fileOpError(errcode.InvalidArguments, "write_file: set exactly one of content and artifactRef")
	case in.Encoding != "":
		return nil, fileOpError(errcode.InvalidArguments, "write_file: encoding describes content; leave it out with artifactRef")
	}
	call := currentCall(ctx)
	if err := requireTool(f.limits, call.By, "write_file with artifactRef", "get_artifact"); err != nil {
		return nil, err
	}
	a, err := f.artifacts.GetArtifact(ctx, call, in.Artifact)
	if err == nil && a == nil {
		err = fileOpError(errcode.ArtifactNotFound, "your task has no artifact %q; give the reference as put_artifact returned it", in.Artifact)
	}
	if err != nil {
		return nil, err
	}
	content, _ := a.rawContent()
	return content, nil
}

// write writes a file if the quota allows it.
func (w *Workspace) write(ctx context.Context, name string, data []byte) error {
	var old fs.FileInfo
	plan := func() (more Usage, err error) {
		if old, err = w.checkWritable(name); err != nil {
			return more, err
		}
		return addedUsage(w.Root, name, old, len(data))
	}
	return w.writeWithinQuota(ctx, plan, func() error { return replaceFile(w.Root, name, data, old) })
}

// checkWritable returns the existing file at name, nil if there is none. The error
// states why name cannot be written.
func (w *Workspace) checkWritable(name string) (fs.FileInfo, error) {
	switch {
	case w.ReadOnly:
		return nil, fileOpError(errcode.WorkspaceReadOnly, "write %q: the workspace is read-only; store results with put_artifact", name)
	case isTempName(name):
		return nil, fileOpError(errcode.InvalidArguments, "%q is a name that write_file uses for temporary files; choose another", name)
	case strings.Count(name, "/") >= maxDepth:
		return nil, fileOpError(errcode.InvalidArguments, "the path has %d nested folders; at most %d are allowed", strings.Count(name, "/"), maxDepth-1)
	}
	info, err := w.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, linkError(w.Root, name)
	case info.Mode().IsRegular() && info.Mode()&0o200 == 0: // replacing it would bypass the mark
		return nil, fileOpError(errcode.PermissionDenied, "%q is marked read-only", name)
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
	if _, err := root.Stat(name); errors.Is(err, escapeError(root)) {
		return err
	}
	return fileOpError(errcode.PermissionDenied, "%q is a symbolic link; write to the path of its target", name)
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
