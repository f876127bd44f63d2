package builtin

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
)

// maxContent is the most bytes one call may store, decoded.
const maxContent = 8 << 20

// inBase64 is the one value of a tool's encoding field.
const inBase64 = "base64"

// checkSize refuses content over maxContent.
func checkSize(size int) error {
	if size <= maxContent {
		return nil
	}
	return errcode.New(errcode.InvalidArguments,
		"content of %d bytes is over the limit of %d (8 MiB); split it into parts", size, maxContent).
		With("size", size).With("limit", maxContent)
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
