package bedrock

import (
	"bufio"
	"encoding/binary"
	"errors"
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

// messageFrame is the bytes of a message without headers and payload: its two lengths and
// two checksums.
const messageFrame = 16

// errMalformed is the error for bytes that are not messages of Amazon's event stream.
var errMalformed = model.TransientError(errcode.LLMCallFailed, nil, "the model sent a stream that is not one of Amazon's event streams, or is damaged")

// readEvents returns the events of a body in the encoding application/vnd.amazon.eventstream.
// The data of an event is a JSON object with one field, the type of the event, such as
// {"messageStop":{"stopReason":"end_turn"}}. That of an exception is
// {"exception":"throttlingException","error":{"message":"…"}}.
//
// An error ends the sequence: one of r, or a *model.Error. A body that is cut off between two messages ends it without
// one; the reader of the answer notices that.
func readEvents(r io.Reader) iter.Seq2[endpoint.Event, error] {
	return func(yield func(endpoint.Event, error) bool) {
		source := &errorReader{source: io.LimitReader(r, maxStream)}
		messages, decoder := bufio.NewReader(source), eventstream.NewDecoder()
		for {
			event, err := readEvent(messages, decoder)
			switch {
			case err != nil && source.err != nil:
				err = source.err
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

// readEvent reads one message. Its lengths are checked before the decoder trusts them.
func readEvent(r *bufio.Reader, decoder *eventstream.Decoder) (event endpoint.Event, err error) {
	prelude, err := r.Peek(8)
	if err != nil {
		return event, err
	}
	total, headers := binary.BigEndian.Uint32(prelude), binary.BigEndian.Uint32(prelude[4:])
	if total > maxMessage || headers > maxHeaders || total < headers+messageFrame {
		return event, errMalformed
	}
	m, err := decoder.Decode(io.LimitReader(r, int64(total)), nil)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return event, err
	case err != nil:
		return event, errMalformed
	}
	return toEvent(m), nil
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
