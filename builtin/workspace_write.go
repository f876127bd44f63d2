package builtin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

const writeFileText = `Write a file of your workspace, replacing what was there; missing folders are made. ` +
	`Use it to keep work as files; use put_artifact to hand work to others. ` +
	`content is the whole new content as text, or a base64 string with encoding "base64" for binary data; at most 8 MiB. ` +
	`Nobody ever sees half a file: it is replaced at once. Symbolic links and files marked read-only are not written. ` +
	`Answers {ok, path, size} with size in bytes. ` +
	`Example: {"path":"notes/plan.md","content":"# Plan\n"}`

const writeFileInput = `{
	"type": "object",
	"properties": {
		"path": ` + pathProperty + `,
		"content": {
			"type": "string",
			"description": "The whole new content: text, or a base64 string when encoding is base64."
		},
		"encoding": {
			"type": "string",
			"description": "Set to base64 when content is binary data as a base64 string; leave out for text.",
			"enum": ["base64"]
		},
		"mimeType": {
			"type": "string",
			"description": "Media type of the content, such as text/markdown. Optional; it changes nothing.",
			"maxLength": 200
		}
	},
	"required": ["path", "content"],
	"additionalProperties": false
}`

type writeFile struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty"`
	MimeType string `json:"mimeType,omitempty"` // models write it; a file has nowhere to keep it
}

type written struct {
	OK   bool   `json:"ok"`
	Path string `json:"path"`
	Size int    `json:"size"`
}

func (f files) write(ctx context.Context, in writeFile) (written, error) {
	data, err := decode(in.Content, in.Encoding)
	if err != nil {
		return written{}, err
	}
	return within(ctx, f, in.Path, func(ws *Workspace, name string) (written, error) {
		if ws.ReadOnly {
			return written{}, refused(errcode.WorkspaceReadOnly, "%q cannot be written: the workspace is read-only; read from it, and put_artifact your results", name)
		}
		mode, err := writable(ws.Root, name)
		if err != nil {
			return written{}, err
		}
		return written{true, name, len(data)}, replace(ws.Root, name, data, mode)
	})
}

// writable says with what permissions name is to be written, or why it is not.
func writable(root *os.Root, name string) (fs.FileMode, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, nil
	case err != nil:
		return 0, err
	case info.Mode()&fs.ModeSymlink != 0:
		return 0, linkError(root, name)
	case info.Mode().IsRegular() && info.Mode()&0o200 == 0: // replacing would pass the mark by
		return 0, refused(errcode.PermissionDenied, "%q is marked read-only", name)
	}
	return info.Mode().Perm(), regular(name, info)
}

// linkError refuses to write a symlink: replacing it would cut the link, and
// following it is a write somewhere the caller did not name.
func linkError(root *os.Root, name string) error {
	if _, err := root.Stat(name); errors.Is(err, escape(root)) {
		return err
	}
	return refused(errcode.PermissionDenied, "%q is a symbolic link; write the file it leads to by its own path", name)
}

// replace writes name in one step:
//
//  1. its folder is made,
//  2. a file beside it is written and brought to disk,
//  3. that file takes its name.
func replace(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// Never the same twice: a try that timed out may still be writing.
	draft := path.Join(dir, ".rolecall-"+identity.Fresh())
	err := writeSynced(root, draft, data, mode)
	if err == nil {
		err = root.Rename(draft, name)
	}
	if err != nil {
		_ = root.Remove(draft) // there may be none; err says what went wrong
	}
	return err
}

func writeSynced(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
