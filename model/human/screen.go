package human

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// How much is shown. A terminal that is narrower breaks rows itself, and then
// a text can look like a line of the dialogue.
const (
	columns   = 78
	screenful = 20 // rows of one text
	whole     = 0  // all rows of it
)

// screen prints rows. It is the one way to the terminal: what is printed can
// neither act on it nor leave its row, whatever it holds.
type screen struct {
	out  io.Writer
	rows strings.Builder // printed, and not yet written
	err  error           // the first of a write
}

// line prints one row, cut where it is too long.
func (s *screen) line(format string, args ...any) {
	s.rows.WriteString(cut(clean(fmt.Sprintf(format, args...)), columns) + "\n")
}

// prompt prints what stands before the cursor.
func (s *screen) prompt(text string) {
	s.rows.WriteString(cut(clean(text), columns) + " ")
	s.flush()
}

// block prints a text of many lines behind a margin, which tells it from what
// the program says. It prints at most so many rows, all when that is whole, and
// says whether that was all.
func (s *screen) block(text string, most int) (all bool) {
	const margin = "  | "
	rows := 0
	for text := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		for row := range split(clean(text), columns-len(margin)) {
			if rows++; most != whole && rows > most {
				return false
			}
			s.line("%s%s", margin, row)
		}
	}
	return true
}

// head prints the first rows of a text; hint says where there is more.
func (s *screen) head(text, hint string) {
	if !s.block(text, screenful) {
		s.line("  … cut%s", hint)
	}
}

// flush writes at once what was printed, so that nothing gets between.
func (s *screen) flush() {
	if s.err == nil && s.rows.Len() > 0 {
		_, s.err = io.WriteString(s.out, s.rows.String())
	}
	s.rows.Reset()
}

// clean takes from a text what could act on a terminal, hide, or break a row.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return unicode.ReplacementChar
	}, text)
}

// brief cuts a name that stands among words.
func brief(name string) string { return cut(name, 40) }

// cut shortens a text to a number of columns.
func cut(text string, room int) string {
	if head, tail := splitAt(text, room); tail == "" {
		return head
	}
	head, _ := splitAt(text, room-1)
	return head + "…"
}

// split yields a text in rows; an empty one is one row.
func split(text string, room int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			head, tail := splitAt(text, room)
			if at := strings.LastIndexByte(head, ' ') + 1; tail != "" && at > len(head)/2 {
				head, tail = text[:at], text[at:]
			}
			if !yield(strings.TrimRight(head, " ")) || tail == "" {
				return
			}
			text = tail
		}
	}
}

// splitAt gives as much of a text as has room, and the rest.
func splitAt(text string, room int) (head, tail string) {
	for i, r := range text {
		if room -= displayWidth(r); room < 0 {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// displayWidth is how many columns a character takes at most.
func displayWidth(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
