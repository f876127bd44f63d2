package human

import (
	"fmt"
	"io"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Bounds of what is printed. On a narrower terminal rows wrap, and the rest of a
// row can look like a line of the dialogue.
const (
	columns   = 78
	screenful = 20 // rows that head prints
)

// screen prints rows. Everything shown goes through it: no text that it prints
// can act on the terminal or leave its row.
type screen struct {
	out     io.Writer
	pending strings.Builder // rows not yet written
	err     error           // of the first Write that failed
}

// line prints one row, cut if it is too long.
func (s *screen) line(format string, args ...any) {
	s.pending.WriteString(oneRow(fmt.Sprintf(format, args...)) + "\n")
}

// prompt prints the text before the cursor and writes everything printed so far.
func (s *screen) prompt(text string) {
	s.pending.WriteString(oneRow(text) + " ")
	s.flush()
}

// printAll prints a text of many lines behind a margin, which distinguishes it from
// the lines of the dialogue.
func (s *screen) printAll(text string) { s.block(text, len(text)+1) }

// printHead prints the first rows of a text as printAll does. If there are more, it says so
// and adds hint.
func (s *screen) printHead(text, hint string) {
	if !s.block(text, screenful) {
		s.line("  … cut%s", hint)
	}
}

// block prints at most maxRows rows of text and reports whether these were all.
func (s *screen) block(text string, maxRows int) bool {
	const margin = "  | "
	n := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		for _, row := range wrap(textutil.Sanitize(line), columns-len(margin)) {
			if n++; n > maxRows {
				return false
			}
			s.line("%s%s", margin, row)
		}
	}
	return true
}

// flush writes what was printed in one Write.
func (s *screen) flush() {
	if s.err == nil && s.pending.Len() > 0 {
		_, s.err = io.WriteString(s.out, s.pending.String())
	}
	s.pending.Reset()
}

// shorten cuts a text that is part of a line.
func shorten(text string) string { return textutil.TruncateWidth(text, 40) }

// oneRow returns the first row of text, with "…" if there are more.
func oneRow(text string) string {
	text = textutil.Sanitize(text)
	if rows := wrap(text, columns); len(rows) == 1 {
		return text
	}
	return wrap(text, columns-1)[0] + "…"
}

// wrap splits text into rows of at most n columns; an empty text is one row.
func wrap(text string, n int) []string {
	var rows []string
	start, used := 0, 0
	for i, r := range text {
		if used += width(r); used > n {
			rows, start, used = append(rows, text[start:i]), i, width(r)
		}
	}
	return append(rows, text[start:])
}

// width returns an upper bound of the columns of a character: the first one of
// two columns is U+1100.
func width(r rune) int {
	if r < 0x1100 {
		return 1
	}
	return 2
}
