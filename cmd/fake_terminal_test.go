package cmd

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// fakeTerminal is a terminal of a test. It knows the few escape sequences that the program
// writes and fails the test for any other. It is safe for concurrent use.
type fakeTerminal struct {
	t errorReporter

	mu            sync.Mutex // guards the fields below
	written       *sync.Cond // something was written; its lock is mu
	columns, rows int
	lines         [][]rune // all lines, also those that scrolled away; a wide character takes two cells
	row, column   int      // of the cursor, in lines
	full          bool     // the last column is written: the next character wraps
}

// errorReporter is the part of a testing.T that a fakeTerminal needs.
type errorReporter interface {
	Helper()
	Errorf(format string, args ...any)
}

func newFakeTerminal(t errorReporter, columns, rows int) *fakeTerminal {
	f := &fakeTerminal{t: t, columns: columns, rows: rows, lines: [][]rune{{}}}
	f.written = sync.NewCond(&f.mu)
	return f
}

// Size implements screen.
func (f *fakeTerminal) Size() (columns, rows int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.columns, f.rows
}

// knownSequence matches the escape sequences that the program writes.
var knownSequence = regexp.MustCompile(`^\x1b\[(\d*)([AJm])`)

// Write implements io.Writer.
func (f *fakeTerminal) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.written.Broadcast()
	for rest := string(text); rest != ""; {
		if m := knownSequence.FindStringSubmatch(rest); m != nil {
			n, _ := strconv.Atoi(m[1])
			f.control(m[2], n)
			rest = rest[len(m[0]):]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		f.put(r)
		rest = rest[size:]
	}
	return len(text), nil
}

func (f *fakeTerminal) control(name string, n int) {
	switch name {
	case "A":
		if top := max(0, len(f.lines)-f.rows); f.row-n < top {
			f.t.Errorf("the cursor moves %d rows up, above the first visible row\n%s", n, f.text())
		}
		f.row, f.full = max(0, f.row-n), false
	case "J":
		f.lines = f.lines[:f.row+1]
		f.lines[f.row] = f.lines[f.row][:min(f.column, len(f.lines[f.row]))]
	}
}

func (f *fakeTerminal) put(r rune) {
	switch r {
	case '\n':
		f.newLine()
		return
	case '\r':
		f.column, f.full = 0, false
		return
	}
	if r < ' ' || r == 0x7f {
		f.t.Errorf("control character %U", r)
		return
	}
	n := runeColumns(r)
	if f.full || f.column+n > f.columns {
		f.newLine()
	}
	for len(f.lines[f.row]) < f.column+n {
		f.lines[f.row] = append(f.lines[f.row], ' ')
	}
	f.lines[f.row][f.column] = r
	if n == 2 {
		f.lines[f.row][f.column+1] = 0
	}
	if f.column += n; f.column >= f.columns {
		f.column, f.full = f.columns-1, true
	}
}

func (f *fakeTerminal) newLine() {
	if f.row++; f.row == len(f.lines) {
		f.lines = append(f.lines, []rune{})
	}
	f.column, f.full = 0, false
}

// resize changes the size. Lines that are too long are wrapped, as most terminals do.
func (f *fakeTerminal) resize(columns, rows int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.lines
	f.lines, f.columns, f.rows = nil, columns, rows
	for _, line := range old {
		for len(line) > columns {
			f.lines, line = append(f.lines, line[:columns:columns]), line[columns:]
		}
		f.lines = append(f.lines, line)
	}
	f.row, f.column, f.full = len(f.lines)-1, 0, false
}

// String returns what was written and not erased, without trailing spaces.
func (f *fakeTerminal) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.text()
}

// text is String; it must be called with mu held.
func (f *fakeTerminal) text() string {
	var b strings.Builder
	for _, line := range f.lines {
		b.WriteString(strings.TrimRight(strings.ReplaceAll(string(line), "\x00", ""), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// waitFor waits until the terminal shows a match of pattern.
func (f *fakeTerminal) waitFor(pattern string) {
	wanted := regexp.MustCompile(pattern)
	f.mu.Lock()
	defer f.mu.Unlock()
	for !wanted.MatchString(f.text()) {
		f.written.Wait()
	}
}

// want checks what the terminal shows.
func (f *fakeTerminal) want(want string) {
	f.t.Helper()
	if got := f.String(); got != want {
		f.t.Errorf("the terminal shows\n%swant\n%s", got, want)
	}
}

// stripSequences removes the escape sequences that the program itself writes.
func stripSequences(text string) string {
	return regexp.MustCompile(`\r\x1b\[\d+A\x1b\[J|\x1b\[\d+m`).ReplaceAllString(text, "")
}

// errorCounter counts errors.
type errorCounter int

func (c *errorCounter) Helper()               {}
func (c *errorCounter) Errorf(string, ...any) { *c++ }

func TestFakeTerminal_FailsForOtherSequences(t *testing.T) {
	f := newFakeTerminal(t, 4, 2)
	fmt.Fprint(f, "漢字ab\x1b[31m\n\r")
	f.want("漢字\nab\n")
	failed := new(errorCounter)
	f.t = failed
	fmt.Fprint(f, "\x1b[2K")
	if *failed == 0 {
		t.Error("it accepts a sequence that the program does not write")
	}
}
