package human

import (
	"bufio"
	"cmp"
	"context"
	"io"
)

// maxLine is the length in bytes from which a line ends the input.
const maxLine = 1 << 20

// lineReader reads a line when one is wanted, never ahead: what a person types
// belongs to the request that is shown then. Not safe for concurrent use.
type lineReader struct {
	in      *bufio.Scanner // used by the goroutine that reads
	typed   chan inputLine // from that goroutine; buffered, so that it can exit
	reading bool           // the goroutine runs, or its line is in typed
	ended   error          // why there are no more lines; nil while there may be some
}

// inputLine is a line, or the error instead of it.
type inputLine struct {
	text string
	err  error
}

func newLineReader(in io.Reader) *lineReader {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return &lineReader{in: lines, typed: make(chan inputLine, 1)}
}

// next waits for the next line. It returns ctx's error when that ends first. Once
// the input has ended, it always returns the same error.
func (r *lineReader) next(ctx context.Context) (string, error) {
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
	case line := <-r.typed:
		return r.receive(line)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// typedAhead returns the line that was typed after a request was cancelled and
// before the next one is shown, if there is one.
func (r *lineReader) typedAhead() (string, bool) {
	select {
	case line := <-r.typed:
		text, err := r.receive(line)
		return text, err == nil
	default:
		return "", false
	}
}

// receive returns what came from typed, after which another line may be read.
func (r *lineReader) receive(line inputLine) (string, error) {
	r.reading, r.ended = false, line.err
	return line.text, line.err
}

// read reads one line and sends it, or the error, to typed. It runs in a goroutine of its own.
func (r *lineReader) read() {
	if r.in.Scan() {
		r.typed <- inputLine{text: r.in.Text()}
		return
	}
	r.typed <- inputLine{err: cmp.Or(r.in.Err(), io.EOF)}
}
