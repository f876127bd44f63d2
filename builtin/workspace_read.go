package builtin

import (
	"cmp"
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
)

const readFileText = `Read a file of the workspace, or a part of it. If truncated is true, read on at nextOffset.`

const readFileInput = `{
	"type": "object",
	"properties": {
		"path": ` + pathProperty + `,
		"offset": {
			"type": "integer",
			"description": "Byte to start at.",
			"minimum": 0,
			"maximum": 9007199254740991,
			"default": 0
		},
		"length": {
			"type": "integer",
			"description": "How many bytes to read.",
			"minimum": 1,
			"maximum": 1000000
		}
	},
	"required": ["path"],
	"additionalProperties": false
}`

// readFile holds the arguments of read_file. Offset and Length are bytes.
type readFile struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset,omitempty"`
	Length int64  `json:"length,omitempty"` // 0 means defaultLength
}

// filePart is the result of read_file.
type filePart struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty"`
	contentRange
}

// read handles read_file.
func (f files) read(ctx context.Context, in readFile) (filePart, error) {
	release, err := f.reads.Acquire(ctx, fairKey(currentCall(ctx)))
	if err != nil {
		return filePart{}, err
	}
	defer release()
	return inWorkspace(ctx, f, in.Path, func(ws *workspace.Dir, name string) (filePart, error) {
		part := filePart{Path: name}
		limit := contentLimit(f.limits, currentCall(ctx).By, part)
		length := min(cmp.Or(in.Length, defaultLength), maxLength)
		data, size, err := ws.ReadPart(name, in.Offset, length)
		if err != nil {
			return filePart{}, err
		}
		var n int
		part.Content, part.Encoding, n = encodePart(data, in.Offset+int64(len(data)) < size, limit)
		part.contentRange = newRange(in.Offset, n, size)
		return part, nil
	})
}
