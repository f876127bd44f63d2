package replay

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/redact"
)

// rewrite gives a JSON document with every text, also the keys, changed by
// edit. Order and numbers stay as they are, but what holds a secret even then,
// a number or a text by the way it is escaped, is hidden whole.
func rewrite(doc []byte, r *redact.Redactor, edit func(string) string) json.RawMessage {
	out := make([]byte, 0, len(doc)+len(doc)/8)
	for len(doc) > 0 {
		n := token(doc)
		word := doc[:n]
		if word[0] == '"' {
			word = quoted(edit(unquoted(word)))
		}
		if len(word) > 1 && r.Contains(word) {
			word = quoted(redact.Mask)
		}
		out, doc = append(out, word...), doc[n:]
	}
	return out
}

// token gives the length of the token that a valid document goes on with.
func token(doc []byte) int {
	if doc[0] != '"' {
		n := bytes.IndexAny(doc, "[]{}:,\" \t\r\n")
		if n < 0 { // the document ends with it
			return len(doc)
		}
		return max(n, 1)
	}
	for i := 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc) // not of a valid document
}

// unquoted gives the text of a JSON string.
func unquoted(word []byte) string {
	if !bytes.ContainsRune(word, '\\') && utf8.Valid(word) {
		return string(word[1 : len(word)-1])
	}
	var text string
	_ = json.Unmarshal(word, &text) // the document is valid
	return text
}

// quoted gives a text as a JSON string for readers, not for HTML.
func quoted(text string) []byte {
	if strings.IndexFunc(text, escaped) < 0 {
		return append(append(append(make([]byte, 0, len(text)+2), '"'), text...), '"')
	}
	return compact(text)
}

func escaped(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError || r == '\u2028' || r == '\u2029'
}

// compact marshals without escapes for HTML.
func compact(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("replay: what was made to be JSON is not: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// canonicalJSON gives a document that may be written into a line: one that is no
// JSON, or nested deeper than a reader would follow inside a line, is quoted.
func canonicalJSON(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 || isValidJSON(doc) {
		return doc
	}
	return quoted(string(doc))
}

func isValidJSON(doc []byte) bool { return json.Valid(doc) && depth(doc) <= maxDepth }

// maxDepth leaves room for what is around a document; encoding/json follows
// 10,000 levels.
const maxDepth = 9_900

func depth(doc []byte) (most int) {
	now := 0
	for len(doc) > 0 {
		n := token(doc)
		switch doc[0] {
		case '[', '{':
			now++
			most = max(most, now)
		case ']', '}':
			now--
		}
		doc = doc[n:]
	}
	return most
}
