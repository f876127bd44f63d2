// Package lineinput reads lines that a person types at a terminal. It reads a line when one is
// wanted, never ahead. A read of a terminal cannot be cancelled. So a line that completes a cancelled read
// is kept apart: the person typed it for an earlier question.
package lineinput

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
)

// Reader reads lines. It is not safe for concurrent use.
type Reader struct {
	in      *bufio.Scanner // used by the goroutine that reads
	typed   chan line      // from that goroutine; buffered, so that it can exit
	reading bool           // the goroutine runs, or its line is in typed
	ended   error          // why there are no more lines; nil while there may be some
	limit   int            // of the size of a line in bytes
}

// line is a line, or the error instead of it.
type line struct {
	text string
	err  error
}

// New returns a Reader of in. A line of limit bytes or more ends the input.
func New(in io.Reader, limit int) *Reader {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, limit)
	return &Reader{in: lines, typed: make(chan line, 1), limit: limit}
}

// Next waits for the next line. It returns ctx's error when that ends first; the read then goes on, and
// its line is the next one. Once the input has ended, Next always returns the same error, io.EOF if
// there was no other.
func (r *Reader) Next(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if r.ended != nil {
		return "", r.ended
	}
	if !r.reading {
		r.reading = true
		go r.read()
	}
	select {
	case l := <-r.typed:
		return r.receive(l)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Late returns the line that was typed after a Next was cancelled and before the following one. It
// reports whether there is one.
func (r *Reader) Late() (string, bool) {
	select {
	case l := <-r.typed:
		text, err := r.receive(l)
		return text, err == nil
	default:
		return "", false
	}
}

// receive returns what came from typed, after which another line may be read.
func (r *Reader) receive(l line) (string, error) {
	r.reading, r.ended = false, l.err
	return l.text, l.err
}

// read reads one line and sends it, or the error, to typed. It runs in a goroutine of its own.
func (r *Reader) read() {
	if r.in.Scan() {
		r.typed <- line{text: r.in.Text()}
		return
	}
	err := cmp.Or(r.in.Err(), io.EOF)
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line has %d bytes or more", r.limit)
	}
	r.typed <- line{err: err}
}
