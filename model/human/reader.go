package human

import (
	"bufio"
	"cmp"
	"context"
	"io"
)

// maxLine is the longest line that is read; a longer one ends the input.
const maxLine = 1 << 20

// lineReader reads lines when they are wanted, never ahead: what a person types
// belongs to the question that is open then.
type lineReader struct {
	in      *bufio.Scanner // owned by the goroutine that reads, when there is one
	typed   chan inputLine // from that goroutine; has room, so that it can end
	reading bool           // that goroutine is there, or its stroke is in typed
	closed  error          // why no line comes any more
}

// inputLine is a line, or why there is none.
type inputLine struct {
	text string
	err  error
}

func newKeyboard(in io.Reader) *lineReader {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return &lineReader{in: lines, typed: make(chan inputLine, 1)}
}

// line waits for the next line. It gives ctx's error when that ends first, and
// the same error for ever when there are no more lines.
func (k *lineReader) line(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if k.closed == nil && !k.reading {
		k.reading = true
		go k.read()
	}
	if k.closed != nil {
		return "", k.closed
	}
	select {
	case s := <-k.typed:
		return k.take(s)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// typedAhead gives the line that was typed for a question that had become void, if
// it came before the next one was asked.
func (k *lineReader) typedAhead() (string, bool) {
	select {
	case s := <-k.typed:
		text, err := k.take(s)
		return text, err == nil
	default:
		return "", false
	}
}

func (k *lineReader) take(s inputLine) (string, error) {
	k.reading, k.closed = false, s.err
	return s.text, s.err
}

func (k *lineReader) read() {
	if k.in.Scan() {
		k.typed <- inputLine{text: k.in.Text()}
		return
	}
	k.typed <- inputLine{err: cmp.Or(k.in.Err(), io.EOF)}
}
