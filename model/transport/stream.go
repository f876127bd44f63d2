package transport

import (
	"bufio"
	"bytes"
	"io"
	"iter"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Event is a server-sent event.
type Event struct {
	Name string // "" when it has none
	Data []byte // valid until the next event
}

// The most that one event and one answer may have, in bytes.
const (
	maxEvent  = 16 << 20
	maxAnswer = 64 << 20
)

// Events reads server-sent events to the end of a body. Comments are left out.
// It is an error of r, or an event that has no end within maxEvent.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 4<<10), maxEvent)
		var e Event
		for lines.Scan() {
			line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
			if len(line) > 0 {
				e.field(line)
				continue
			}
			if e.Data != nil && !yield(e, nil) {
				return
			}
			e = Event{}
		}
		if err := lines.Err(); err != nil {
			yield(Event{}, asTrouble(err))
			return
		}
		if e.Data != nil { // the last one, whose empty line is missing
			yield(e, nil)
		}
	}
}

// field takes in a line of an event.
func (e *Event) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		e.Name = string(value)
	case "data":
		if e.Data != nil {
			e.Data = append(e.Data, '\n')
		}
		e.Data = append(e.Data, value...)
		if e.Data == nil {
			e.Data = []byte{}
		}
	}
}

func asTrouble(err error) error {
	if err == bufio.ErrTooLong {
		return model.Passing(errcode.LLMCallFailed, nil, "the model sent an event of more than %d bytes", maxEvent)
	}
	return err
}

// All reads a body that is one document.
func All(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = model.Lasting(errcode.LLMCallFailed, nil, "the model's answer has more than %d bytes", maxAnswer)
	}
	return data, err
}
