package auth

import "io"

// deadlineBody is a request body with a read deadline. It calls clearDeadline
// at the end of the body, so that the deadline does not limit the answer.
type deadlineBody struct {
	io.ReadCloser
	clearDeadline func()
}

// Read implements io.Reader.
func (b *deadlineBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.clearDeadline()
	}
	return n, err
}
