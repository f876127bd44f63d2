package org

import (
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
)

// TaskFile is a file that a user attaches to a task. It becomes an artifact of the task.
type TaskFile struct {
	Name string `json:"name"` // of the file, without directories
	Data []byte `json:"data"` // in JSON: base64
}

// Limits of the files of a task. A request over HTTP holds them in base64.
const (
	MaxTaskFiles     = 20
	MaxTaskFileBytes = 5 << 20 // of all together
)

// maxFileName is the largest length of the name of a file, in bytes.
const maxFileName = 255

// MediaType returns the media type that the first bytes of the file show.
func (f TaskFile) MediaType() string { return http.DetectContentType(f.Data) }

// IsImage reports whether models that see images are shown the file.
func (f TaskFile) IsImage() bool { return model.IsImageType(f.MediaType()) }

// IsText reports whether the file is text: UTF-8 without zero bytes.
func (f TaskFile) IsText() bool { return textutil.IsText(f.Data) }

// CheckTaskFiles returns an error with the code InvalidArguments unless a task may be given the
// files. Each file must have content and a plain name that no other file has. The limits must hold.
func CheckTaskFiles(files []TaskFile) error {
	refuse := func(format string, args ...any) error {
		return errcode.New(errcode.InvalidArguments, "files of the task: "+format, args...).With("field", "files")
	}
	if len(files) > MaxTaskFiles {
		return refuse("there are %d; at most %d are allowed", len(files), MaxTaskFiles)
	}
	total, names := 0, map[string]bool{}
	for _, f := range files {
		switch {
		case !isFileName(f.Name):
			return refuse("%.80q is not the name of a file: it needs 1 to %d visible bytes without a directory", f.Name, maxFileName)
		case names[f.Name]:
			return refuse("%q is given twice", f.Name)
		case len(f.Data) == 0:
			return refuse("%q is empty", f.Name)
		}
		names[f.Name] = true
		if total += len(f.Data); total > MaxTaskFileBytes {
			return refuse("they have more than %d bytes together; put larger files into the workspace", MaxTaskFileBytes)
		}
	}
	return nil
}

// isFileName reports whether a text names a file in a directory.
func isFileName(name string) bool {
	return name != "" && len(name) <= maxFileName && utf8.ValidString(name) && name != "." && name != ".." &&
		!strings.ContainsAny(name, `/\`) && filepath.Base(name) == name && !strings.ContainsFunc(name, invisible)
}
