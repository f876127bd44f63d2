package runtime

import (
	"bytes"
	"encoding/json"
	"slices"
)

// normalizeJSON gives JSON as the journal gives it back: a process that starts
// anew then sends a model the same bytes.
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

// isNormalized says whether encoding/json would change nothing in a document: there
// is no space between its tokens and nothing in it that is escaped.
func isNormalized(doc []byte) bool {
	inText := false
	for i := 0; i < len(doc); i++ {
		switch b := doc[i]; {
		case b == '"':
			inText = !inText
		case b == '\\':
			i++ // within a string: what is escaped ends none
		case b == '<', b == '>', b == '&', b == 0xE2: // the last begins U+2028
			return false
		case b <= ' ' && !inText:
			return false
		}
	}
	return true
}

// canStore says whether a document is JSON that can be read again also from
// inside a record: encoding/json gives up past some depth.
func canStore(doc []byte) bool {
	const around, most = 100, 10_000
	return json.Valid(doc) && (len(doc) < most-around ||
		json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), doc, bytes.Repeat([]byte("]"), around))))
}
