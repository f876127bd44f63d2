package argschema

import (
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// stringRule has the rules of strings. The zero stringRule allows only the empty string.
type stringRule struct {
	length countRange  // in code points
	match  matcher     // must find a match; nil allows every string
	enum   *stringEnum // the allowed strings; nil allows every string
}

// matcher reports whether text matches a pattern. *regexp.Regexp implements it.
type matcher interface{ Match(text []byte) bool }

// stringEnum is a set of strings.
type stringEnum struct{ index strictjson.KeyIndex }

// newStringEnum returns the set of words.
func newStringEnum(words []string) *stringEnum {
	e := new(stringEnum)
	for _, word := range words {
		if e.index.Find([]byte(word)) < 0 {
			e.index.Add(word)
		}
	}
	return e
}

// fits reports whether a string satisfies the rules; quoted is without its quotes.
func (r *stringRule) fits(quoted []byte, escaped bool) bool {
	if escaped && (r.enum != nil || r.match != nil) {
		return false
	}
	return r.fitsLength(quoted, escaped) &&
		(r.enum == nil || r.enum.index.Find(quoted) >= 0) &&
		(r.match == nil || r.match.Match(quoted))
}

// fitsLength counts code points only if the number of bytes does not decide. A code point has one
// to twelve bytes. Twelve bytes are the length of an escaped surrogate pair.
func (r *stringRule) fitsLength(quoted []byte, escaped bool) bool {
	n := len(quoted)
	if r.length.low <= (n+11)/12 && n <= r.length.high {
		return true
	}
	if escaped {
		return r.length.contains(strictjson.CodePoints(quoted))
	}
	return r.length.contains(utf8.RuneCount(quoted))
}
