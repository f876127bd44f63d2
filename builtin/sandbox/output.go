package sandbox

import "fmt"

// Output is what a job wrote, cut in the middle when it wrote more than is
// kept: the beginning says what was tried, the end how it went.
type Output struct {
	Head, Tail []byte
	Omitted    int64 // bytes between them
}

// String gives the output with a line that says what is left out.
func (o Output) String() string {
	if o.Omitted == 0 {
		return string(o.Head) + string(o.Tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", o.Head, o.Omitted, o.Tail)
}

// recorder is a writer that keeps the beginning and the end of what it gets
// and never refuses: a job is not to fail because it says much.
type recorder struct {
	head, ring []byte
	half       int
	next       int // where ring is overwritten next
	total      int64
}

func newRecorder(limit int) *recorder { return &recorder{half: max(1, limit/2)} }

// Write keeps what belongs to the beginning or, so far, to the end of p.
func (r *recorder) Write(p []byte) (int, error) {
	written := len(p)
	r.total += int64(written)
	if room := r.half - len(r.head); room > 0 {
		n := min(room, len(p))
		r.head, p = append(r.head, p[:n]...), p[n:]
	}
	if len(p) > r.half {
		p = p[len(p)-r.half:]
	}
	if room := r.half - len(r.ring); room > 0 {
		n := min(room, len(p))
		r.ring, p = append(r.ring, p[:n]...), p[n:]
	}
	for len(p) > 0 {
		n := copy(r.ring[r.next:], p)
		r.next, p = (r.next+n)%r.half, p[n:]
	}
	return written, nil
}

func (r *recorder) output() Output {
	tail := append(append([]byte(nil), r.ring[r.next:]...), r.ring[:r.next]...)
	return Output{Head: r.head, Tail: tail, Omitted: r.total - int64(len(r.head)+len(tail))}
}
