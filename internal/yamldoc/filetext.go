package yamldoc

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/textutil"
)

// FileText is the text of a document file. It returns lines, positions and excerpts.
type FileText struct {
	Path  string
	Text  string // without byte order mark
	lines []int  // offset of each line; computed on first use

	secrets map[int]int // secretAt of a line, by line number; computed on first use
}

// NewFileText returns the source of a file, without its byte order mark.
func NewFileText(f File) *FileText {
	return &FileText{Path: f.Path, Text: string(bytes.TrimPrefix(f.Data, []byte("\ufeff")))}
}

// ErrorAt returns an Error for a position in the file, with its excerpt.
func (f *FileText) ErrorAt(at Pos, field, message, hint string) *Error {
	return &Error{
		File: at.File, Line: at.Line, Column: at.Column,
		Field: field, Message: message, Hint: hint, Excerpt: f.excerpt(at),
	}
}

// excerpt returns the line of a position with a caret below, or "" if the line may
// contain the rest of a secret.
func (f *FileText) excerpt(at Pos) string {
	if at.Line < 1 || at.Column < 1 || f.inSecret(at.Line) {
		return ""
	}
	line := maskFrom(f.LineText(at.Line), f.secretIn(at.Line))
	if strings.TrimSpace(line) == "" {
		return ""
	}
	return pointAt(line, at.Column-1)
}

// reference is a pattern for a variable without a default, or a file.
const reference = `\$\{(?:\w+|file:[^\s"'{}]+)\}`

// No error may show a key in clear text, even if its field is misspelled. These
// patterns find the beginning of such a key; a variable is not one. They match too
// much rather than too little: an excerpt with more asterisks than needed is still
// useful.
var (
	secretKeyPattern = textutil.LazyPattern(`(?i)(?:(?:key|kye|secret|pass|pasw|pwd|credential|bearer)\w*|authorization|\bapi\w*|\bauth|\bsha256|\b(?:api)?token)["']?\s*:\s*`)
	secretURLPattern = textutil.LazyPattern(`(://)[^\s"']*[@?]`)
	variablePattern  = textutil.LazyPattern(`^(?:"` + reference + `"|'` + reference + `'|` + reference + `)(?:[\s,}\]]|$)`)
)

// secretAt returns the offset at which a key in clear text begins, the end of a line
// that only names a key, or -1.
func secretAt(line string) int {
	first := -1
	if at := secretURLPattern().FindStringSubmatchIndex(line); at != nil {
		first = at[3]
	}
	for _, at := range secretKeyPattern().FindAllStringIndex(line, -1) {
		if !variablePattern().MatchString(line[at[1]:]) && (first < 0 || at[1] < first) {
			return at[1]
		}
	}
	return first
}

// maskFrom replaces the rest of a line by asterisks: where a key ends is unknown.
func maskFrom(line string, at int) string {
	if at < 0 {
		return line
	}
	return line[:at] + strings.Repeat("*", utf8.RuneCountInString(line[at:]))
}

// secretIn returns secretAt of the n-th line. It is cached, because a line may be
// long.
func (f *FileText) secretIn(n int) int {
	at, known := f.secrets[n]
	if !known {
		if f.secrets == nil {
			f.secrets = map[int]int{}
		}
		at = secretAt(f.LineText(n))
		f.secrets[n] = at
	}
	return at
}

// inSecret reports whether the n-th line may continue a key that began above it.
func (f *FileText) inSecret(n int) bool {
	const most = 100 // blank lines in between; the bound keeps many errors in a long file cheap
	for above := n - 1; above > max(0, n-most); above-- {
		if strings.TrimSpace(f.LineText(above)) != "" {
			return f.secretIn(above) >= 0
		}
	}
	return false
}

// LineText returns the n-th line, from 1, without its line break.
func (f *FileText) LineText(n int) string {
	starts := f.LineStarts()
	if n > len(starts) {
		return ""
	}
	end := len(f.Text)
	if n < len(starts) {
		end = starts[n]
	}
	return strings.TrimRight(f.Text[starts[n-1]:end], lineBreaks)
}

// LineStarts returns the offset of each line.
func (f *FileText) LineStarts() []int {
	if f.lines == nil {
		f.lines = lineStarts(f.Text)
	}
	return f.lines
}

// findFrom returns the first position of text at or after from.
func (f *FileText) findFrom(from Pos, text string) (Pos, bool) {
	if from.Line < 1 || from.Line > len(f.LineStarts()) {
		return Pos{}, false
	}
	start := f.OffsetAt(from.Line, from.Column)
	i := strings.Index(f.Text[start:], text)
	if i < 0 {
		return Pos{}, false
	}
	return f.posAt(start + i), true
}

// posAt returns the position of an offset.
func (f *FileText) posAt(offset int) Pos {
	line, found := slices.BinarySearch(f.LineStarts(), offset)
	if found {
		line++
	}
	return Pos{f.Path, line, utf8.RuneCountInString(f.Text[f.LineStarts()[line-1]:offset]) + 1}
}

// lineBreaks are the characters that end a line. The YAML scanner counts lines by
// the rules of YAML 1.1.
const lineBreaks = "\r\n\u0085\u2028\u2029"

// lineStarts returns the offset of each line of text.
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

// excerptWidth is the largest number of characters that an excerpt shows.
const excerptWidth = 100

// pointAt returns the part of a line around the character at index, with a caret
// below it. It does not copy the line, which may have megabytes.
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
	return strings.Map(printableRune, before+after) + "\n" + strings.Map(blankRune, before) + "^"
}

// byteOffset returns the offset of the character at index, or the end of a shorter
// text.
func byteOffset(text string, index int) int {
	offset := 0
	for range index {
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	return offset
}

// firstRunes returns the first n characters of text and reports whether it has
// more.
func firstRunes(text string, n int) (part string, cut bool) {
	end := byteOffset(text, n)
	return text[:end], end < len(text)
}

// lastRunes returns the last n characters of text and reports whether it has more.
func lastRunes(text string, n int) (part string, cut bool) {
	start := len(text)
	for range n {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:], start > 0
}

// printableRune replaces control and invisible characters. Unlike textutil.Sanitize it
// keeps tabs, so that the caret stays aligned.
func printableRune(r rune) rune {
	if r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// blankRune returns white space of the same width as r.
func blankRune(r rune) rune {
	if r == '\t' {
		return r
	}
	return ' '
}

// OffsetAt returns the offset of a position that is in the file.
func (f *FileText) OffsetAt(line, column int) int {
	start := f.LineStarts()[line-1]
	return start + byteOffset(f.Text[start:], column-1)
}
