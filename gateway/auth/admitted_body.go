package auth

import "io"

// admittedBody is the body of a request. The sender was admitted when the head had arrived.
// The end of the body is an error if the sender would not be admitted any more. A body may
// arrive slowly, and the token may be removed meanwhile. Nothing is done for such a token.
type admittedBody struct {
	io.ReadCloser
	revalidate func() error
}

// Read implements io.Reader.
func (b *admittedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		if invalid := b.revalidate(); invalid != nil {
			return 0, invalid
		}
	}
	return n, err
}
