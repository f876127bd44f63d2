package builtin

import (
	"cmp"
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
)

const readFileText = `Read a file of your workspace, whole or in parts. Use it before you change a file or answer from it. ` +
	`Answers {path, content, offset, length, size, truncated}; offset, length and size count bytes. ` +
	`content is text, or base64 with "encoding":"base64" when the bytes are not UTF-8. ` +
	`You get as much as fits your context, whole characters only. When truncated is true, more follows: read on at offset nextOffset. ` +
	`Example: {"path":"notes/plan.md","offset":0,"length":20000}`

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
			"description": "How many bytes to read at most; 64,000 unless given.",
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
	release, err := f.reads.Acquire(ctx, shareKey(currentCall(ctx)))
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
		part.Content, part.Encoding, n = encode(data, in.Offset+int64(len(data)) < size, limit)
		part.contentRange = newRange(in.Offset, n, size)
		return part, nil
	})
}
