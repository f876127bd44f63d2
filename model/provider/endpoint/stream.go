package endpoint

import (
	"bufio"
	"bytes"
	"io"
	"iter"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Event is an event of a stream: a server-sent event, or a message of another encoding.
type Event struct {
	Name string // "" if it has none
	Data []byte // valid until the next event

	buf []byte // memory for Data, which events share
}

// Limits in bytes of one event, one stream and one document.
const (
	maxEvent  = 16 << 20
	maxStream = 256 << 20
	maxAnswer = 16 << 20
)

// ReadEvents returns the server-sent events of a body; comments are skipped. The sequence
// ends with an error of r, or with a *model.Error. It ends with a *model.Error if an
// event has more than 16 MiB or the stream more than 256 MiB.
func ReadEvents(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		rest := &io.LimitedReader{R: r, N: maxStream}
		lines := bufio.NewScanner(rest)
		lines.Buffer(make([]byte, 0, 4<<10), maxEvent)
		var e Event
		for lines.Scan() {
			line := lines.Bytes() // without \r
			switch {
			case len(line) > 0:
				e.addLine(line)
			case e.Data == nil:
				e.Name = ""
			case !yield(e, nil):
				return
			default:
				e = Event{buf: e.Data[:0]}
			}
			if len(e.Data) > maxEvent {
				yield(Event{}, toModelError(bufio.ErrTooLong))
				return
			}
		}
		switch err := lines.Err(); {
		case err != nil:
			yield(Event{}, toModelError(err))
		case rest.N <= 0:
			yield(Event{}, model.PermanentError(errcode.LLMCallFailed, nil, "the model's answer has more than %d bytes", maxStream))
		case e.Data != nil: // the last event, without an empty line after it
			yield(e, nil)
		}
	}
}

// addLine adds a line to an event.
func (e *Event) addLine(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.Name = string(value)
	case "data":
		if e.Data != nil {
			e.Data = append(e.Data, '\n')
		} else if e.Data = e.buf; e.Data == nil {
			e.Data = []byte{}
		}
		e.Data = append(e.Data, value...)
	}
}

// toModelError returns a *model.Error for a line that is too long, else err.
func toModelError(err error) error {
	if err == bufio.ErrTooLong {
		return model.TransientError(errcode.LLMCallFailed, nil, "the model sent an event of more than %d bytes", maxEvent)
	}
	return err
}

// ReadAll reads a body of at most 16 MiB.
func ReadAll(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(1 << 10)
	_, err := b.ReadFrom(io.LimitReader(r, maxAnswer+1))
	if err == nil && b.Len() > maxAnswer {
		err = model.PermanentError(errcode.LLMCallFailed, nil, "the model's answer has more than %d bytes", maxAnswer)
	}
	return b.Bytes(), err
}
