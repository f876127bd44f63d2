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

const writeFileText = `Write a file of your workspace, replacing what was there; missing folders are made. ` +
	`Use it to keep work as files; use put_artifact to hand work to others. ` +
	`Give content, the whole new content as text, or as a base64 string with encoding "base64" for binary data; at most 8 MiB. ` +
	`Or give artifactRef instead, and the file gets the content of that artifact of your task: a text as it is, bytes as they are, anything else as JSON; get_artifact must be yours too. ` +
	`Nobody ever sees half a file: it is replaced at once. Symbolic links and files marked read-only are not written. ` +
	`The workspace has a quota, which get_workspace_info shows; what does not fit is refused with quota_exceeded. ` +
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
			"description": "Media type of the content, such as text/markdown. Optional; it changes nothing.",
			"maxLength": 200
		}
	},
	"required": ["path"],
	"additionalProperties": false
}`

type writeFile struct {
	Path     string  `json:"path"`
	Content  *string `json:"content,omitempty"`
	Encoding string  `json:"encoding,omitempty"`
	Artifact string  `json:"artifactRef,omitempty"`
	MimeType string  `json:"mimeType,omitempty"` // models write it; a file has nowhere to keep it
}

type written struct {
	OK   bool   `json:"ok"`
	Path string `json:"path"`
	Size int    `json:"size"`
}

func (f files) write(ctx context.Context, in writeFile) (written, error) {
	data, err := f.content(ctx, in)
	if err != nil {
		return written{}, err
	}
	return within(ctx, f, in.Path, func(ws *Workspace, name string) (written, error) {
		return written{true, name, len(data)}, ws.write(ctx, name, data)
	})
}

// content gives what is to be written.
func (f files) content(ctx context.Context, in writeFile) ([]byte, error) {
	switch {
	case in.Content != nil && in.Artifact == "":
		return decode(*in.Content, in.Encoding)
	case in.Content != nil || in.Artifact == "":
		return nil, refused(errcode.InvalidArguments, "write_file takes either content or artifactRef; give exactly one of them")
	case in.Encoding != "":
		return nil, refused(errcode.InvalidArguments, "encoding says how content is written; leave it out beside artifactRef")
	}
	call := caller(ctx)
	if err := requireTool(f.bounds, call.By, "write_file with artifactRef", "get_artifact"); err != nil {
		return nil, err
	}
	a, err := f.artifacts.GetArtifact(ctx, call, in.Artifact)
	if err == nil && a == nil {
		err = refused(errcode.ArtifactNotFound, "your task has no artifact %q; give the reference as put_artifact gave it", in.Artifact)
	}
	if err != nil {
		return nil, err
	}
	content, _ := a.plain()
	return content, nil
}

// write puts data into the file name, when there is room.
func (w *Workspace) write(ctx context.Context, name string, data []byte) error {
	var old fs.FileInfo
	plan := func() (more Usage, err error) {
		if old, err = w.writable(name); err != nil {
			return more, err
		}
		return addedUsage(w.Root, name, old, len(data))
	}
	return w.writeWithinQuota(ctx, plan, func() error { return replace(w.Root, name, data, old) })
}

// writable gives what stands at name, nil for nothing, or says why it is not
// to be written.
func (w *Workspace) writable(name string) (fs.FileInfo, error) {
	switch {
	case w.ReadOnly:
		return nil, refused(errcode.WorkspaceReadOnly, "%q cannot be written: the workspace is read-only; read from it, and put_artifact your results", name)
	case isDraftName(name):
		return nil, refused(errcode.InvalidArguments, "%q is a name that write_file itself uses; take another", name)
	case strings.Count(name, "/") >= maxDepth:
		return nil, refused(errcode.InvalidArguments, "the path has %d folders; at most %d may stand inside each other", strings.Count(name, "/"), maxDepth-1)
	}
	info, err := w.Root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, linkError(w.Root, name)
	case info.Mode().IsRegular() && info.Mode()&0o200 == 0: // replacing would pass the mark by
		return nil, refused(errcode.PermissionDenied, "%q is marked read-only", name)
	}
	return info, regular(name, info)
}

// addedUsage says what a file of so many bytes in place of old adds: bytes, and
// names of itself and of folders to be made.
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

// linkError refuses to write a symlink: replacing it would cut the link, and
// following it is a write somewhere the caller did not name.
func linkError(root *os.Root, name string) error {
	if _, err := root.Stat(name); errors.Is(err, escape(root)) {
		return err
	}
	return refused(errcode.PermissionDenied, "%q is a symbolic link; write the file it leads to by its own path", name)
}

// draftPrefix begins the names of drafts; the rest is an id, so that no other
// file is taken for one.
const draftPrefix = ".rolecall-"

func isDraft(name string, info fs.FileInfo) bool {
	return info.Mode().IsRegular() && isDraftName(name)
}

func isDraftName(name string) bool {
	id, ok := strings.CutPrefix(path.Base(name), draftPrefix)
	return ok && len(id) == 36 && strings.Trim(id, "0123456789abcdef-") == ""
}

// replace writes name in one step:
//
//  1. its folder is made,
//  2. a file beside it is written and brought to disk,
//  3. that file takes its name, and the permissions of old if there is one.
func replace(root *os.Root, name string, data []byte, old fs.FileInfo) error {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Never the same twice: a try that timed out may still be writing.
	draft := path.Join(dir, draftPrefix+identity.NewID())
	err := writeSynced(root, draft, data, old)
	if err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		_ = root.Remove(draft) // there may be none; err says what went wrong
		return err
	}
	syncFolder(root, dir)
	return nil
}

func writeSynced(root *os.Root, name string, data []byte, old fs.FileInfo) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if old != nil { // whatever the umask
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

// syncFolder brings a folder's names to disk, where the system can: the file
// has its new name already, and either the old or the new outlives a power cut.
func syncFolder(root *os.Root, dir string) {
	file, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_ = file.Sync()
}
