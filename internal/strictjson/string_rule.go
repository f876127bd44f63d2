package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// StringRule has the rules of strings. The zero StringRule allows only the empty string.
type StringRule struct {
	Length Range   // in code points
	Match  Matcher // must find a match; nil allows every string
	Enum   *Enum   // the allowed strings; nil allows every string
}

// Matcher reports whether text matches a pattern. *regexp.Regexp implements it.
type Matcher interface{ Match(text []byte) bool }

// Enum is a set of strings.
type Enum struct{ index }

// NewEnum returns the set of words.
func NewEnum(words []string) *Enum {
	w := new(Enum)
	for _, word := range words {
		if w.find([]byte(word)) < 0 {
			w.add(word)
		}
	}
	return w
}

// fits reports whether a string satisfies the rules; quoted is without its quotes.
func (t *StringRule) fits(quoted []byte, escaped bool) bool {
	if escaped && (t.Enum != nil || t.Match != nil) {
		return false
	}
	return t.fitsLength(quoted, escaped) &&
		(t.Enum == nil || t.Enum.find(quoted) >= 0) &&
		(t.Match == nil || t.Match.Match(quoted))
}

// fitsLength counts code points only if the number of bytes does not decide: a code point has
// one to twelve bytes, the length of an escaped surrogate pair.
func (t *StringRule) fitsLength(quoted []byte, escaped bool) bool {
	n := len(quoted)
	if t.Length.Min <= (n+11)/12 && n <= t.Length.Max {
		return true
	}
	if escaped {
		return t.Length.contains(codePoints(quoted))
	}
	return t.Length.contains(utf8.RuneCount(quoted))
}

// codePoints returns the number of code points of a string with escapes.
func codePoints(quoted []byte) (n int) {
	for len(quoted) > 0 {
		plain := bytes.IndexByte(quoted, '\\')
		if plain < 0 {
			return n + utf8.RuneCount(quoted)
		}
		n += utf8.RuneCount(quoted[:plain]) + 1
		quoted = quoted[plain+escapeSize(quoted[plain:]):]
	}
	return n
}

// escapeSize returns the length of the valid escape or surrogate pair at the beginning of
// quoted.
func escapeSize(quoted []byte) int {
	if quoted[1] != 'u' {
		return 2
	}
	_, size := decode(quoted, 0)
	return size
}
