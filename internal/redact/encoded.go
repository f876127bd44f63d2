package redact

import (
	"encoding/base64"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
)

// base64Forms returns the forms in which base64 shows a secret. One form is the base64 of the
// secret alone. A longer text may contain the secret at one of three alignments. For each,
// base64Forms returns the digits that depend on the secret alone.
func base64Forms(secret string) []string {
	var forms []string
	for _, e := range [...]*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, e.EncodeToString([]byte(secret)), e.WithPadding(base64.NoPadding).EncodeToString([]byte(secret)))
		for before := range 3 {
			digits := e.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
			forms = append(forms, digits[(before*8+5)/6:(before+len(secret))*8/6])
		}
	}
	return forms
}

var lineBreaks = strings.NewReplacer("\r", "", "\n", "")

// redactWrapped returns text with those base64 texts replaced that hold a secret across
// a line break.
func (r *Redactor) redactWrapped(text string) string {
	var out strings.Builder
	copied := 0 // bytes of text that are in out
	for i := 0; i < len(text); {
		line := strings.IndexByte(text[i:], '\n')
		if line < 0 {
			break
		}
		start, end := wrappedAround(text, i+line, copied)
		joined := lineBreaks.Replace(text[start:end])
		if redacted := r.replacer.Replace(joined); redacted != joined {
			out.WriteString(text[copied:start] + redacted)
			copied = end
		}
		i = max(end, i+line+1)
	}
	if copied == 0 {
		return text
	}
	return out.String() + text[copied:]
}

// wrappedAround returns the bounds of the base64 digits and line breaks around index i,
// from the index first on.
func wrappedAround(text string, i, first int) (start, end int) {
	start, end = i, i
	for start > first && isBase64Byte(text[start-1]) {
		start--
	}
	for end < len(text) && isBase64Byte(text[end]) {
		end++
	}
	return start, end
}

// isBase64Byte reports whether c is a digit of base64, its padding or a line break.
func isBase64Byte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("+/-_=\r\n", c) >= 0
}

// escapeMatcher finds texts of which any bytes are percent-encoded, once or several
// times, with hexadecimal digits in either case.
type escapeMatcher struct {
	byFirst [256][]string // the texts by their first byte, longest first
	longest int           // bytes of the longest match
	parts   bool          // the text comes in parts: bytes may also be escaped as in JSON, with line breaks between them
}

// newEscapeMatcher returns a matcher for forms, which are sorted, longest first. A
// space may also be encoded as +.
func newEscapeMatcher(forms []string) *escapeMatcher {
	m := &escapeMatcher{longest: (3 + 2*(maxEscapes-1)) * len(forms[0])}
	m.addForms(forms)
	return m
}

// newPartsMatcher is newEscapeMatcher for a text that comes in parts.
func newPartsMatcher(forms []string) *escapeMatcher {
	longest := (maxBackslashes + len("u0000") + maxLineBreaks*(maxBackslashes+len("n"))) * len(forms[0])
	m := &escapeMatcher{longest: longest, parts: true}
	m.addForms(forms)
	return m
}

func (m *escapeMatcher) addForms(forms []string) {
	for _, form := range forms {
		m.byFirst[form[0]] = append(m.byFirst[form[0]], form)
		if strings.Contains(form, " ") {
			m.byFirst[form[0]] = append(m.byFirst[form[0]], strings.ReplaceAll(form, " ", "+"))
		}
	}
}

// replace returns text with each match replaced by Mask.
func (m *escapeMatcher) replace(text string) string {
	var out strings.Builder
	copied := 0 // bytes of text that are in out
	for start, end := m.find(text, 0); end > 0; start, end = m.find(text, end) {
		out.WriteString(text[copied:start] + Mask)
		copied = end
	}
	if copied == 0 {
		return text
	}
	return out.String() + text[copied:]
}

// find returns the first match from the index from on. end is 0 if there is none.
func (m *escapeMatcher) find(text string, from int) (start, end int) {
	if !m.parts && !strings.ContainsAny(text[from:], "%+") {
		return 0, 0
	}
	for start = from; start < len(text); start++ {
		if end = m.match(text, start); end > 0 {
			return start, end
		}
	}
	return 0, 0
}

// findPartial returns where a match begins that the end of text cuts off, len(text) if
// there is none.
func (m *escapeMatcher) findPartial(text string) int {
	for start := max(0, len(text)-m.longest); start < len(text); start++ {
		if m.isEscapeCut(text, start) {
			return start
		}
		for form := range m.candidates(text, start) {
			if _, partial := m.matchForm(text, start, form); partial {
				return start
			}
		}
	}
	return len(text)
}

