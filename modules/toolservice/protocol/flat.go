package protocol

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The bodies of messages are small objects of texts and literals. This file reads and writes those
// without reflection, which was most of the time of a call. Everything else is left to
// encoding/json, so that both read the same.

// appendMember appends a member of an object, with a comma after another one.
func appendMember(to []byte, name, value string) []byte {
	return appendText(appendName(to, name), value)
}

// appendName appends the name of a member of an object.
func appendName(to []byte, name string) []byte {
	if to[len(to)-1] != '{' {
		to = append(to, ',')
	}
	return append(append(append(to, '"'), name...), '"', ':')
}

// appendText appends a JSON text.
func appendText(to []byte, text string) []byte {
	if !utf8.ValidString(text) {
		valid, _ := json.Marshal(text) // a text always marshals
		return append(to, valid...)
	}
	const hex = "0123456789abcdef"
	to = append(to, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if !special[c] {
			continue
		}
		to = append(to, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\n':
			to = append(to, '\\', 'n')
		default:
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(to, text[from:]...), '"')
}

// flatValue is a value of an object: a text between its quotes, or true, false or null.
type flatValue struct {
	raw     []byte
	isText  bool
	escaped bool // the text has escapes
}

// storeText stores a text. null changes nothing, as in encoding/json. It reports false for another
// value.
func (v flatValue) storeText(to *string) bool {
	switch {
	case v.isText && v.escaped:
		*to = unescape(v.raw)
	case v.isText:
		*to = string(v.raw)
	default:
		return string(v.raw) == "null"
	}
	return true
}

// storeBool stores true or false. It reports false for another value.
func (v flatValue) storeBool(to *bool) bool {
	if v.isText || string(v.raw) == "null" {
		return false
	}
	*to = string(v.raw) == "true"
	return true
}

// unescape returns a text whose escapes have one letter each.
func unescape(raw []byte) string {
	out := make([]byte, 0, len(raw))
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return string(append(out, raw...))
		}
		out = append(append(out, raw[:at]...), escapes[raw[at+1]])
		raw = raw[at+2:]
	}
}

// escapes are the characters that escapes of one letter mean.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// readFlat calls store with each member of an object. It reports false if the JSON is anything
// but an object of texts, true, false and null. It also reports false if store does. Some
// members may have been stored by then.
func readFlat(data []byte, store func(name []byte, v flatValue) bool) bool {
	r := flatReader{data}
	if !r.take('{') {
		return false
	}
	for {
		name, ok := r.text()
		if !ok || name.escaped || !r.take(':') {
			return false
		}
		value, ok := r.value()
		if !ok || !store(name.raw, value) {
			return false
		}
		if r.take('}') {
			r.skipSpace()
			return len(r.rest) == 0
		}
		if !r.take(',') {
			return false
		}
	}
}

// flatReader reads JSON from the beginning of rest.
type flatReader struct{ rest []byte }

// skipSpace skips white space.
func (r *flatReader) skipSpace() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\r' || r.rest[0] == '\t') {
		r.rest = r.rest[1:]
	}
}

// take takes a character after white space. It reports false if another one is next.
func (r *flatReader) take(c byte) bool {
	r.skipSpace()
	if len(r.rest) == 0 || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

// value reads a text, true, false or null.
func (r *flatReader) value() (v flatValue, ok bool) {
	r.skipSpace()
	if len(r.rest) > 0 && r.rest[0] == '"' {
		return r.text()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(r.rest, []byte(word)) {
			v.raw, r.rest = r.rest[:len(word)], r.rest[len(word):]
			return v, true
		}
	}
	return v, false
}

// text reads a text whose escapes have one letter each.
func (r *flatReader) text() (v flatValue, ok bool) {
	if !r.take('"') {
		return v, false
	}
	v.isText = true
	for i := 0; i < len(r.rest); i++ {
		c := r.rest[i]
		if !special[c] {
			continue
		}
		if c == '"' {
			v.raw, r.rest = r.rest[:i], r.rest[i+1:]
			return v, utf8.Valid(v.raw)
		}
		if i++; c != '\\' || i == len(r.rest) || escapes[r.rest[i]] == 0 {
			return v, false
		}
		v.escaped = true
	}
	return v, false
}

// special are the characters that do not stand for themselves in a JSON text.
var special = func() (is [256]bool) {
	for c := range ' ' {
		is[c] = true
	}
	is['"'], is['\\'] = true, true
	return is
}()
