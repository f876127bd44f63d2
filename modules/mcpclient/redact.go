package mcpclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"

	"github.com/rolecall/rolecall/internal/redact"
)

// redactBody returns the body of a response without the secrets that the server was given.
func (w *httpTransport) redactBody(response *http.Response) io.ReadCloser {
	secrets := w.secrets.current()
	if secrets == nil {
		return response.Body
	}
	b := &redactedBody{ReadCloser: response.Body, transport: w, secrets: secrets, stream: isStream(response)}
	b.in = bufio.NewReader(b.ReadCloser)
	return b
}

// redactedBody is a body that is redacted as a whole, an event stream line by line.
type redactedBody struct {
	io.ReadCloser
	transport *httpTransport
	secrets   *redact.Redactor
	in        *bufio.Reader
	stream    bool
	redacted  []byte // not read yet
	err       error  // after redacted
}

// Read implements io.Reader.
func (b *redactedBody) Read(p []byte) (int, error) {
	for len(b.redacted) == 0 && b.err == nil {
		var part []byte
		part, b.err = b.next()
		b.redacted = b.redact(part)
	}
	n := copy(p, b.redacted)
	if b.redacted = b.redacted[n:]; len(b.redacted) > 0 {
		return n, nil
	}
	return n, b.err
}

// next returns the next line of a stream, or a whole document.
func (b *redactedBody) next() (part []byte, err error) {
	if !b.stream {
		if part, err = io.ReadAll(b.in); err == nil {
			err = io.EOF
		}
		return part, err
	}
	for {
		piece, err := b.in.ReadSlice('\n')
		if part = append(part, piece...); len(part) > maxMessage {
			return nil, b.transport.setFault(errMessageTooLong)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return part, err
		}
	}
}

// redact redacts a document or a line of a stream, whose field name stays.
func (b *redactedBody) redact(part []byte) []byte {
	data, isData := bytes.CutPrefix(part, []byte("data:"))
	if !b.stream || !isData {
		return b.secrets.RedactJSON(part)
	}
	text := bytes.TrimSpace(data)
	if len(text) == 0 {
		return part
	}
	return bytes.Replace(part, text, b.secrets.RedactJSON(text), 1)
}
