package builtin

import (
	"cmp"
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
)

const listFilesText = `List a folder of the workspace, or find files by name.`

const listFilesInput = `{
	"type": "object",
	"properties": {
		"path": {
			"type": "string",
			"description": "Folder; the whole workspace unless given.",
			"minLength": 1,
			"maxLength": 4096,
			"default": "."
		},
		"recursive": {
			"type": "boolean",
			"description": "Folders inside folders too.",
			"default": false
		},
		"pattern": {
			"type": "string",
			"description": "Only names that match; * is any text.",
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
	release, err := f.reads.Acquire(ctx, fairKey(currentCall(ctx)))
	if err != nil {
		return workspace.Listing{}, err
	}
	defer release()
	return inWorkspace(ctx, f, cmp.Or(in.Path, "."), func(ws *workspace.Dir, dir string) (workspace.Listing, error) {
		return ws.ListFiles(ctx, dir, workspace.ListOptions{Recursive: in.Recursive, Pattern: pattern})
	})
}
