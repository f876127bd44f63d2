package endpoint

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Document is one JSON document in parts, which are sent as they are.
type Document struct {
	Parts [][]byte

	// Done is called when nobody reads Parts any more, which may be long after
	// the answer has come. Nil is not called.
	Done func()

	using atomic.Int64
}

// open says that somebody may read the parts, until close is called.
func (d *Document) open() (close func()) {
	d.using.Add(1)
	return func() {
		if d.using.Add(-1) == 0 && d.Done != nil {
			d.Done()
		}
	}
}

func (d *Document) size() (n int64) {
	for _, p := range d.Parts {
		n += int64(len(p))
	}
	return n
}

// reader reads the document from its beginning.
func (d *Document) reader() io.ReadCloser {
	return &reader{parts: d.Parts, close: d.open()}
}

// reader reads parts as one. It fills what it is given, so that a small part
// costs no write of its own.
type reader struct {
	close func()

	mu     sync.Mutex // an HTTP client may close what it still reads
	parts  [][]byte
	at     int // in the first of them
	closed bool
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	for n < len(p) && len(r.parts) > 0 {
		copied := copy(p[n:], r.parts[0][r.at:])
		n, r.at = n+copied, r.at+copied
		if r.at == len(r.parts[0]) {
			r.parts, r.at = r.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. After it the parts are not touched.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.close()
	}
	return nil
}
