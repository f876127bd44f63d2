package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// What fits tells is true only of a value that surely keeps the rules. What
// would take long or memory to find out is left to somebody else: numbers
// with exponents or very many digits, patterns for text with escapes.

// allows says whether values of a kind may be here.
func (s *Shape) allows(kind Kinds) bool {
	return s == nil || s.Rules == nil || s.Rules.Kinds&kind != 0
}

// closed says whether only known names may be here.
func (s *Shape) closed() bool {
	return s != nil && s.Rules != nil && s.Rules.Objects != nil && s.Rules.Objects.Closed
}

// unique says whether elements have to differ.
func (s *Shape) unique() bool {
	return s != nil && s.Rules != nil && s.Rules.Arrays != nil && s.Rules.Arrays.Unique
}

func (s *Shape) fitsArray(count int) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsArray != 0 && (r.Arrays == nil || r.Arrays.Count.holds(count))
}

func (s *Shape) fitsObject(count int, seen uint64) bool {
	if s == nil || s.Rules == nil {
		return true
	}
	r := s.Rules
	return r.Kinds&IsObject != 0 && (r.Objects == nil || r.Objects.Count.holds(count) && seen&r.Objects.Required == r.Objects.Required)
}

// fitsText takes a string without its quotes.
func (r *Rules) fitsText(quoted []byte, escaped bool) bool {
	return r.Kinds&IsString != 0 && (r.Texts == nil || r.Texts.fit(quoted, escaped))
}

func (t *Texts) fit(quoted []byte, escaped bool) bool {
	if escaped && (t.Among != nil || t.Match != nil) {
		return false
	}
	return t.fitsLength(quoted, escaped) &&
		(t.Among == nil || t.Among.find(quoted) >= 0) &&
		(t.Match == nil || t.Match.Match(quoted))
}

// fitsLength counts code points only where the bytes do not settle it: no code
// point takes more than the twelve of an escaped pair.
func (t *Texts) fitsLength(quoted []byte, escaped bool) bool {
	n := len(quoted)
	if t.Length.Min <= (n+11)/12 && n <= t.Length.Max {
		return true
	}
	if escaped {
		return t.Length.holds(codePoints(quoted))
	}
	return t.Length.holds(utf8.RuneCount(quoted))
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

// fitsInteger takes a number without fraction, if its value is known.
func (r *Rules) fitsInteger(v int64, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fitsInteger(v))
}

// fitsNumber takes any number, if it is known.
func (r *Rules) fitsNumber(d decimal, known bool) bool {
	return r.Kinds&IsNumber != 0 && (r.Numbers == nil || known && r.Numbers.fits(d))
}

// distinct holds the element that stands from start up to end against those of
// its array that are held from first on. Only what is written in one way can
// be compared as it is written, and only a few with each other.
func (w *walker) distinct(first, start, end int) {
	if !canonical(w.data[start:end]) || w.held-first == manyKeys || w.held == len(w.keys) {
		w.fit(false)
		return
	}
	w.fit(!w.paired(first, key{start: int32(start), end: int32(end)}))
}

// canonical says whether no other text means the same value.
func canonical(element []byte) bool {
	switch b := element[0]; {
	case b == '"':
		return bytes.IndexByte(element, '\\') < 0
	case isDigit(b):
		return bytes.IndexFunc(element, func(r rune) bool { return r < '0' || r > '9' }) < 0
	}
	return 'a' <= element[0] && element[0] <= 'z'
}
