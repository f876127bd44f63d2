package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
)

// maxContent is the most bytes one call may store, decoded.
const maxContent = 8 << 20

// The values of a tool's encoding field; a text has none.
const (
	inBase64 = "base64"
	inJSON   = "json"
)

// TooLarge refuses content of size bytes where limit are taken.
func TooLarge(size, limit int64) error {
	return errcode.New(errcode.InvalidArguments, "content of %d bytes is over the limit of %d; split it into parts", size, limit).
		With("size", size).With("limit", limit)
}

// checkSize refuses content over maxContent.
func checkSize(size int) error {
	if size <= maxContent {
		return nil
	}
	return TooLarge(int64(size), maxContent)
}

// MediaType says what the content is, by its kind and its first bytes and
// never by its name. It is a guess: nothing is to be run or shown because of it.
func (a Artifact) MediaType() string {
	switch _, encoding := a.plain(); encoding {
	case inBase64:
		return http.DetectContentType(a.Data)
	case inJSON:
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}

// plain gives the content as a file would have it, a text as it is, and its
// encoding, "" for a text.
func (a Artifact) plain() (content []byte, encoding string) {
	var text string
	switch {
	case a.Value == nil:
		return a.Data, inBase64
	case bytes.HasPrefix(a.Value, []byte(`"`)) && json.Unmarshal(a.Value, &text) == nil:
		return []byte(text), ""
	}
	return a.Value, inJSON
}

// isText says whether data can be kept as text.
func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// quote gives text as a JSON string.
func quote(text []byte) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(string(text)) // a string always encodes
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// quote64 gives data as a JSON string in base64.
func quote64(data []byte) json.RawMessage {
	return json.RawMessage(`"` + base64.StdEncoding.EncodeToString(data) + `"`)
}

// decode gives the bytes of content a model wrote, at most maxContent.
func decode(content, encoding string) ([]byte, error) {
	if encoding != inBase64 {
		return []byte(content), checkSize(len(content))
	}
	data, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err,
			"content is not base64 (standard alphabet, with padding), as encoding says")
	}
	return data, checkSize(len(data))
}

// encode gives data as a model reads it: text with encoding "" when it is
// UTF-8, else base64. When more follows data, text ends with the last whole
// character; n is how many bytes of data the content holds.
func encode(data []byte, more bool) (content, encoding string, n int) {
	text := data
	if more {
		text = wholeRunes(data)
	}
	// A part shorter than its only character has no text: its bytes keep the
	// reader moving.
	if !utf8.Valid(text) || (len(text) == 0 && len(data) > 0) {
		return base64.StdEncoding.EncodeToString(data), inBase64, len(data)
	}
	return string(text), "", len(text)
}

// wholeRunes cuts an unfinished character off the end of data.
func wholeRunes(data []byte) []byte {
	for i := len(data) - 1; i >= max(0, len(data)-utf8.UTFMax); i-- {
		if !utf8.RuneStart(data[i]) {
			continue
		}
		if utf8.FullRune(data[i:]) {
			break
		}
		return data[:i]
	}
	return data
}
