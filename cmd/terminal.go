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

// terminal is stderr: text that scrolls and, on a terminal, a tree below it
// that is drawn anew when something changes. Safe for concurrent use.
type terminal struct {
	out   io.Writer
	width int // columns; 0 when it is no terminal

	names names // of the agents shown

	mu    sync.Mutex // guards what follows, and the order of writes
	tree  []string
	asked bool            // a person has the screen alone
	held  strings.Builder // what others wrote meanwhile
}

// maxHeld bounds what is kept back for a person who thinks for a long time.
const maxHeld = 64 << 10

func newScreen(out io.Writer) *terminal {
	s := &terminal{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.width = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			s.width = w
		}
	}
	return s
}

// disableTree ends the drawing of trees: what is written just scrolls.
func (s *terminal) disableTree() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.tree = 0, nil
}

// lock keeps back what is written, by others than the desk, until over is called.
func (s *terminal) lock() (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = false
		_ = s.release() // who asks gets to know that its own writing fails
	}
}

// release writes what was kept back.
func (s *terminal) release() error {
	text := s.held.String()
	s.held.Reset()
	_, err := io.WriteString(s.out, text)
	return err
}

// promptWriter is where a person is asked: what is written there is never kept back.
type promptWriter struct{ *terminal }

// Write implements io.Writer.
func (d promptWriter) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.out.Write(text)
}

// Write prints text above the tree.
func (s *terminal) Write(text []byte) (int, error) {
	if err := s.update(string(text), nil); err != nil {
		return 0, err
	}
	return len(text), nil
}

// update prints text and draws tree below it; a nil tree stays as it is.
// Where nothing changes nothing is drawn.
func (s *terminal) update(text string, tree []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" && slices.Equal(tree, s.tree) {
		return nil
	}
	if s.asked {
		s.held.WriteString(text)
		if s.held.Len() > maxHeld {
			return s.release()
		}
		return nil
	}
	var b strings.Builder
	if n := len(s.tree); n > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", n)
	}
	b.WriteString(text)
	if tree != nil {
		s.tree = tree
	}
	for _, line := range s.tree {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(s.out, b.String())
	return err
}

// onTerminal says whether what is written is read by a terminal.
func onTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
