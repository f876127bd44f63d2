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
	"github.com/rolecall/rolecall/internal/textutil"
)

// Limits of a preview.
const (
	previewLines     = 20
	previewWidth     = 120
	hexDumpBytes     = 64
	imageHeaderBytes = 1 << 20 // bytes read to find the size of an image
)

// preview returns the beginning of an artifact's content, without characters that control
// a terminal.
func preview(a client.Artifact, content []byte) string {
	if a.Binary {
		return binaryPreview(content)
	}
	text := content
	if pretty := new(bytes.Buffer); isObject(content) && json.Indent(pretty, content, "", "  ") == nil {
		text = pretty.Bytes()
	}
	return textPreview(string(text[:min(len(text), 4*previewLines*previewWidth)]), len(text))
}

func isObject(content []byte) bool {
	return bytes.HasPrefix(content, []byte("{")) || bytes.HasPrefix(content, []byte("["))
}

// textPreview returns the first lines of a text, of which size is the full length in bytes.
func textPreview(text string, size int) string {
	more := len(text) < size
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > previewLines {
		lines, more = lines[:previewLines], true
	}
	for i, line := range lines {
		lines[i] = textutil.TruncateWidth(textutil.Sanitize(line), previewWidth)
	}
	if more {
		lines = append(lines, "…")
	}
	return strings.Join(lines, "\n")
}

// imageSizers find the size of an image from its beginning, by media type.
var imageSizers = map[string]func(io.Reader) (image.Config, error){
	"image/png": png.DecodeConfig, "image/jpeg": jpeg.DecodeConfig, "image/gif": gif.DecodeConfig,
}

// binaryPreview returns the size of an image, or a hex dump of the first bytes.
func binaryPreview(content []byte) string {
	kind := http.DetectContentType(content)
	if size, ok := imageSizers[kind]; ok {
		if c, err := size(bytes.NewReader(content[:min(len(content), imageHeaderBytes)])); err == nil {
			return fmt.Sprintf("%s of %d × %d pixels", kind, c.Width, c.Height)
		}
	}
	text := hex.Dump(content[:min(len(content), hexDumpBytes)])
	if len(content) > hexDumpBytes {
		text += "…"
	}
	return text
}

// extensions maps media types to file extensions. It has no extension that a double click would
// execute or open as a page.
var extensions = map[string]string{
	"text/markdown": ".md", "text/csv": ".csv", "application/json": ".json",
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp",
	"application/pdf": ".pdf", "application/zip": ".zip", "application/x-gzip": ".gz",
}

// extension returns the file extension for a content. It depends on the content; only for
// text does it use the media type that the artifact declares.
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
	for _, declared := range []string{metaText(a, "mediaType"), a.Type} {
		if strings.HasPrefix(declared, "text/") && extensions[declared] != "" {
			return extensions[declared]
		}
	}
	return ".txt"
}

// maxName is how many characters of a title a file name has.
const maxName = 60

// fileName returns a file name made of an artifact's title or type and an extension. It
// consists of letters, digits, '-', '_' and '.', and begins with a letter or digit. A
// suffix, if not empty, distinguishes it from others of the same title.
func fileName(a client.Artifact, content []byte, suffix string) string {
	ext := extension(a, content)
	name := slug(metaText(a, "title"))
	if name == "" {
		name = slug(a.Type)
	}
	if name = strings.TrimSuffix(name, ext); name == "" {
		name, suffix = a.ID, ""
	}
	if suffix != "" {
		name += "-" + suffix
	}
	return name + ext
}

// slug replaces the characters of a text that do not belong into a file name.
func slug(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.'
	})
	runes := []rune(strings.TrimLeft(strings.Join(words, "-"), "-_."))
	return strings.TrimRight(string(runes[:min(len(runes), maxName)]), "-_.")
}

// metaText returns a text field of an artifact's metadata; "" if there is none.
func metaText(a client.Artifact, field string) string {
	var facts map[string]any
	_ = json.Unmarshal(a.Meta, &facts) // metadata is free-form and may be missing
	text, _ := facts[field].(string)
	return text
}
