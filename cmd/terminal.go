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

// terminal writes to stderr. If that is a terminal, it keeps a tree of agents below the
// scrolling text and redraws it when it changes. It is safe for concurrent use.
type terminal struct {
	out   io.Writer
	width int // columns; 0 if it is not a terminal

	names agentNames // of the agents shown

	mu       sync.Mutex // guards the fields below and the order of writes
	tree     []string
	locked   bool            // a person is being asked
	buffered strings.Builder // text written meanwhile
}

// maxBuffered bounds the text that is held back while a person is being asked; more is
// written at once.
const maxBuffered = 64 << 10

// newTerminal returns a terminal that draws a tree only if out is a terminal.
func newTerminal(out io.Writer) *terminal {
	t := &terminal{out: out}
	if f, ok := terminalOf(out); ok {
		t.width = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			t.width = w
		}
	}
	return t
}

// disableTree stops drawing the tree; text just scrolls.
func (t *terminal) disableTree() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.width, t.tree = 0, nil
}

// lock holds back all output except that of a promptWriter, until unlock is called.
func (t *terminal) lock() (unlock func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.locked = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.locked = false
		_ = t.release() // a write error also reaches the model of type human
	}
}

// release writes what was held back. It must be called with mu held.
func (t *terminal) release() error {
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

// Write prints text above the tree.
func (t *terminal) Write(text []byte) (int, error) {
	if err := t.update(string(text), nil); err != nil {
		return 0, err
	}
	return len(text), nil
}

// update prints text and draws tree below it; a nil tree keeps the previous one. It writes
// nothing if nothing has changed.
func (t *terminal) update(text string, tree []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == "" && slices.Equal(tree, t.tree) {
		return nil
	}
	if t.locked {
		t.buffered.WriteString(text)
		if t.buffered.Len() > maxBuffered {
			return t.release()
		}
		return nil
	}
	var b strings.Builder
	if n := len(t.tree); n > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", n)
	}
	b.WriteString(text)
	if tree != nil {
		t.tree = tree
	}
	for _, line := range t.tree {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// isTerminal reports whether out is a terminal.
func isTerminal(out io.Writer) bool {
	_, ok := terminalOf(out)
	return ok
}

// terminalOf returns the file of out if that is a terminal.
func terminalOf(out io.Writer) (f *os.File, ok bool) {
	if w, checked := out.(*checkedWriter); checked {
		out = w.Writer
	}
	f, ok = out.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}
