package cmd

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/gateway/client"
)

// How much of an artifact is shown.
const (
	previewLines = 20
	previewWidth = 120
	previewBytes = 64
	previewImage = 1 << 20 // of a picture is looked at to find its size
)

// preview says how an artifact's content begins, in lines that act on no
// terminal.
func preview(a client.Artifact, content []byte) string {
	if a.Binary {
		return previewOfBytes(content)
	}
	text := content
	if pretty := new(bytes.Buffer); isObject(content) && json.Indent(pretty, content, "", "  ") == nil {
		text = pretty.Bytes()
	}
	return previewOfText(string(text[:min(len(text), 4*previewLines*previewWidth)]), len(text))
}

func isObject(content []byte) bool {
	return bytes.HasPrefix(content, []byte("{")) || bytes.HasPrefix(content, []byte("["))
}

// previewOfText gives the first lines of a text that has size bytes.
func previewOfText(text string, size int) string {
	more := len(text) < size
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > previewLines {
		lines, more = lines[:previewLines], true
	}
	for i, line := range lines {
		lines[i] = cut(clean(line), previewWidth)
	}
	if more {
		lines = append(lines, "…")
	}
	return strings.Join(lines, "\n")
}

// sizers find the size of a picture from its beginning.
var sizers = map[string]func(io.Reader) (image.Config, error){
	"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
}

// previewOfBytes gives a picture's size, or the first bytes of what is none.
func previewOfBytes(content []byte) string {
	kind := http.DetectContentType(content)
	if size, ok := sizers[kind]; ok {
		if c, err := size(bytes.NewReader(content[:min(len(content), previewImage)])); err == nil {
			return fmt.Sprintf("%s of %d × %d pixels", kind, c.Width, c.Height)
		}
	}
	text := hex.Dump(content[:min(len(content), previewBytes)])
	if len(content) > previewBytes {
		text += "…"
	}
	return text
}

// extensions are those that files get. What a double click would run, a page
// or a program, is in none of them.
var extensions = map[string]string{
	"text/markdown": ".md", "text/csv": ".csv", "application/json": ".json",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/x-gzip": ".gz",
}

// extension goes by what the content is; only among texts does it believe what
// the artifact says of itself.
func extension(a client.Artifact, content []byte) string {
	if a.Binary {
		if ext, ok := extensions[http.DetectContentType(content)]; ok {
			return ext
		}
		return ".bin"
	}
	if isObject(content) && json.Valid(content) {
		return ".json"
	}
	for _, said := range []string{metaText(a, "mediaType"), a.Type} {
		if strings.HasPrefix(said, "text/") && extensions[said] != "" {
			return extensions[said]
		}
	}
	return ".txt"
}

// maxName is how many characters of a title a file name has.
const maxName = 60

// fileName makes a name of an artifact's title or type. It has letters,
// digits, '-', '_' and '.', begins with a letter or digit, and ends with the
// extension. beside tells it from others of the same title.
func fileName(a client.Artifact, content []byte, beside string) string {
	ext := extension(a, content)
	name := slug(metaText(a, "title"))
	if name == "" {
		name = slug(a.Type)
	}
	if name = strings.TrimSuffix(name, ext); name == "" {
		name, beside = a.ID, ""
	}
	if beside != "" {
		name += "-" + beside
	}
	return name + ext
}

// slug takes from a text what does not belong into a file name.
func slug(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.'
	})
	runes := []rune(strings.TrimLeft(strings.Join(words, "-"), "-_."))
	return strings.TrimRight(string(runes[:min(len(runes), maxName)]), "-_.")
}

// metaText gives a text of an artifact's facts, "" when there is none.
func metaText(a client.Artifact, field string) string {
	var facts map[string]any
	_ = json.Unmarshal(a.Meta, &facts) // free form, or nothing at all
	text, _ := facts[field].(string)
	return text
}
