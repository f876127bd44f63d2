package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// StringRule are rules of strings. The zero Texts allow only the empty one.
type StringRule struct {
	Length Range   // in code points
	Match  Matcher // finds something; nil for every text, as below
	Enum   *Words
}

// Matcher looks for a pattern. A *regexp.Regexp is one.
type Matcher interface{ Match(text []byte) bool }

// Words is a set of texts.
type Words struct{ index }

// NewEnum makes a set.
func NewEnum(words []string) *Words {
	w := new(Words)
	for _, word := range words {
		if w.find([]byte(word)) < 0 {
			w.add(word)
		}
	}
	return w
}

// fit takes a string without its quotes.
func (t *StringRule) fit(quoted []byte, escaped bool) bool {
	if escaped && (t.Enum != nil || t.Match != nil) {
		return false
	}
	return t.fitsLength(quoted, escaped) &&
		(t.Enum == nil || t.Enum.find(quoted) >= 0) &&
		(t.Match == nil || t.Match.Match(quoted))
}

// fitsLength counts code points only where the bytes do not settle it: no code
// point takes more than the twelve of an escaped pair.
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

// codePoints counts those of a string with escapes.
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

// escapeSize gives the bytes of the valid escape, or pair, that quoted begins
// with.
func escapeSize(quoted []byte) int {
	if quoted[1] != 'u' {
		return 2
	}
	_, size := decode(quoted, 0)
	return size
}
