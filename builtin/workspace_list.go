package builtin

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"time"
)

const listFilesText = `List what is in a folder of your workspace, sorted by name, or search it for files by name. Use it to find files before you read them. ` +
	`Answers {path, entries:[{name, type, size, modifiedAt}]}; type is file, directory, symlink or other, size is a file's bytes. ` +
	`With recursive, names are paths relative to the folder; symbolic links are listed and not followed. ` +
	`pattern selects the names that match: * is any text, ? any character, [a-z] one of a range; letter case counts. ` +
	`A pattern without a slash is matched against the last part of each path; one with a slash against the whole path, where ** is any folders, and searches all folders. ` +
	`At most 10,000 entries, and 100 folders deep; "truncated":true means there are more, so list a subfolder. ` +
	`Example: {"path":"notes","pattern":"*.md","recursive":true}`

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
		},
		"pattern": {
			"type": "string",
			"description": "Only names that match this, such as *.go, report-202?.csv or src/**/*_test.py.",
			"minLength": 1,
			"maxLength": 500
		}
	},
	"additionalProperties": false
}`

const (
	maxEntries = 10_000
	maxNames   = 200_000 // visited for one listing
)

// listFiles holds the arguments of list_files.
type listFiles struct {
	Path      string `json:"path,omitempty"` // "" means the workspace itself
	Recursive bool   `json:"recursive,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
}

// listing is the result of list_files. The unexported fields select the
// entries.
type listing struct {
	Path      string  `json:"path"`
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty"`

	pattern   glob
	recursive bool
}

// entry is a file, folder or link in a listing. Size is 0 for anything but a
// regular file.
type entry struct {
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modifiedAt"`
}

// list handles list_files.
func (f files) list(ctx context.Context, in listFiles) (listing, error) {
	pattern, err := parseGlob(in.Pattern)
	if err != nil {
		return listing{}, err
	}
	return inWorkspace(ctx, f, cmp.Or(in.Path, "."), func(ws *Workspace, dir string) (listing, error) {
		l := listing{Path: dir, Entries: []entry{}, pattern: pattern, recursive: in.Recursive || pattern.spansFolders()}
		w := walker{ctx: ctx, root: ws.Root, budget: maxNames, visit: func(name string, info fs.FileInfo) error {
			return l.add(relativeTo(dir, name), info)
		}}
		err := w.walk(dir)
		l.Truncated = l.Truncated || w.truncated
		slices.SortFunc(l.Entries, func(a, b entry) int { return cmp.Compare(a.Name, b.Name) })
		return l, err
	})
}

// add appends an entry if it matches. Its error controls the walk, like that of a
// fs.WalkDirFunc.
func (l *listing) add(name string, info fs.FileInfo) error {
	if l.pattern.matches(name) && !isTempFile(name, info) {
		if len(l.Entries) == maxEntries {
			l.Truncated = true
			return fs.SkipAll
		}
		l.Entries = append(l.Entries, entry{name, kind(info.Mode()), size(info), modified(info)})
	}
	if info.IsDir() && !l.recursive {
		return fs.SkipDir
	}
	return nil
}

// kind returns the type of an entry as list_files reports it.
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

// size returns the length of a regular file, 0 for anything else.
func size(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// modified returns the modification time in UTC, truncated to seconds.
func modified(info fs.FileInfo) time.Time { return info.ModTime().UTC().Truncate(time.Second) }
