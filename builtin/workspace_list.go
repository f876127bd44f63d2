package builtin

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const listFilesText = `List what is in a folder of your workspace, sorted by name. Use it to find files before you read them. ` +
	`Answers {path, entries:[{name, type, size, modifiedAt}]}; type is file, directory, symlink or other, size is a file's bytes. ` +
	`With recursive, names are paths relative to the folder; symbolic links are listed and not followed. ` +
	`At most 10,000 entries; "truncated":true says there are more, so list a subfolder. ` +
	`Example: {"path":"notes","recursive":true}`

const listFilesInput = `{
	"type": "object",
	"properties": {
		"path": {
			"type": "string",
			"description": "Folder relative to the workspace, with slashes; it may not lead out of it.",
			"minLength": 1,
			"maxLength": 4096,
			"default": "."
		},
		"recursive": {
			"type": "boolean",
			"description": "Whether to list folders inside folders too.",
			"default": false
		}
	},
	"additionalProperties": false
}`

const maxEntries = 10_000

type listFiles struct {
	Path      string `json:"path,omitempty"` // "" is the workspace itself
	Recursive bool   `json:"recursive,omitempty"`
}

type listing struct {
	Path      string  `json:"path"`
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty"`
}

type entry struct {
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

func (f files) list(ctx context.Context, in listFiles) (listing, error) {
	return within(ctx, f, cmp.Or(in.Path, "."), func(ws *Workspace, dir string) (listing, error) {
		l := listing{Path: dir, Entries: []entry{}}
		err := walk(ctx, ws.Root, dir, func(name string, info fs.FileInfo) error {
			return l.add(name, info, in.Recursive)
		})
		slices.SortFunc(l.Entries, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
		return l, err
	})
}

// add appends one entry and tells the walk where to go from it.
func (l *listing) add(name string, info fs.FileInfo, recursive bool) error {
	if len(l.Entries) == maxEntries {
		l.Truncated = true
		return fs.SkipAll
	}
	l.Entries = append(l.Entries, entry{name, kind(info.Mode()), size(info), modified(info)})
	if info.IsDir() && !recursive {
		return fs.SkipDir
	}
	return nil
}

// walk visits everything below dir by its name relative to dir, and follows no
// symlinks but dir itself. What vanishes or is closed to us meanwhile is left
// out. visit steers as a fs.WalkDirFunc does.
func walk(ctx context.Context, root *os.Root, dir string, visit func(string, fs.FileInfo) error) error {
	if err := directory(root, dir); err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), dir, func(name string, _ fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == dir {
			return err
		}
		// Asked of root: a DirEntry would look its file up by path.
		info, statErr := root.Lstat(name)
		if err := cmp.Or(err, statErr); err != nil {
			return unlessHidden(err)
		}
		return visit(strings.TrimPrefix(name, dir+"/"), info)
	})
}

func directory(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err == nil && !info.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

func unlessHidden(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symlink"
	}
	return "other"
}

// size is a file's length; what a folder or a link occupies says nothing.
func size(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// modified is to the second, so that it reads as plain RFC 3339.
func modified(info fs.FileInfo) time.Time { return info.ModTime().UTC().Truncate(time.Second) }
