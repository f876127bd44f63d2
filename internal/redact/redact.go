// Package redact removes API keys from text that is logged, recorded or sent, such as
// answers of providers, errors and recordings.
//
//	r := redact.New(key)
//	log.Warn(r.Redact(message))
//
// A Redactor finds a secret as it is and in the escapes of JSON. It does not find
// other encodings, such as base64.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Mask replaces a secret.
const Mask = "***"

// minSecretLen is the length in bytes from which a value is redacted. A shorter one
// is probably a word, which would be removed from ordinary text.
const minSecretLen = 8

// Redactor replaces secrets by Mask. A nil Redactor changes nothing. Safe for
// concurrent use.
type Redactor struct {
	forms    []string // encodings of the secrets, longest first
	replacer *strings.Replacer
}

// New returns a Redactor for values, or nil if none of them has eight bytes. A value
// is also redacted without the white space around it, since HTTP headers drop that.
func New(values ...string) *Redactor {
	var forms []string
	for _, v := range values {
		for _, v := range [...]string{v, strings.TrimSpace(v)} {
			if len(v) >= minSecretLen {
				forms = append(append(forms, encodings(v)...), encodings(string([]rune(v)))...) // how encoding/json writes invalid UTF-8
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

// encodings returns a secret as it is, as part of a JSON string, and as part of a
// JSON string inside a JSON string; with and without escapes for HTML and slashes.
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

// escapeJSON returns text as it is between the quotes of a JSON string.
func escapeJSON(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string always can be
	return string(b.Bytes()[1 : b.Len()-len("\"\n")])
}

// Redact returns text with the secrets replaced.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// Contains reports whether text has a secret in one of the known encodings.
func (r *Redactor) Contains(text []byte) bool {
	return r != nil && slices.ContainsFunc(r.forms, func(form string) bool { return bytes.Contains(text, []byte(form)) })
}

// JSON returns a JSON document with the secrets replaced. If that would not be valid
// JSON, such as for a secret that is a number, it returns Mask as a JSON string.
func (r *Redactor) JSON(doc []byte) []byte {
	if r == nil {
		return doc
	}
	doc = r.redactStrings(doc)
	if !r.Contains(doc) {
		return doc
	}
	if redacted := []byte(r.Redact(string(doc))); json.Valid(redacted) {
		return redacted
	}
	return []byte(`"` + Mask + `"`)
}

// redactStrings replaces secrets in those strings of a document that have \u
// escapes. It scans the bytes, so that it sees every value of a repeated field.
func (r *Redactor) redactStrings(doc []byte) []byte {
	if !bytes.Contains(doc, []byte(`\u`)) {
		return doc
	}
	var out []byte
	copied := 0 // bytes of doc that are in out
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := stringEnd(doc, i)
		if text, found := r.redactString(doc[i:end]); found {
			out = append(append(out, doc[copied:i]...), text...)
			copied = end
		}
		i = end - 1
	}
	if copied == 0 {
		return doc
	}
	return append(out, doc[copied:]...)
}

// stringEnd returns the index after the string that begins at i.
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

// redactString returns a quoted string with the secrets in it replaced. It reports
// false if there are none or the string has no \u escapes.
func (r *Redactor) redactString(quoted []byte) (redacted []byte, found bool) {
	var text string
	if !bytes.Contains(quoted, []byte(`\u`)) || json.Unmarshal(quoted, &text) != nil || !r.Contains([]byte(text)) {
		return nil, false
	}
	redacted, _ = json.Marshal(r.Redact(text)) // a string always marshals
	return redacted, true
}