// match returns the end of the match that begins at i, 0 if there is none.
func (m *escapeMatcher) match(text string, i int) (end int) {
	for form := range m.candidates(text, i) {
		if end, _ := m.matchForm(text, i, form); end > 0 {
			return end
		}
	}
	return 0
}

// candidates yields the forms whose first byte is at i, as it is or encoded.
func (m *escapeMatcher) candidates(text string, i int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, form := range m.byFirst[text[i]] {
			if !yield(form) {
				return
			}
		}
		for depth := 0; depth < maxEscapes && text[i] == '%'; depth++ {
			c, after := unescapePercent(text, i, depth)
			for _, form := range m.byFirst[c] {
				if after > 0 && !yield(form) {
					return
				}
			}
		}
		if !m.parts {
			return
		}
		c, after := unescapeJSON(text, i)
		for _, form := range m.byFirst[c] {
			if after > 0 && !yield(form) {
				return
			}
		}
	}
}

// The limits of a match. Without them a text such as %252525… would take long.
const (
	maxEscapes     = 3 // how often a byte may be percent-encoded
	maxBackslashes = 8 // before an escape of JSON, which is doubled in each document in a string of another
	maxLineBreaks  = 2 // between two bytes: CR and LF
	maxPaths       = 4 // ways to read the same text that are followed at once
)

// matchForm returns where form, with any bytes encoded, ends if it begins at i, else 0. It
// reports partial if text ends before form does. A text such as %2541 can be read in several
// ways, so several positions are followed.
func (m *escapeMatcher) matchForm(text string, i int, form string) (end int, partial bool) {
	var paths [2][maxPaths]int
	at := append(paths[0][:0], i)
	for k := range len(form) {
		next := paths[1-k%2][:0]
		for _, j := range at {
			partial = partial || j == len(text) || m.isEscapeCut(text, j)
			next = m.appendEnds(next, text, j, form[k])
			if after := m.skipLineBreaks(text, j); after > j && k > 0 {
				partial = partial || after == len(text) || m.isEscapeCut(text, after)
				next = m.appendEnds(next, text, after, form[k])
			}
		}
		if at = next; len(at) == 0 {
			return 0, partial
		}
	}
	return slices.Max(at), partial
}

// isEscapeCut reports whether an encoded byte at i is cut off by the end of text.
func (m *escapeMatcher) isEscapeCut(text string, i int) bool {
	if m.parts && isJSONEscapeCut(text, i) {
		return true
	}
	if i >= len(text) || text[i] != '%' {
		return false
	}
	for i++; strings.HasPrefix(text[i:], "25"); {
		i += len("25")
	}
	rest := text[i:]
	return len(rest) == 0 || len(rest) == 1 && strings.Contains("0123456789abcdefABCDEF", rest)
}

// appendEnds appends the ends of the byte c at i, as it is and encoded, as far as there
// is space.
func (m *escapeMatcher) appendEnds(ends []int, text string, i int, c byte) []int {
	if i < len(text) && text[i] == c {
		ends = appendPath(ends, i+1)
	}
	for depth := range maxEscapes {
		if decoded, after := unescapePercent(text, i, depth); after > 0 && decoded == c {
			ends = appendPath(ends, after)
		}
	}
	if m.parts {
		if decoded, after := unescapeJSON(text, i); after > 0 && decoded == c {
			ends = appendPath(ends, after)
		}
	}
	return ends
}

// appendPath appends a position that is new, if there is space.
func appendPath(paths []int, at int) []int {
	if len(paths) == maxPaths || slices.Contains(paths, at) {
		return paths
	}
	return append(paths, at)
}

// unescapePercent returns the byte that is encoded at i and the index after it, which
// is 0 if no encoded byte is there. The % itself is encoded depth times, as %25.
func unescapePercent(text string, i, depth int) (c byte, after int) {
	if i >= len(text) || text[i] != '%' {
		return 0, 0
	}
	i++
	for range depth {
		if !strings.HasPrefix(text[i:], "25") {
			return 0, 0
		}
		i += len("25")
	}
	if i+2 > len(text) {
		return 0, 0
	}
	decoded, err := hex.DecodeString(text[i : i+2])
	if err != nil {
		return 0, 0
	}
	return decoded[0], i + 2
}
