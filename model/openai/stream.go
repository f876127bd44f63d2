package openai

import (
	"bufio"
	"bytes"
	"io"

	"github.com/rolecall/rolecall/model/transport"
)

// done is what ends a stream; it is no JSON.
var done = []byte("[DONE]")

// stream reads an answer that comes in pieces. The word how it ended is not
// the last of it: the tokens used come after.
func (a *answer) stream(body io.Reader) error {
	for event, err := range transport.Events(body) {
		switch {
		case err != nil:
			return err
		case bytes.Equal(bytes.TrimSpace(event.Data), done):
			return nil
		case len(event.Data) == 0:
			continue
		}
		if err := a.take(event.Data, true); err != nil || a.deaf {
			return err
		}
	}
	if a.finish == "" {
		return a.broken()
	}
	return nil
}

// isDocument says whether a body that should be a stream is one document: so
// answer servers that know no streams, and those that fail before they begin.
func isDocument(body io.Reader) (bool, io.Reader, error) {
	r := bufio.NewReaderSize(body, 16)
	for {
		first, err := r.Peek(1)
		switch {
		case err == io.EOF:
			return false, r, nil
		case err != nil:
			return false, r, err
		case first[0] != '\n' && first[0] != '\r' && first[0] != ' ':
			return first[0] == '{', r, nil
		}
		r.Discard(1)
	}
}
