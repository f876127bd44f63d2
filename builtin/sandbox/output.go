package sandbox

import (
	"fmt"
	"unicode/utf8"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Output is what a job wrote to stdout or stderr. Output over the limit is cut in
// the middle: the beginning shows what was tried, the end how it went.
type Output struct {
	Head, Tail []byte
	Omitted    int64 // number of bytes between Head and Tail
}

// String returns the output, with a line in place of the omitted bytes.
func (o Output) String() string {
	if o.Omitted == 0 {
		return string(o.Head) + string(o.Tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", o.Head, o.Omitted, o.Tail)
}

// headTailBuffer is an io.Writer that keeps the first and the last half bytes
// written to it. It never fails, so that much output does not fail a job. tail
// is a ring buffer once it is full.
type headTailBuffer struct {
	head, tail []byte
	half       int
	tailStart  int // index of the oldest byte in tail
	written    int64
}

func newHeadTailBuffer(limit int) *headTailBuffer { return &headTailBuffer{half: max(1, limit/2)} }

// Write implements io.Writer.
func (r *headTailBuffer) Write(p []byte) (int, error) {
	written := len(p)
	r.written += int64(written)
	if room := r.half - len(r.head); room > 0 {
		n := min(room, len(p))
		r.head, p = append(r.head, p[:n]...), p[n:]
	}
	if len(p) > r.half {
		p = p[len(p)-r.half:]
	}
	if room := r.half - len(r.tail); room > 0 {
		n := min(room, len(p))
		r.tail, p = append(r.tail, p[:n]...), p[n:]
	}
	for len(p) > 0 {
		n := copy(r.tail[r.tailStart:], p)
		r.tailStart, p = (r.tailStart+n)%r.half, p[n:]
	}
	return written, nil
}

// output returns what was kept. A character that the cut splits is omitted whole.
func (r *headTailBuffer) output() Output {
	head, tail := r.head, append(append([]byte(nil), r.tail[r.tailStart:]...), r.tail[:r.tailStart]...)
	if r.written > int64(len(head)+len(tail)) {
		head, tail = textutil.TrimPartialRune(head), trimContinuation(tail)
	}
	return Output{Head: head, Tail: tail, Omitted: r.written - int64(len(head)+len(tail))}
}

// trimContinuation returns data without the rest of a character at its beginning.
func trimContinuation(data []byte) []byte {
	for i := range min(utf8.UTFMax, len(data)) {
		if utf8.RuneStart(data[i]) {
			return data[i:]
		}
	}
	return data
}
