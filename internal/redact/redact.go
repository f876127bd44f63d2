// Package redact owns how keys are kept out of texts that leave the process or
// stay: what a provider answers, errors, records, recordings.
//
// A Hider hides what it was told, in the forms servers echo it in. What was
// put into another form, such as base64, it does not find.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Mask stands for a secret.
const Mask = "***"

// minSecretLen is how many bytes a secret has; less than that is no secret but a
// word, and answers would be full of holes.
const minSecretLen = 8

// Redactor hides secrets. The nil Hider knows none. Safe for concurrent use.
type Redactor struct {
	forms []string // what is hidden, the longest first
	replacer   *strings.Replacer
}

// New makes the Hider of secrets; nil when none of them has eight bytes or
// more. A secret is hidden without the space around it too: so it is sent in a
// header, and echoed.
func New(values ...string) *Redactor {
	var forms []string
	for _, v := range values {
		for _, v := range [...]string{v, strings.TrimSpace(v)} {
			if len(v) >= minSecretLen {
				forms = append(append(forms, encodings(v)...), encodings(string([]rune(v)))...) // as JSON has what is no UTF-8
			}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	forms = slices.Compact(forms)
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Mask)
	}
	return &Redactor{forms, strings.NewReplacer(pairs...)}
}

// encodings gives a secret as it is and as it stands in JSON, also in JSON that
// is a string of JSON, of encoders that escape for HTML and of those that do not.
func encodings(secret string) []string {
	forms := []string{secret}
	for range 2 {
		for _, form := range slices.Clone(forms) {
			plain := escapeJSON(form, false)
			forms = append(forms, escapeJSON(form, true), plain, strings.ReplaceAll(plain, "/", `\/`))
		}
	}
	return forms
}

// escapeJSON gives a text as it stands between the quotes of a JSON string.
func escapeJSON(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string always can be
	return string(b.Bytes()[1 : b.Len()-len("\"\n")])
}

// Redact gives a text without the secrets.
func (h *Redactor) Redact(text string) string {
	if h == nil {
		return text
	}
	return h.replacer.Replace(text)
}

// Contains says whether a secret stands in a text.
func (h *Redactor) Contains(text []byte) bool {
	return h != nil && slices.ContainsFunc(h.forms, func(form string) bool { return bytes.Contains(text, []byte(form)) })
}

// JSON gives a JSON document without the secrets, and still JSON: where hiding
// them would break it, all of it is hidden.
func (h *Redactor) JSON(doc []byte) []byte {
	if h == nil {
		return doc
	}
	doc = h.redactStrings(doc)
	if !h.Contains(doc) {
		return doc
	}
	if hidden := []byte(h.Redact(string(doc))); json.Valid(hidden) {
		return hidden
	}
	return []byte(`"` + Mask + `"`)
}

// redactStrings hides secrets in the strings of a document whose letters are written
// as \u escapes, in one walk: of a repeated field both values are looked at.
func (h *Redactor) redactStrings(doc []byte) []byte {
	if !bytes.Contains(doc, []byte(`\u`)) {
		return doc
	}
	var out []byte
	kept := 0 // up to where doc is in out
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := stringEnd(doc, i)
		if text, found := h.redactString(doc[i:end]); found {
			out = append(append(out, doc[kept:i]...), text...)
			kept = end
		}
		i = end - 1
	}
	if kept == 0 {
		return doc
	}
	return append(out, doc[kept:]...)
}

// stringEnd gives the place behind the string that begins at i.
func stringEnd(doc []byte, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// redactString gives a string without the secrets in it, if its text has any.
func (h *Redactor) redactString(quoted []byte) (hidden []byte, found bool) {
	var text string
	if !bytes.Contains(quoted, []byte(`\u`)) || json.Unmarshal(quoted, &text) != nil || !h.Contains([]byte(text)) {
		return nil, false
	}
	hidden, _ = json.Marshal(h.Redact(text)) // a string always marshals
	return hidden, true
}
