package parameter

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"net/url"
	"strings"
	"unicode"
)

// Format is the kind of text that a Template makes. It decides how a value is
// escaped, so that no value ends the place where it stands.
type Format uint8

// The formats. The first three have no syntax that this package could escape for:
// a value is printed as it is.
const (
	FormatStatement Format = iota // a database statement; Spec.Escape quotes its values
	FormatMessage                 // prose for people and models; a missing value prints as <no value>
	FormatPlain                   // a body of type text/plain
	FormatPath                    // path and query of a URL; a value must not be empty
	FormatForm                    // a body of type application/x-www-form-urlencoded
	FormatXML                     // a body of XML or HTML
	FormatJSON                    // a body of JSON; the whole text is checked
	FormatOther                   // a body of unknown syntax; values have letters, digits and " -_.@/" only
)

// String returns what a text of the format is called in errors.
func (f Format) String() string {
	switch f {
	case FormatStatement:
		return "statement"
	case FormatMessage:
		return "message"
	case FormatPath:
		return "path"
	}
	return "requestBody"
}

// escapes reports whether values are escaped. Their strings are of type text then.
func (f Format) escapes() bool { return f >= FormatPath }

// isRequest reports whether texts are part of an HTTP request. Maps print as JSON
// there.
func (f Format) isRequest() bool { return f >= FormatPlain }

// text is a string from the caller that has to be escaped before it is printed. A
// string of another type is the template's own, or escaped already.
type text string

// document is a value that is written as JSON already.
type document string

var (
	errEmptyPart = errors.New("is empty: a path needs all its parts")
	errSpecial   = errors.New("has characters that may have a meaning in a body of this type; use JSON, XML, a form or text/plain")
)

// escape returns a string as it is written in a text of the format.
func (f Format) escape(value text) (string, error) {
	raw := string(value)
	switch {
	case f == FormatPath && raw == "":
		return "", errEmptyPart
	case f == FormatPath:
		return strings.ReplaceAll(url.QueryEscape(raw), "+", "%20"), nil
	case f == FormatForm:
		return url.QueryEscape(raw), nil
	case f == FormatXML:
		var out strings.Builder
		_ = xml.EscapeText(&out, []byte(raw)) // a Builder never fails
		return out.String(), nil
	case f == FormatJSON:
		quoted, _ := json.Marshal(raw) // a string always marshals
		return string(stringStart) + escapeMarks.Replace(string(quoted[1:len(quoted)-1])) + string(stringEnd), nil
	case f == FormatOther && strings.ContainsFunc(raw, isSpecial):
		return "", errSpecial
	}
	return raw, nil
}

// isSpecial reports whether a character has a meaning in some syntax.
func isSpecial(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(" -_.@/", c)
}

// document returns JSON as it is written in a text of the format.
func (f Format) document(doc document) string {
	switch f {
	case FormatJSON:
		return string(valueStart) + escapeMarks.Replace(string(doc)) + string(valueEnd)
	case FormatOther: // JSON has a syntax of its own there
		return string(doc)
	}
	escaped, _ := f.escape(text(doc)) // JSON is never empty
	return escaped
}

// Marks stand around each value in JSON until removeMarks removes them. Neither the
// template nor a value contains them.
const (
	stringStart = '\uE000' // what follows has to stand within quotes
	stringEnd   = '\uE001'
	valueStart  = '\uE002' // what follows has to stand where a value does
	valueEnd    = '\uE003'
	allMarks    = string(stringStart) + string(stringEnd) + string(valueStart) + string(valueEnd)
)

// escapeMarks escapes the marks in JSON, where they can stand in strings only.
var escapeMarks = strings.NewReplacer("\uE000", `\ue000`, "\uE001", `\ue001`, "\uE002", `\ue002`, "\uE003", `\ue003`)

// removeMarks removes the marks from JSON. It rejects JSON in which a value does not
// stand where its mark requires, and text that is not JSON.
func removeMarks(marked string) (string, error) {
	var out strings.Builder
	quoted, escaped := false, false
	for _, c := range marked {
		switch {
		case c == stringStart && !quoted, c == valueStart && quoted:
			return "", errors.New(`write {{json .name}} for a value with its quotes, or "{{.name}}" within them`)
		case strings.ContainsRune(allMarks, c):
			continue
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		}
		out.WriteRune(c)
	}
	if !json.Valid([]byte(out.String())) {
		return "", errors.New("it is not JSON with these values")
	}
	return out.String(), nil
}
