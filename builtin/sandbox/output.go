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

// headTailBuffer is an io.Writer that keeps the beginning and the end of what is
// written to it. It never fails, so that much output does not fail a job.
type headTailBuffer struct {
	head, tail []byte // at most half bytes each; tail is a ring buffer once it is full
	half       int
	tailStart  int   // index of the oldest byte in tail
	written    int64 // bytes, with those that were dropped
}

// newHeadTailBuffer returns a buffer that keeps limit bytes.
func newHeadTailBuffer(limit int) *headTailBuffer { return &headTailBuffer{half: max(1, limit/2)} }

// Write implements io.Writer.
func (b *headTailBuffer) Write(p []byte) (int, error) {
	written := len(p)
	b.written += int64(written)
	if room := b.half - len(b.head); room > 0 {
		n := min(room, len(p))
		b.head, p = append(b.head, p[:n]...), p[n:]
	}
	if len(p) > b.half {
		p = p[len(p)-b.half:]
	}
	if room := b.half - len(b.tail); room > 0 {
		n := min(room, len(p))
		b.tail, p = append(b.tail, p[:n]...), p[n:]
	}
	for len(p) > 0 {
		n := copy(b.tail[b.tailStart:], p)
		b.tailStart, p = (b.tailStart+n)%b.half, p[n:]
	}
	return written, nil
}

// output returns what was kept. A character that the cut splits is omitted whole.
func (b *headTailBuffer) output() Output {
	head, tail := b.head, append(append([]byte(nil), b.tail[b.tailStart:]...), b.tail[:b.tailStart]...)
	if b.written > int64(len(head)+len(tail)) {
		head, tail = textutil.TrimPartialRune(head), trimContinuation(tail)
	}
	return Output{Head: head, Tail: tail, Omitted: b.written - int64(len(head)+len(tail))}
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
