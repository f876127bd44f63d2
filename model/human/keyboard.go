package human

import (
	"bufio"
	"cmp"
	"context"
	"io"
)

// maxLine is the longest line that is read; a longer one ends the input.
const maxLine = 1 << 20

// keyboard reads lines when they are wanted, never ahead: what a person types
// belongs to the question that is open then.
type keyboard struct {
	in      *bufio.Scanner // owned by the goroutine that reads, when there is one
	typed   chan stroke    // from that goroutine; has room, so that it can end
	reading bool           // that goroutine is there, or its stroke is in typed
	gone    error          // why no line comes any more
}

// stroke is a line, or why there is none.
type stroke struct {
	text string
	err  error
}

func newKeyboard(in io.Reader) *keyboard {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return &keyboard{in: lines, typed: make(chan stroke, 1)}
}

// line waits for the next line. It gives ctx's error when that ends first, and
// the same error for ever when there are no more lines.
func (k *keyboard) line(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if k.gone == nil && !k.reading {
		k.reading = true
		go k.read()
	}
	if k.gone != nil {
		return "", k.gone
	}
	select {
	case s := <-k.typed:
		return k.take(s)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// early gives the line that was typed for a question that had become void, if
// it came before the next one was asked.
func (k *keyboard) early() (string, bool) {
	select {
	case s := <-k.typed:
		text, err := k.take(s)
		return text, err == nil
	default:
		return "", false
	}
}

func (k *keyboard) take(s stroke) (string, error) {
	k.reading, k.gone = false, s.err
	return s.text, s.err
}

func (k *keyboard) read() {
	if k.in.Scan() {
		k.typed <- stroke{text: k.in.Text()}
		return
	}
	k.typed <- stroke{err: cmp.Or(k.in.Err(), io.EOF)}
}
