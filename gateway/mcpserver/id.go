package mcpserver

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// idEncoder preserves JSON-RPC ids that the SDK would change. The SDK decodes
// numeric ids as float64, which is inexact beyond 2^53. encode replaces such a
// number with a string that contains it; decode restores the number in the
// SDK's answers. The string begins with a random prefix, so that no other text
// in an answer matches it.
type idEncoder struct{ prefix string }

// newIDEncoder returns an encoder with a new random prefix.
func newIDEncoder() idEncoder { return idEncoder{`"` + rand.Text() + ":"} }

// replacement is a number in a message that is shown to the SDK as a string.
type replacement struct {
	at   int    // offset of the number in the message
	text string // the number as it is written
}

// encode returns a message, or a batch, with inexact ids replaced.
func (e idEncoder) encode(body []byte) []byte {
	doc := gjson.ParseBytes(body)
	var list []replacement
	if doc.IsArray() {
		doc.ForEach(func(_, message gjson.Result) bool {
			list = append(list, inexactIDs(message)...)
			return true
		})
	} else {
		list = inexactIDs(doc)
	}
	if len(list) == 0 {
		return body
	}
	slices.SortFunc(list, func(a, b replacement) int { return cmp.Compare(a.at, b.at) })
	out, copied := make([]byte, 0, len(body)+len(list)*(len(e.prefix)+1)), 0
	for _, s := range list {
		out = append(append(append(append(out, body[copied:s.at]...), e.prefix...), s.text...), '"')
		copied = s.at + len(s.text)
	}
	return append(out, body[copied:]...)
}

// inexactIDs returns the ids in a message that the SDK would change: its own id
// and the id of the request it cancels.
func inexactIDs(message gjson.Result) (list []replacement) {
	for _, v := range []gjson.Result{message.Get("id"), message.Get("params.requestId")} {
		if v.Type == gjson.Number && !isExactNumber(v.Raw) {
			list = append(list, replacement{v.Index, v.Raw})
		}
	}
	return list
}

// isExactNumber reports whether float64 keeps the value and spelling of a
// number.
func isExactNumber(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	return len(digits) <= 15 && strings.Trim(digits, "0123456789") == "" && number != "-0"
}

// canonicalID returns an id in a form that is equal for equal ids, whatever
// JSON escapes they use.
func canonicalID(id string) string {
	if v := gjson.Parse(id); v.Type == gjson.String {
		return `"` + v.Str
	}
	return id
}

// decode returns what the SDK answers with the original numbers restored.
func (e idEncoder) decode(text []byte) []byte {
	before, rest, found := bytes.Cut(text, []byte(e.prefix))
	if !found {
		return bytes.ReplaceAll(text, []byte(e.prefix[1:]), nil) // inside an error message
	}
	number, after, _ := bytes.Cut(rest, []byte(`"`))
	return slices.Concat(before, number, e.decode(after))
}
