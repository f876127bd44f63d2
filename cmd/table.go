package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A command prints what it found in one of two forms: for programs the JSON
// of the HTTP API, lists as {"items": […]}, and for people plain aligned text.
// Neither holds anything that acts on a terminal.

// printList prints a sequence.
func printList[T any](out io.Writer, asJSON bool, seq iter.Seq2[T, error], head []string, row func(T) []string) error {
	items := []T{}
	rows := table{head}
	for v, err := range seq {
		if err != nil {
			return err
		}
		items = append(items, v)
		rows = append(rows, row(v))
	}
	if asJSON {
		return printJSON(out, map[string]any{"items": items})
	}
	return rows.print(out)
}

// printJSON prints a document, indented.
func printJSON(out io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", escapeTerminal(text))
	return err
}

// printLine prints a document on one line.
func printLine(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", escapeTerminal(text))
	return err
}

// escapeTerminal escapes in a JSON document what encoding/json leaves as it is and a
// terminal may act on: control characters from U+007F on, and characters that
// reorder or hide text.
func escapeTerminal(document []byte) []byte {
	safe := func(r rune) bool { return r == '\n' || unicode.IsPrint(r) }
	if !strings.ContainsFunc(string(document), func(r rune) bool { return !safe(r) }) {
		return document
	}
	out := make([]byte, 0, len(document)+64)
	for _, r := range string(document) {
		switch {
		case safe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// table is rows of cells; each column is as wide as its widest cell.
type table [][]string

// print writes the table, without spaces at the ends of lines.
func (t table) print(out io.Writer) error {
	var widths []int
	for y, row := range t {
		for x, cell := range row {
			t[y][x] = clean(cell)
			if x == len(widths) {
				widths = append(widths, 0)
			}
			widths[x] = max(widths[x], utf8.RuneCountInString(t[y][x]))
		}
	}
	var b strings.Builder
	for _, row := range t {
		var line strings.Builder
		for x, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[x]-utf8.RuneCountInString(cell)+2))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// fields is what there is to say about one thing: names and values. An empty
// value is left out.
type fields [][2]string

// print writes one field a line; further lines of a value stand below its first.
func (f fields) print(out io.Writer) error {
	rows := table{}
	for _, field := range f {
		name := field[0]
		for line := range strings.Lines(strings.TrimRight(field[1], "\n")) {
			rows = append(rows, []string{name, strings.TrimRight(line, "\n")})
			name = ""
		}
	}
	return rows.print(out)
}

// printOne prints one thing.
func printOne(out io.Writer, asJSON bool, v any, f fields) error {
	if asJSON {
		return printJSON(out, v)
	}
	return f.print(out)
}

// orDash makes an empty cell visible.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// formatTime shows a time to the second, in UTC.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// maxCell is how much of a text a table shows.
const maxCell = 60

// joinNames joins names for a cell or a field.
func joinNames[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return strings.Join(list, ", ")
}
