package config

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// source is a document file with the lines an excerpt is cut from.
type source struct {
	path  string
	text  string // without byte order mark
	lines []int  // where each line starts; filled when first asked for

	secrets map[int]int // by number, where in a line secretAt finds one; of those asked for
}

func newSource(f File) *source {
	return &source{path: f.Path, text: string(bytes.TrimPrefix(f.Data, []byte("\ufeff")))}
}

// errorAt makes an Error about a place in the file.
func (s *source) errorAt(at Pos, field, message, hint string) *Error {
	return &Error{
		File: at.File, Line: at.Line, Column: at.Column,
		Field: field, Message: message, Hint: hint, Excerpt: s.excerpt(at),
	}
}

// excerpt gives the line of a place with a caret below.
func (s *source) excerpt(at Pos) string {
	if at.Line < 1 || at.Column < 1 || s.inSecret(at.Line) {
		return ""
	}
	line := maskFrom(s.line(at.Line), s.secretIn(at.Line))
	if strings.TrimSpace(line) == "" {
		return ""
	}
	return pointAt(line, at.Column-1)
}

// What no error may show is a key that is written out, also where its field
// has not the right name. A variable is none.
var (
	secretKeyPattern = regexp.MustCompile(`(?i)(?:(?:key|kye|secret|pass|pasw|pwd|credential|bearer)\w*|authorization|\bapi\w*|\bauth|\bsha256|\b(?:api)?token)["']?\s*:\s*`)
	secretURLPattern = regexp.MustCompile(`(://)[^\s"']*[@?]`)
	variablePattern  = regexp.MustCompile(`^(?:"\$\{\w+\}"|'\$\{\w+\}'|\$\{\w+\})(?:[\s,}\]]|$)`)
)

// secretAt is where a key begins that is written out, or is to follow on the
// next line; -1 when there is none.
func secretAt(line string) int {
	first := -1
	if at := secretURLPattern.FindStringSubmatchIndex(line); at != nil {
		first = at[3]
	}
	for _, at := range secretKeyPattern.FindAllStringIndex(line, -1) {
		if !variablePattern.MatchString(line[at[1]:]) && (first < 0 || at[1] < first) {
			return at[1]
		}
	}
	return first
}

// maskFrom hides all of a line from where a key begins: nobody knows where it ends.
func maskFrom(line string, at int) string {
	if at < 0 {
		return line
	}
	return line[:at] + strings.Repeat("*", utf8.RuneCountInString(line[at:]))
}

// secretIn is secretAt of the n-th line, which may be long, looked for once.
func (s *source) secretIn(n int) int {
	at, known := s.secrets[n]
	if !known {
		if s.secrets == nil {
			s.secrets = map[int]int{}
		}
		at = secretAt(s.line(n))
		s.secrets[n] = at
	}
	return at
}

// inSecret says whether a line may go on with a key that began above it.
func (s *source) inSecret(n int) bool {
	const most = 100 // lines without text between them
	for above := n - 1; above > max(0, n-most); above-- {
		if strings.TrimSpace(s.line(above)) != "" {
			return s.secretIn(above) >= 0
		}
	}
	return false
}

// line gives the n-th line, without its end.
func (s *source) line(n int) string {
	starts := s.starts()
	if n > len(starts) {
		return ""
	}
	end := len(s.text)
	if n < len(starts) {
		end = starts[n]
	}
	return strings.TrimRight(s.text[starts[n-1]:end], lineBreaks)
}

// starts gives where each line starts.
func (s *source) starts() []int {
	if s.lines == nil {
		s.lines = lineStarts(s.text)
	}
	return s.lines
}

// findFrom gives the first place of a text from a place on.
func (s *source) findFrom(from Pos, text string) (Pos, bool) {
	if from.Line < 1 || from.Line > len(s.starts()) {
		return Pos{}, false
	}
	start := s.starts()[from.Line-1]
	start += byteOffset(s.text[start:], from.Column-1)
	i := strings.Index(s.text[start:], text)
	if i < 0 {
		return Pos{}, false
	}
	return s.posAt(start + i), true
}

// posAt gives the place of a byte.
func (s *source) posAt(offset int) Pos {
	line, found := slices.BinarySearch(s.starts(), offset)
	if found {
		line++
	}
	return Pos{s.path, line, utf8.RuneCountInString(s.text[s.starts()[line-1]:offset]) + 1}
}

// lineBreaks are the characters that end a line for the YAML scanner, which
// counts as YAML 1.1 does.
const lineBreaks = "\r\n\u0085\u2028\u2029"

func lineStarts(text string) []int {
	starts := append(make([]int, 0, 1+strings.Count(text, "\n")), 0)
	for i := 0; i < len(text); {
		if c := text[i]; c != '\n' && c != '\r' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if strings.ContainsRune(lineBreaks, r) && !strings.HasPrefix(text[i:], "\r\n") {
			starts = append(starts, i+size)
		}
		i += size
	}
	return starts
}

// excerptWidth is the most characters of a line an excerpt shows.
const excerptWidth = 100

// pointAt shows the part of a line around the character at index, and a caret
// under it. A line of megabytes costs no copy.
func pointAt(line string, index int) string {
	offset := byteOffset(line, index)
	before, cut := lastRunes(line[:offset], excerptWidth*3/5)
	if cut {
		before = "…" + before
	}
	after, cut := firstRunes(line[offset:], excerptWidth*2/5)
	if cut {
		after += "…"
	}
	return strings.Map(printable, before+after) + "\n" + strings.Map(blankRune, before) + "^"
}

// byteOffset is where the character at index begins; the end of a shorter text.
func byteOffset(text string, index int) int {
	offset := 0
	for range index {
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	return offset
}

func firstRunes(text string, n int) (part string, cut bool) {
	end := byteOffset(text, n)
	return text[:end], end < len(text)
}

func lastRunes(text string, n int) (part string, cut bool) {
	start := len(text)
	for range n {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:], start > 0
}

// printable keeps terminal controls and hidden characters out of excerpts.
func printable(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

func blankRune(r rune) rune {
	if r == '\t' {
		return r
	}
	return ' '
}
