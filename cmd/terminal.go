package cmd

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"
)

// terminal writes text that scrolls. On a real terminal it also draws an area of lines below
// the text, such as the tree of agents. It is safe for concurrent use.
type terminal struct {
	out   io.Writer
	names agentNames // of the agents shown

	asking sync.Mutex // held while a person is being asked; taken before mu

	mu       sync.Mutex        // guards the fields below and the order of writes
	size     func() screenSize // of the terminal; nil draws no area
	area     []string          // what is drawn; each line fits in a row, unless the terminal became narrower
	held     bool              // a person is being asked: text is held back
	buffered strings.Builder   // text written meanwhile
}

// screenSize is the size of a terminal.
type screenSize struct{ columns, rows int }

// maxBuffered bounds the text that is held back while a person is being asked; more is
// written at once.
const maxBuffered = 64 << 10

// newTerminal returns a terminal that draws an area only if out is a terminal.
func newTerminal(out io.Writer) *terminal { return &terminal{out: out, size: sizeOf(out)} }

// sizedWriter is a terminal that is no file; tests have one.
type sizedWriter interface {
	io.Writer
	Size() (columns, rows int)
}

// sizeOf returns a function that returns the current size of a terminal. It returns nil if out is
// not a terminal.
func sizeOf(out io.Writer) func() screenSize {
	if w, checked := out.(*checkedWriter); checked {
		out = w.Writer
	}
	switch f := out.(type) {
	case sizedWriter:
		return func() screenSize { return usableSize(f.Size()) }
	case *os.File:
		if !term.IsTerminal(int(f.Fd())) {
			return nil
		}
		return func() screenSize {
			columns, rows, err := term.GetSize(int(f.Fd()))
			if err != nil {
				columns, rows = 0, 0
			}
			return usableSize(columns, rows)
		}
	}
	return nil
}

// usableSize replaces sizes that are unknown.
func usableSize(columns, rows int) screenSize {
	if columns < 1 {
		columns = 80
	}
	if rows < 1 {
		rows = 24
	}
	return screenSize{columns, rows}
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool { return sizeOf(out) != nil }

// isTerminalInput reports whether a person can type into in.
func isTerminalInput(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// currentSize returns the size of the terminal. It reports false if no area is drawn.
func (t *terminal) currentSize() (screenSize, bool) {
	t.mu.Lock()
	size := t.size
	t.mu.Unlock()
	if size == nil {
		return screenSize{}, false
	}
	return size(), true
}

// disableArea stops drawing the area; text just scrolls.
func (t *terminal) disableArea() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.area = nil, nil
}

// keepArea leaves what is drawn on the terminal. Later text comes below it.
func (t *terminal) keepArea() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.area = nil
}

// holdOutput holds back all output except the output of a promptWriter, until release is called. It
// leaves the area as keepArea does. It waits while another caller holds the output: a person
// answers one question at a time.
func (t *terminal) holdOutput() (release func()) {
	t.asking.Lock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.area = true, nil
	return func() {
		defer t.asking.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.held = false
		_ = t.flushHeld() // the next write to out, such as a question, fails with the same error
	}
}

// flushHeld writes what was held back. It must be called with mu held.
func (t *terminal) flushHeld() error {
	text := t.buffered.String()
	t.buffered.Reset()
	_, err := io.WriteString(t.out, text)
	return err
}

// promptWriter writes questions to a person, which are never held back.
type promptWriter struct{ *terminal }

// Write implements io.Writer.
func (p promptWriter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

// Write prints text above the area.
func (t *terminal) Write(text []byte) (int, error) {
	if err := t.update(string(text), nil); err != nil {
		return 0, err
	}
	return len(text), nil
}

// update prints text and draws area below it; a nil area keeps the previous one. The text
// must end a line if there is an area. It writes nothing if nothing has changed. While output is
// held, text is buffered and area is ignored.
func (t *terminal) update(text string, area []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" && (area == nil || slices.Equal(area, t.area)) {
		return nil
	}
	if t.held {
		t.buffered.WriteString(text)
		if t.buffered.Len() > maxBuffered {
			return t.flushHeld()
		}
		return nil
	}
	b := t.eraseArea()
	b.WriteString(text)
	if area != nil && t.size != nil {
		t.area = area
	}
	for _, line := range t.area {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// eraseArea returns what moves the cursor to the start of the area and erases it. A terminal
// that became narrower has wrapped its lines. It must be called with mu held.
func (t *terminal) eraseArea() *strings.Builder {
	var b strings.Builder
	if len(t.area) > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", rowsOf(t.area, t.size().columns))
	}
	return &b
}
