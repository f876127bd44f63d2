package replay

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/internal/redact"
)

// rewrite returns a valid JSON document in which edit has changed every string, keys
// included. The order of fields and the spelling of numbers stay.
//
// Whatever still contains a secret afterwards is masked as a whole: a number, or a string
// that contains it only in its escaped form.
func rewrite(doc []byte, r *redact.Redactor, edit func(string) string) json.RawMessage {
	out := make([]byte, 0, len(doc)+len(doc)/8)
	for len(doc) > 0 {
		n := tokenLen(doc)
		token := doc[:n]
		if token[0] == '"' {
			var text string
			_ = json.Unmarshal(token, &text) // the document is valid
			token = marshal(edit(text))
		}
		if len(token) > 1 && r.Contains(token) {
			token = marshal(redact.Mask)
		}
		out, doc = append(out, token...), doc[n:]
	}
	return out
}

// tokenLen returns the length of the token at the beginning of the rest of a valid
// document.
func tokenLen(doc []byte) int {
	if doc[0] != '"' {
		if n := bytes.IndexAny(doc, "[]{}:,\" \t\r\n"); n >= 0 {
			return max(n, 1)
		}
		return len(doc)
	}
	for i := 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc) // unreachable in a valid document
}

// marshal returns v as JSON on one line, without escapes for HTML.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("replay: marshal a value of this package: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// maxNesting is how deep a line may nest the documents in it. encoding/json reads 10,000
// levels, and the line itself has some.
const maxNesting = 9_900

// embeddable returns doc if it can be part of a line. A document that is not JSON, or is
// nested too deep, becomes a string.
func embeddable(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 || isEmbeddable(doc) {
		return doc
	}
	return marshal(string(doc))
}

// isEmbeddable reports whether doc is JSON that encoding/json can read within a line.
func isEmbeddable(doc []byte) bool {
	if !json.Valid(doc) || len(doc) < 2*maxNesting {
		return json.Valid(doc)
	}
	const spare = 10_000 - maxNesting
	return json.Valid([]byte(strings.Repeat("[", spare) + string(doc) + strings.Repeat("]", spare)))
}
