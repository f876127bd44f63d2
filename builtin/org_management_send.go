package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
)

const sendText = `Write to an agent that you hired or one below it, to your parent, to root or to the user. Its answer comes as a message later: end your turn to wait.`

// The schema accepts any quick replies, because they have their own error codes.
const sendInput = `{
	"type": "object",
	"properties": {
		"to": {
			"type": ["string", "array"],
			"description": "An agent's name or id, root or user.",
			"minLength": 1, "maxLength": 256,
			"items": {"type": "string", "minLength": 1, "maxLength": 256},
			"minItems": 1, "maxItems": 100
		},
		"payload": {"type": ["string", "number", "boolean", "object", "array", "null"], "description": "The message: a text, or any JSON."},
		"delayMs": {"type": ["number", "string"], "description": "Deliver after so many milliseconds.", "maxLength": 64},
		"quickReplies": {"type": ["string", "number", "boolean", "object", "array", "null"], "description": "A list of up to 10 short answers to offer to the user."}
	},
	"required": ["to", "payload"],
	"additionalProperties": false
}`

// sendMessage holds the arguments of send_message. Delay and Replies are any
// JSON; parseDelay and quickReplies parse them.
type sendMessage struct {
	To      recipients      `json:"to"`
	Payload json.RawMessage `json:"payload"`
	Delay   json.RawMessage `json:"delayMs"`
	Replies json.RawMessage `json:"quickReplies"`
}

// recipients are the names of one recipient or a list.
type recipients struct {
	names []string
	list  bool // given as a list
}

// UnmarshalJSON accepts a string or a list of strings.
func (r *recipients) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*r = recipients{names: []string{one}}
		return nil
	}
	r.list = true
	return json.Unmarshal(data, &r.names)
}

// multiSendResult is the result for a list of recipients.
type multiSendResult struct {
	Messages []sentTo   `json:"messages"`
	Due      *time.Time `json:"scheduledDeliveryTime,omitempty"`
}

// sentTo is the result for one recipient of a list.
type sentTo struct {
	To        string `json:"to"`
	MessageID string `json:"messageId"`
}

// send handles send_message.
func (h orgHandler) send(ctx context.Context, in sendMessage) (any, error) {
	payload, err := withReplies(in.Payload, in.Replies)
	if err != nil {
		return nil, err
	}
	sent, err := h.messages.SendAll(ctx, currentCall(ctx), in.To.names, payload, parseDelay(in.Delay))
	switch {
	case err != nil:
		return nil, in.To.addNoneSent(err)
	case in.To.list:
		return in.To.multiResult(sent), nil
	}
	return sent[0], nil
}

// multiResult returns the result for a list of recipients.
func (r recipients) multiResult(sent []org.SendResult) multiSendResult {
	all := multiSendResult{Messages: []sentTo{}}
	for i, s := range sent {
		all.Messages = append(all.Messages, sentTo{r.names[i], s.MessageID})
		all.Due = s.Due
	}
	return all
}

// addNoneSent adds to an error that none of several recipients got the message.
func (r recipients) addNoneSent(err error) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || !r.list {
		return err
	}
	all := *e
	all.Message += "; nothing was sent to any recipient"
	return &all
}

// maxDelay is a year.
const maxDelay = 365 * 24 * time.Hour

// parseDelay parses milliseconds from a JSON number or numeric string. Negative and non-numeric
// values are 0. Values above maxDelay are maxDelay.
func parseDelay(raw json.RawMessage) time.Duration {
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // of a string; a number stays as it is
	ms, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, float64(maxDelay/time.Millisecond)) * float64(time.Millisecond))
}

// withReplies returns the payload with quick replies merged into it.
func withReplies(payload, raw json.RawMessage) (json.RawMessage, error) {
	replies, err := quickReplies(raw)
	if err != nil || len(replies) == 0 {
		return payload, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{"text": payload}
	}
	fields["quickReplies"], _ = json.Marshal(replies) // marshalling strings cannot fail
	return json.Marshal(fields)
}

// maxQuickReplies is the maximum number of quick replies of a message.
const maxQuickReplies = 10

// quickReplies parses and validates quick replies.
func quickReplies(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts []*string
	if json.Unmarshal(raw, &texts) != nil || slices.Contains(texts, nil) {
		return nil, errcode.New(errcode.InvalidReplies, "quickReplies must be a list of texts such as [\"yes\",\"no\"]; or leave it out")
	}
	if len(texts) > maxQuickReplies {
		return nil, errcode.New(errcode.TooManyReplies, "quickReplies has %d entries; at most %d are allowed: offer fewer", len(texts), maxQuickReplies)
	}
	var replies []string
	for _, text := range texts {
		if strings.TrimSpace(*text) == "" {
			return nil, errcode.New(errcode.BlankReply, "quickReplies has a blank entry; every reply needs text")
		}
		replies = append(replies, *text)
	}
	return replies, nil
}
