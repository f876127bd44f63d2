package cmd

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// The functions here measure printable text in columns of a terminal. A wide character has
// two. A combining mark counts as one column, although it has none. A line that is shorter
// than expected does no harm. A line that wraps unexpectedly does.

// runeColumns returns the columns of a printable character.
func runeColumns(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// columnsOf returns the columns of a line, without its colors.
func columnsOf(line string) (n int) {
	for len(line) > 0 {
		if rest, colored := strings.CutPrefix(line, "\x1b["); colored {
			_, line, _ = strings.Cut(rest, "m")
			continue
		}
		r, size := utf8.DecodeRuneInString(line)
		n, line = n+runeColumns(r), line[size:]
	}
	return n
}

// rowsOf returns how many rows lines take on a terminal.
func rowsOf(lines []string, columns int) (n int) {
	for _, line := range lines {
		n += max(1, (columnsOf(line)+columns-1)/columns)
	}
	return n
}

// fitColumns returns text if it has at most n columns, else its beginning and "…".
func fitColumns(text string, n int) string {
	if columnsOf(text) <= n {
		return text
	}
	return text[:bytesInColumns(text, n-1)] + "…"
}

// bytesInColumns returns how many bytes of text fit in n columns.
func bytesInColumns(text string, n int) int {
	for i, r := range text {
		if n -= runeColumns(r); n < 0 {
			return i
		}
	}
	return len(text)
}

// lastRows returns the last rows of a printable text that is wrapped at n columns, at most
// count. Empty lines are left out.
func lastRows(text string, n, count int) []string {
	var rows []string
	for line := range strings.SplitSeq(text, "\n") {
		for line = strings.TrimRight(line, " "); line != ""; {
			cut := rowBytes(line, n)
			rows, line = append(rows, strings.TrimRight(line[:cut], " ")), strings.TrimLeft(line[cut:], " ")
		}
	}
	return rows[max(0, len(rows)-count):]
}

// rowBytes returns how many bytes of a line go into a row of n columns. The line is not empty.
// The row ends at a space, unless a word takes half of the row. It has at least one
// character.
func rowBytes(line string, n int) int {
	cut := bytesInColumns(line, n)
	if cut == len(line) {
		return cut
	}
	if space := strings.LastIndexByte(line[:cut], ' '); space > cut/2 {
		return space + 1
	}
	_, size := utf8.DecodeRuneInString(line)
	return max(cut, size)
}
