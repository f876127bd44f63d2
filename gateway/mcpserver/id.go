package mcpserver

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// idEncoder keep the numbers that identify requests as they are written. The SDK makes
// floating-point numbers of them, which are others beyond 2^53; so it is shown a
// text instead that holds the number, and what it answers is changed back. The
// text begins with a secret, so that nothing else in an answer is one.
type idEncoder struct{ begin string }

func newIDs() idEncoder { return idEncoder{`"` + rand.Text() + ":"} }

// replacement is a part of a message that is shown as something else.
type replacement struct {
	at   int
	text string
}

// encode gives a message, or a batch, as the SDK may see it.
func (k idEncoder) encode(body []byte) []byte {
	doc := gjson.ParseBytes(body)
	var list []replacement
	if doc.IsArray() {
		doc.ForEach(func(_, message gjson.Result) bool {
			list = append(list, numbers(message)...)
			return true
		})
	} else {
		list = numbers(doc)
	}
	if len(list) == 0 {
		return body
	}
	slices.SortFunc(list, func(a, b replacement) int { return cmp.Compare(a.at, b.at) })
	shown, from := make([]byte, 0, len(body)+len(list)*(len(k.begin)+1)), 0
	for _, s := range list {
		shown = append(append(append(append(shown, body[from:s.at]...), k.begin...), s.text...), '"')
		from = s.at + len(s.text)
	}
	return append(shown, body[from:]...)
}

// numbers finds the ids of a message that the SDK would change: its own, and the
// one of the request that it cancels.
func numbers(message gjson.Result) (list []replacement) {
	for _, v := range []gjson.Result{message.Get("id"), message.Get("params.requestId")} {
		if v.Type == gjson.Number && !isPlain(v.Raw) {
			list = append(list, replacement{v.Index, v.Raw})
		}
	}
	return list
}

// isPlain says whether a number is one that everybody reads alike.
func isPlain(number string) bool {
	digits := strings.TrimPrefix(number, "-")
	return len(digits) <= 15 && strings.Trim(digits, "0123456789") == "" && number != "-0"
}

// meant gives what an id means, however a text is written in JSON.
func meant(id string) string {
	if v := gjson.Parse(id); v.Type == gjson.String {
		return `"` + v.Str
	}
	return id
}

// decode gives what the SDK answers with the numbers as they were.
func (k idEncoder) decode(text []byte) []byte {
	before, rest, found := bytes.Cut(text, []byte(k.begin))
	if !found {
		return bytes.ReplaceAll(text, []byte(k.begin[1:]), nil) // in a sentence
	}
	number, after, _ := bytes.Cut(rest, []byte(`"`))
	return slices.Concat(before, number, k.decode(after))
}
