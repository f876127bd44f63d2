// Package redact removes secrets, such as API keys, from text that is logged, recorded
// or sent: errors of servers, answers of providers, results and recordings.
//
//	r := redact.New(key)
//	log.Warn(r.RedactText(message))
//
// A Redactor finds a secret as it is, in the escapes of JSON, in base64 at any
// alignment and with line breaks, and percent-encoded. It does not find other encodings,
// nor a secret that was taken apart. ValueSecrets and HeaderSecrets return the secrets that a
// configured value contains.
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
	numeric  bool     // a form may be part of a number
	replacer *strings.Replacer
	percent  *escapeMatcher
	parts    *escapeMatcher // of texts that arrive in parts
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
	return &Redactor{forms, slices.ContainsFunc(forms, isNumeric), strings.NewReplacer(pairs...), newEscapeMatcher(forms), newPartsMatcher(forms)}
}

// encodings returns the forms of a secret: as it is and in base64. Each stands alone, in a JSON
// string, and in a JSON string inside a JSON string, with and without escapes for HTML and slashes.
func encodings(secret string) []string {
	forms := append(base64Forms(secret), secret)
	for range 2 {
		for _, form := range slices.Clone(forms) {
			plain := escapeJSON(form)
			forms = append(forms, escapeHTMLJSON(form), plain, strings.ReplaceAll(plain, "/", `\/`))
		}
		slices.Sort(forms)
		forms = slices.Compact(forms)
	}
	return forms
}

// escapeJSON returns text as it is between the quotes of a JSON string.
func escapeJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always can be
	return string(b.Bytes()[1 : b.Len()-len("\"\n")])
}

// escapeHTMLJSON is escapeJSON with "<", ">" and "&" escaped, too.
func escapeHTMLJSON(text string) string {
	b, _ := json.Marshal(text) // a string always can be
	return string(b[1 : len(b)-1])
}

// RedactText returns text with the secrets replaced.
func (r *Redactor) RedactText(text string) string {
	if r == nil {
		return text
	}
	return r.percent.replace(r.redactWrapped(r.replacer.Replace(text)))
}

// RedactTail is RedactText for the end of a longer text. A secret that the cut has
// split is removed too.
func (r *Redactor) RedactTail(text string) string {
	if r == nil {
		return text
	}
	longest := 3 * len(r.forms[0]) // percent-encoded
	text = r.RedactText(text)
	return text[min(longest, len(text)):]
}

// Contains reports whether text has a secret in one of the known encodings.
func (r *Redactor) Contains(text []byte) bool {
	if r == nil {
		return false
	}
	original := string(text)
	return r.RedactText(original) != original
}

// RedactJSON returns a JSON document with the secrets replaced. A number with a secret
// becomes a string. If the result would not be valid JSON, such as for a secret that
// spans several values, RedactJSON returns Mask as a JSON string. A text that is not
// JSON is redacted like a part of a document.
func (r *Redactor) RedactJSON(doc []byte) []byte {
	if r == nil {
		return doc
	}
	redacted := r.RedactText(string(r.redactTokens(doc, 0)))
	switch {
	case redacted == string(doc):
		return doc
	case json.Valid([]byte(redacted)) || !json.Valid(doc):
		return []byte(redacted)
	}
	return []byte(`"` + Mask + `"`)
}

// RedactError returns err with the secrets in its text replaced; nil for nil. It wraps the errors
// that err wraps, so that errors.Is and errors.As find them.
func (r *Redactor) RedactError(err error) error {
	if r == nil || err == nil {
		return err
	}
	text := err.Error()
	if redacted := r.RedactText(text); redacted != text {
		return &redactedError{redacted, err}
	}
	return err
}

// redactedError is an error with another text.
type redactedError struct {
	text string
	err  error
}

// Error implements error.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the error whose text was redacted.
func (e *redactedError) Unwrap() error { return e.err }

// maxNested is how deep a JSON document in a string of another is searched for escapes.
const maxNested = 3

// redactTokens replaces secrets in those strings of a document that have escapes, and
// numbers with secrets. It scans the bytes, so that it sees every value of a repeated field.
func (r *Redactor) redactTokens(doc []byte, depth int) []byte {
	var out []byte
	copied := 0 // bytes of doc that are in out
	for i := 0; i < len(doc); {
		end := tokenEnd(doc, i)
		if text, found := r.redactToken(doc[i:end], depth); found {
			out = append(append(out, doc[copied:i]...), text...)
			copied = end
		}
		i = end
	}
	if copied == 0 {
		return doc
	}
	return append(out, doc[copied:]...)
}

// redactToken returns a token with the secrets in it replaced. It reports false if
// redactTokens does not replace it.
func (r *Redactor) redactToken(token []byte, depth int) (redacted []byte, found bool) {
	switch {
	case token[0] == '"':
		return r.redactString(token, depth)
	case r.numeric && len(token) >= minSecretLen && isNumberByte(token[0]) && r.Contains(token):
		return []byte(`"` + Mask + `"`), true
	}
	return nil, false
}

// tokenEnd returns the index after the string, number or other byte at i.
func tokenEnd(doc []byte, i int) int {
	if doc[i] == '"' {
		return stringEnd(doc, i)
	}
	end := i
	for end < len(doc) && isNumberByte(doc[end]) {
		end++
	}
	return max(end, i+1)
}

// isNumberByte reports whether a number may contain c.
func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// isNumeric reports whether a number may contain text.
func isNumeric(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c >= 0x80 || !isNumberByte(byte(c)) }) &&
		strings.Count(strings.ToLower(text), "e") <= 1
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
// false if there are none or the string has no escapes that hide one.
func (r *Redactor) redactString(quoted []byte, depth int) (redacted []byte, found bool) {
	var text string
	if bytes.IndexByte(quoted, '\\') < 0 || json.Unmarshal(quoted, &text) != nil {
		return nil, false
	}
	clean := text
	if depth < maxNested {
		clean = string(r.redactTokens([]byte(text), depth+1))
	}
	if clean = r.RedactText(clean); clean == text {
		return nil, false
	}
	redacted, _ = json.Marshal(clean) // a string always marshals
	return redacted, true
}
