package auth

import "io"

// admittedBody is the body of a request whose sender was admitted when the head had arrived.
// Its end is an error if the sender would not be admitted any more: a body may arrive slowly,
// and nothing is done for a token that was removed meanwhile.
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
