package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Document is one JSON document, sent as the concatenation of Parts.
type Document struct {
	Parts [][]byte

	// Done, if not nil, is called when Parts are not read any more. The HTTP client
	// may still read them after the answer has arrived.
	Done func()

	readers atomic.Int64
}

// retain counts a reader of the parts until release is called.
func (d *Document) retain() (release func()) {
	d.readers.Add(1)
	return func() {
		if d.readers.Add(-1) == 0 && d.Done != nil {
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

// hash returns the SHA-256 of the document in hexadecimal.
func (d *Document) hash() string {
	h := sha256.New()
	for _, p := range d.Parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reader returns a reader of the whole document.
func (d *Document) reader() io.ReadCloser {
	return &reader{parts: d.Parts, close: d.retain()}
}

// reader reads parts as one stream. Read fills its buffer across parts, so that a
// small part does not cause a write of its own.
type reader struct {
	close func()

	mu     sync.Mutex // guards the fields below; an HTTP client may close while it reads
	parts  [][]byte
	offset int // in the first part
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
		copied := copy(p[n:], r.parts[0][r.offset:])
		n, r.offset = n+copied, r.offset+copied
		if r.offset == len(r.parts[0]) {
			r.parts, r.offset = r.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close implements io.Closer. The parts are not read after it.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.close()
	}
	return nil
}
