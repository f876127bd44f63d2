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

const sendText = `Send a message to agents or to the user. You may write to your parent, the agents you spawned and those below them, the collaborators your brief names, ` +
	`"root" (the agent that leads this task) and "user" (the person who gave it), within this task only; being written to gives you no right to write back: pass it on through root or your parent. ` +
	`The recipient reads it when its current step is done, and messages in the order you sent them; you get no answer here: one comes as a message. ` +
	`to may list up to 100 recipients: all get it, or none when one may not. delayMs holds it back, also over restarts, and the task stays open until then. ` +
	`quickReplies offers the user up to 10 short answers. Put large content into an artifact and send its reference. ` +
	`Answers {"messageId":"…"}, for a list {"messages":[{"to":"…","messageId":"…"}]}, with scheduledDeliveryTime when delayed. ` +
	`Example: {"to":"root","payload":{"text":"The figures are ready: artifact:7d1f"}}`

// Quick replies have error codes of their own, so the schema lets all pass.
const sendInput = `{
	"type": "object",
	"properties": {
		"to": {
			"type": ["string", "array"],
			"description": "An agent's id (not its role's name), \"root\" or \"user\"; or a list of them.",
			"minLength": 1, "maxLength": 128,
			"items": {"type": "string", "minLength": 1, "maxLength": 128},
			"minItems": 1, "maxItems": 100
		},
		"payload": {"description": "What to say: usually an object with text; any JSON, and it arrives as it is. Who sends it, and in which task, is added."},
		"delayMs": {"type": ["number", "string"], "description": "Milliseconds to hold the message back, at most a year; what is negative or no number is at once.", "maxLength": 64},
		"quickReplies": {"description": "A list of up to 10 short texts the user may answer with, none blank; they become payload.quickReplies."}
	},
	"required": ["to", "payload"],
	"additionalProperties": false
}`

type sendMessage struct {
	To      recipients      `json:"to"`
	Payload json.RawMessage `json:"payload"`
	Delay   json.RawMessage `json:"delayMs"`
	Replies json.RawMessage `json:"quickReplies"`
}

// recipients is who gets a message: one, or a list.
type recipients struct {
	names []string
	list  bool
}

// UnmarshalJSON takes a string or a list of strings.
func (r *recipients) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*r = recipients{names: []string{one}}
		return nil
	}
	r.list = true
	return json.Unmarshal(data, &r.names)
}

// multiSendResult is the answer for a list.
type multiSendResult struct {
	Messages []sentTo   `json:"messages"`
	Due      *time.Time `json:"scheduledDeliveryTime,omitempty"`
}

type sentTo struct {
	To        string `json:"to"`
	MessageID string `json:"messageId"`
}

func (h organization) send(ctx context.Context, in sendMessage) (any, error) {
	payload, err := withReplies(in.Payload, in.Replies)
	if err != nil {
		return nil, err
	}
	sent, err := h.messages.SendAll(ctx, caller(ctx), in.To.names, payload, delay(in.Delay))
	switch {
	case err != nil:
		return nil, in.To.refused(err)
	case in.To.list:
		return in.To.answer(sent), nil
	}
	return sent[0], nil
}

func (r recipients) answer(sent []org.SendResult) multiSendResult {
	all := multiSendResult{Messages: []sentTo{}}
	for i, s := range sent {
		all.Messages = append(all.Messages, sentTo{r.names[i], s.MessageID})
		all.Due = s.Due
	}
	return all
}

// refused says of a list that nobody on it got anything.
func (r recipients) refused(err error) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || !r.list {
		return err
	}
	whole := *e
	whole.Message += "; none of the recipients was sent anything"
	return &whole
}

// maxDelay is a year.
const maxDelay = 365 * 24 * time.Hour

// delay reads milliseconds from a number or a numeric string; what is
// negative or no number is at once.
func delay(raw json.RawMessage) time.Duration {
	text := string(raw)
	_ = json.Unmarshal(raw, &text) // a number stays as it is
	ms, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(ms) || ms <= 0 {
		return 0
	}
	return time.Duration(min(ms, float64(maxDelay/time.Millisecond)) * float64(time.Millisecond))
}

// withReplies merges quick replies into a payload.
func withReplies(payload, raw json.RawMessage) (json.RawMessage, error) {
	replies, err := quickReplies(raw)
	if err != nil || len(replies) == 0 {
		return payload, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(payload, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{"text": payload}
	}
	fields["quickReplies"], _ = json.Marshal(replies) // strings always marshal
	return json.Marshal(fields)
}

const maxReplies = 10

func quickReplies(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var texts []*string
	if json.Unmarshal(raw, &texts) != nil || slices.Contains(texts, nil) {
		return nil, errcode.New(errcode.InvalidReplies, "quickReplies is not a list of texts; give one, as in [\"yes\",\"no\"], or leave it out")
	}
	if len(texts) > maxReplies {
		return nil, errcode.New(errcode.TooManyReplies, "quickReplies has %d entries; at most %d are allowed: offer fewer", len(texts), maxReplies)
	}
	var replies []string
	for _, text := range texts {
		if strings.TrimSpace(*text) == "" {
			return nil, errcode.New(errcode.BlankReply, "quickReplies has a blank entry; give every answer some text")
		}
		replies = append(replies, *text)
	}
	return replies, nil
}
