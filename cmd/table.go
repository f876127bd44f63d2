package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
)

// A command prints its result in one of two forms. With --json it prints the JSON of the
// HTTP API, with lists as {"items": […]}. Otherwise it prints aligned text. Neither
// contains characters that control a terminal.

// printList prints a sequence, as JSON or as a table with a head.
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
	return writeJSON(out, text)
}

// printJSONLine prints a document on one line.
func printJSONLine(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeJSON(out, text)
}

// writeJSON writes a JSON document and a line break.
func writeJSON(out io.Writer, document []byte) error {
	_, err := fmt.Fprintf(out, "%s\n", textutil.EscapeUnprintable(textutil.UnescapeHTML(document)))
	return err
}

// jsonText returns a JSON document for a field or a cell.
func jsonText(document []byte) string { return string(textutil.UnescapeHTML(document)) }

// table is rows of cells, all of the same length.
type table [][]string

// print writes the cells sanitized and in aligned columns, without spaces at the ends of
// lines.
func (t table) print(out io.Writer) error {
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range t {
		for x, cell := range row {
			if x > 0 {
				fmt.Fprint(columns, "\t")
			}
			fmt.Fprint(columns, textutil.Sanitize(cell))
		}
		fmt.Fprintln(columns)
	}
	columns.Flush() // writing to a Builder does not fail
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printBelow prints an empty line, then the table.
func (t table) printBelow(out io.Writer) error {
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return t.print(out)
}

// fields are the names and values of a record. Fields with an empty value are not printed.
type fields [][2]string

// print writes one field per line; further lines of a value are indented.
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

// printOne prints a record, as JSON or as fields.
func printOne(out io.Writer, asJSON bool, v any, f fields) error {
	if asJSON {
		return printJSON(out, v)
	}
	return f.print(out)
}

// orDash returns text, or "-" if it is empty.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// formatTime returns a time in UTC, to the second; "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// maxCell is how many characters of a text a table shows.
const maxCell = 60

// joinNames joins names for a cell or a field.
func joinNames[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = string(name)
	}
	return strings.Join(list, ", ")
}
