package builtin

import (
	"cmp"
	"context"
	"io"
	"os"
	"syscall"
)

const readFileText = `Read a file of your workspace, whole or in parts. Use it before you change a file or answer from it. ` +
	`Answers {path, content, offset, length, size}; offset, length and size count bytes. ` +
	`content is text, or base64 with "encoding":"base64" when the bytes are not UTF-8. ` +
	`A part never ends inside a character, so length may be a little less than you asked for; ` +
	`to read on, add length to offset until you reach size. At most 1,000,000 bytes a call. ` +
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
			"description": "How many bytes to read at most.",
			"minimum": 1,
			"maximum": 1000000,
			"default": 5000
		}
	},
	"required": ["path"],
	"additionalProperties": false
}`

const (
	defaultLength = 5000
	maxLength     = 1_000_000
)

// readFile holds the arguments of read_file. Offset and Length are bytes.
type readFile struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset,omitempty"`
	Length int64  `json:"length,omitempty"` // 0 means defaultLength
}

// filePart is the result of read_file. Offset, Length and Size are bytes; Size
// is that of the whole file.
type filePart struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty"`
	Offset   int64  `json:"offset"`
	Length   int    `json:"length"`
	Size     int64  `json:"size"`
}

// read handles read_file.
func (f files) read(ctx context.Context, in readFile) (filePart, error) {
	return inWorkspace(ctx, f, in.Path, func(ws *Workspace, name string) (filePart, error) {
		file, size, err := openRegular(ws.Root, name)
		if err != nil {
			return filePart{}, err
		}
		defer file.Close()
		length := min(cmp.Or(in.Length, defaultLength), maxLength)
		data, err := io.ReadAll(io.NewSectionReader(file, in.Offset, length))
		if err != nil {
			return filePart{}, err
		}
		content, encoding, n := encode(data, in.Offset+int64(len(data)) < size)
		return filePart{name, content, encoding, in.Offset, n, size}, nil
	})
}

// openRegular opens a regular file for reading and returns its size in bytes.
func openRegular(root *os.Root, name string) (*os.File, int64, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, 0, err
	}
	if err := checkRegular(name, info); err != nil {
		return nil, 0, err
	}
	// The file may have been replaced meanwhile, even by a pipe: open it without
	// blocking, and check again what was opened.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}
