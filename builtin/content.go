package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Values of the encoding field of tools; it is empty for text.
const (
	inBase64 = "base64"
	inJSON   = "json"
)

// MediaType returns a guess of the media type. It depends on whether the content is text, JSON or
// bytes, and for bytes on the first of them. Do not execute or render content because of it.
func (a Artifact) MediaType() string {
	switch _, encoding := a.fileContent(); encoding {
	case inBase64:
		return http.DetectContentType(a.Data)
	case inJSON:
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// fileContent returns the content as the bytes of a file and its encoding: "" for
// text, inJSON for other JSON, inBase64 for binary data.
func (a Artifact) fileContent() (content []byte, encoding string) {
	var text string
	switch {
	case a.Value == nil:
		return a.Data, inBase64
	case bytes.HasPrefix(a.Value, []byte(`"`)) && json.Unmarshal(a.Value, &text) == nil:
		return []byte(text), ""
	}
	return a.Value, inJSON
}

// quote returns text as a JSON string.
func quote(text []byte) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(string(text)) // encoding a string cannot fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// quoteBase64 returns data as a JSON string in base64.
func quoteBase64(data []byte) json.RawMessage {
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString(data) + `"`)
}

// decodeContent returns the bytes of content that a model wrote, at most
// workspace.MaxContent.
func decodeContent(content, encoding string) ([]byte, error) {
	if encoding != inBase64 {
		return []byte(content), workspace.CheckSize(len(content))
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err,
			"decode content: not base64 with the standard alphabet and padding")
	}
	return data, workspace.CheckSize(len(data))
}

// encodePart returns the beginning of data in a form for models: text with encoding ""
// if data is UTF-8, otherwise base64. The content is cut so
// that it takes at most limit bytes in a JSON string. But one character of text, or three bytes
// of data, are never cut. If more follows, text ends with the last complete character; n is the
// number of bytes of data in the content.
func encodePart(data []byte, more bool, limit int) (content, encoding string, n int) {
	text := data
	if more {
		text = textutil.TrimPartialRune(data)
	}
	// A part shorter than one character has no text. Its bytes are returned, so
	// that a reader who adds n to the offset makes progress.
	if !utf8.Valid(text) || (len(text) == 0 && len(data) > 0) {
		data = fitBase64(data, limit)
		return base64.StdEncoding.EncodeToString(data), inBase64, len(data)
	}
	_, first := utf8.DecodeRune(text)
	content = string(text)
	content = content[:max(first, len(textutil.PrefixJSON(content, limit)))]
	return content, "", len(content)
}

// fitBase64 returns the beginning of data that takes at most limit bytes as base64. It returns
// three bytes even if these take more, and all of data if it is shorter.
func fitBase64(data []byte, limit int) []byte {
	return data[:min(len(data), max(1, limit/4)*3)]
}
