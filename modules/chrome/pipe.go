package chrome

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/rolecall/rolecall/internal/textutil"
)

// maxMessage is the limit in bytes of one message of the browser.
const maxMessage = 32 << 20

// messageReader reads the messages of a browser, each of which ends with a zero byte. It
// replaces messages that are too long, since pages can influence their length.
type messageReader struct {
	source io.ReadCloser
	in     *bufio.Reader
	ready  bytes.Reader
}

func newMessageReader(r io.ReadCloser) *messageReader {
	return &messageReader{source: r, in: bufio.NewReaderSize(r, 64<<10)}
}

// Close implements io.Closer.
func (r *messageReader) Close() error { return r.source.Close() }

// Read implements io.Reader.
func (r *messageReader) Read(p []byte) (int, error) {
	for r.ready.Len() == 0 {
		message, err := r.nextMessage()
		if err != nil {
			return 0, err
		}
		r.ready.Reset(message)
	}
	return r.ready.Read(p)
}

// nextMessage returns the next message with its zero byte. In place of a reply that is too
// long it returns an error reply, in place of an event nothing.
func (r *messageReader) nextMessage() ([]byte, error) {
	var message []byte
	tooLong := false
	for {
		part, err := r.in.ReadSlice(0)
		if !tooLong {
			message = append(message, part...)
		}
		if len(message) > maxMessage {
			tooLong, message = true, message[:64:64]
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil:
			return nil, err
		case tooLong:
			return errorReply(message), nil
		default:
			return message, nil
		}
	}
}

// replyID matches the id at the start of a reply.
var replyID = textutil.LazyPattern(`^\{"id":(\d+),`)

// errorReply returns an error reply for the message that begins with head, nil if it is not a
// reply.
func errorReply(head []byte) []byte {
	if id := replyID().FindSubmatch(head); id != nil {
		return fmt.Appendf(nil, `{"id":%s,"error":{"code":-32000,"message":"the reply is too large"}}`+"\x00", id[1])
	}
	return nil
}
