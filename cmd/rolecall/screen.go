package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// screen is stderr: text that scrolls and, on a terminal, a tree below it
// that is drawn anew when something changes. Safe for concurrent use.
type screen struct {
	out   io.Writer
	width int // columns; 0 when it is no terminal

	mu   sync.Mutex // guards what follows, and the order of writes
	tree []string
}

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.width = 80
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			s.width = w
		}
	}
	return s
}

// plain ends the drawing of trees: what is written just scrolls.
func (s *screen) plain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.tree = 0, nil
}

// Write prints text above the tree.
func (s *screen) Write(text []byte) (int, error) {
	if err := s.update(string(text), nil); err != nil {
		return 0, err
	}
	return len(text), nil
}

// update prints text and draws tree below it; a nil tree stays as it is.
func (s *screen) update(text string, tree []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
