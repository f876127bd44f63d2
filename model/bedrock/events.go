package bedrock

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// Limits in bytes of one message of a stream, of its headers, and of a stream.
const (
	maxMessage = 16 << 20
	maxHeaders = 64 << 10
	maxStream  = 256 << 20
)

// Bytes of parts of a message.
const (
	lengthBytes  = 8                // of its two lengths: of the message, and of its headers
	preludeBytes = lengthBytes + 4  // of the lengths and their checksum
	messageFrame = preludeBytes + 4 // of a message without headers and payload: it ends with a checksum
)

// The errors for bytes that are not messages of Amazon's event stream, and for more of them than
// the limits allow.
var (
	errMalformed   = model.TransientError(errcode.LLMCallFailed, nil, "the model sent a stream that is not one of Amazon's event streams, or is damaged")
	errLongMessage = model.TransientError(errcode.LLMCallFailed, nil, "the model sent an event of more than %d bytes", maxMessage)
	errLongStream  = model.PermanentError(errcode.LLMCallFailed, nil, "the model's answer has more than %d bytes", maxStream)
)

// readEvents returns the events of a body in the encoding application/vnd.amazon.eventstream.
// The data of an event is a JSON object with one field, the type of the event, such as
// {"messageStop":{"stopReason":"end_turn"}}. That of an exception is
// {"exception":"throttlingException","error":{"message":"…"}}.
//
// An error ends the sequence: one of r, or a *model.Error. A body that is cut off ends it without one; the reader of the
// answer notices that.
func readEvents(r io.Reader) iter.Seq2[endpoint.Event, error] {
	return func(yield func(endpoint.Event, error) bool) {
		rest := &io.LimitedReader{R: r, N: maxStream}
		source := &errorReader{source: rest}
		messages, decoder := bufio.NewReader(source), eventstream.NewDecoder()
		for {
			event, err := readEvent(messages, decoder)
			switch {
			case err != nil && source.err != nil:
				err = source.err
			case err != nil && rest.N <= 0:
				err = errLongStream
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the caller notices that the answer is not complete
				return
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// errorReader records why reading failed.
type errorReader struct {
	source io.Reader
	err    error // other than io.EOF
}

// Read implements io.Reader.
func (r *errorReader) Read(p []byte) (int, error) {
	n, err := r.source.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// readEvent reads one message. Its lengths are checked before the decoder trusts them. The error is
// io.EOF or io.ErrUnexpectedEOF if r ends.
func readEvent(r *bufio.Reader, decoder *eventstream.Decoder) (event endpoint.Event, err error) {
	total, err := peekLength(r)
	if err != nil {
		return event, err
	}
	m, err := decoder.Decode(io.LimitReader(r, int64(total)), nil)
	if err == nil {
		return toEvent(m), nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if _, end := r.Peek(1); end != nil {
			return event, err
		}
	} // else the message ends within a header, which is damaged
	return event, errMalformed
}

// peekLength returns the length of the next message. A valid checksum tells a message that is too
// long from other bytes.
func peekLength(r *bufio.Reader) (uint32, error) {
	b, err := r.Peek(preludeBytes)
	if err != nil {
		return 0, err
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch {
	case crc32.ChecksumIEEE(b[:lengthBytes]) != binary.BigEndian.Uint32(b[lengthBytes:]), total < messageFrame, headers > min(maxHeaders, total-messageFrame):
		return 0, errMalformed
	case total > maxMessage:
		return 0, errLongMessage
	}
	return total, nil
}

// toEvent returns the event of a message.
func toEvent(m eventstream.Message) (e endpoint.Event) {
	if len(m.Payload) == 0 {
		m.Payload = []byte(`{}`)
	}
	switch header(m, ":message-type") {
	case "exception":
		e.Name = header(m, ":exception-type")
		e.Data = appendException(e.Name, m.Payload)
	case "error":
		e.Name = header(m, ":error-code")
		message := chat.AppendString([]byte(`{"message":`), header(m, ":error-message"))
		e.Data = appendException(e.Name, append(message, '}'))
	default:
		e.Name = header(m, ":event-type")
		e.Data = append(chat.AppendString([]byte(`{`), e.Name), ':')
		e.Data = append(append(e.Data, m.Payload...), '}')
	}
	return e
}

// appendException returns the data of an exception.
func appendException(name string, payload []byte) []byte {
	doc := chat.AppendString([]byte(`{"exception":`), name)
	doc = append(append(doc, `,"error":`...), payload...)
	return append(doc, '}')
}

// header returns the text of a header, or "".
func header(m eventstream.Message, name string) string {
	if value, ok := m.Headers.Get(name).(eventstream.StringValue); ok {
		return string(value)
	}
	return ""
}
