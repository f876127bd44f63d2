package builtin

import (
	"cmp"
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
)

const listFilesText = `List what is in a folder of your workspace, sorted by name, or search it for files by name. Use it to find files before you read them. ` +
	`Answers {path, entries:[{name, type, size, modifiedAt}]}; type is file, directory, symlink or other, size is a file's bytes. ` +
	`With recursive, names are paths relative to the folder; symbolic links are listed and not followed. ` +
	`pattern selects the names that match: * is any text, ? any character, [a-z] one of a range; letter case counts. ` +
	`A pattern without a slash is matched against the last part of each path; one with a slash against the whole path, where ** is any folders, and searches all folders. ` +
	`At most 10,000 entries, 3 MiB, and 100 folders deep; "truncated":true means there are more, so list a subfolder. ` +
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

// listFiles holds the arguments of list_files.
type listFiles struct {
	Path      string `json:"path,omitempty"` // "" means the workspace itself
	Recursive bool   `json:"recursive,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
}

// list handles list_files.
func (f files) list(ctx context.Context, in listFiles) (workspace.Listing, error) {
	pattern, err := workspace.ParseGlob(in.Pattern)
	if err != nil {
		return workspace.Listing{}, err
	}
	release, err := f.reads.Acquire(ctx, shareKey(currentCall(ctx)))
	if err != nil {
		return workspace.Listing{}, err
	}
	defer release()
	return inWorkspace(ctx, f, cmp.Or(in.Path, "."), func(ws *workspace.Dir, dir string) (workspace.Listing, error) {
		return ws.ListFiles(ctx, dir, workspace.ListOptions{Recursive: in.Recursive, Pattern: pattern})
	})
}
