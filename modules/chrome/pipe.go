package chrome

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
)

// maxMessage is the most bytes of one message of the browser.
const maxMessage = 32 << 20

// frames reads the messages of a browser, each of which ends with a zero
// byte, and cuts those that are too long: pages have a say in their length.
type frames struct {
	source io.ReadCloser
	in     *bufio.Reader
	ready  bytes.Reader
}

func newFrames(r io.ReadCloser) *frames {
	return &frames{source: r, in: bufio.NewReaderSize(r, 64<<10)}
}

// Close implements io.Closer.
func (f *frames) Close() error { return f.source.Close() }

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for f.ready.Len() == 0 {
		message, err := f.next()
		if err != nil {
			return 0, err
		}
		f.ready.Reset(message)
	}
	return f.ready.Read(p)
}

// next gives one message with its end. Of one that is too long it gives an
// error in its place, if it answers something.
func (f *frames) next() ([]byte, error) {
	var message []byte
	long := false
	for {
		part, err := f.in.ReadSlice(0)
		if !long {
			message = append(message, part...)
		}
		if len(message) > maxMessage {
			long, message = true, message[:64:64]
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err != nil:
			return nil, err
		case long:
			return errorReply(message), nil
		default:
			return message, nil
		}
	}
}

// answered finds what a reply answers: the id comes first.
var answered = regexp.MustCompile(`^\{"id":(\d+),`)

func errorReply(head []byte) []byte {
	if id := answered.FindSubmatch(head); id != nil {
		return fmt.Appendf(nil, `{"id":%s,"error":{"code":-32000,"message":"the answer is too large"}}`+"\x00", id[1])
	}
	return nil
}
