package gateway

import "io"

// deadlineBody is a body that has to arrive by a deadline, which arrived lifts: an
// answer may last longer.
type deadlineBody struct {
	io.ReadCloser
	arrived func()
}

// Read implements io.Reader.
func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.arrived()
	}
	return n, err
}
