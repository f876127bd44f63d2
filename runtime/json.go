package runtime

import (
	"bytes"
	"encoding/json"
	"slices"
)

// normalizeJSON returns JSON in the form in which the journal returns it, so
// that a restarted process sends the model the same bytes.
func normalizeJSON(doc json.RawMessage) json.RawMessage {
	if isNormalized(doc) {
		return bytes.Clone(doc)
	}
	text, err := json.Marshal(doc)
	if doc == nil || err != nil {
		return doc
	}
	return text
}

// isNormalized reports whether encoding/json would leave a document unchanged:
// it has no space between tokens and no characters that are escaped. It may
// return false for a document that is normalized.
func isNormalized(doc []byte) bool {
	inText := false
	for i := 0; i < len(doc); i++ {
		switch b := doc[i]; {
		case b == '"':
			inText = !inText
		case b == '\\':
			i++ // the escaped character does not end the string
		case b == '<', b == '>', b == '&', b == 0xE2: // 0xE2 is the first byte of U+2028
			return false
		case b <= ' ' && !inText:
			return false
		}
	}
	return true
}

// canStore reports whether a document is JSON that can also be read as part of
// a record: encoding/json limits the nesting depth.
func canStore(doc []byte) bool {
	const around, most = 100, 10_000
	return json.Valid(doc) && (len(doc) < most-around ||
		json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), doc, bytes.Repeat([]byte("]"), around))))
}
