package rolecall

import (
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Message is a message to the program.
type Message struct {
	From     string // an agent's id, or "user" for the operator
	FromRole string // the name of the sender's role; "" for the operator
	Payload  json.RawMessage
	SentAt   time.Time
}

// Text returns the text of the payload: the payload itself if it is a JSON string, or its field
// text. It returns "" if there is no text. The final answer of a language model has a text.
func (m Message) Text() string { return model.Message{Payload: m.Payload}.Text() }

// Failure returns the error that the payload reports, with its code: the turn of the sender
// has failed. The code IncompleteResult means that its answer was cut, filtered or refused;
// Text is what there is of it. Failure returns nil for other messages.
func (m Message) Failure() error {
	payload := gjson.ParseBytes(m.Payload)
	if stop := payload.Get("incomplete").String(); stop != "" {
		return errcode.New(errcode.IncompleteResult, "agent %s: the answer is incomplete: %s", m.From, stop)
	}
	if payload.Get("kind").String() != "error" {
		return nil
	}
	return errcode.New(errcode.Code(payload.Get("errorType").String()), "agent %s: %s", m.From, logHint(payload.Get("message").String()))
}
