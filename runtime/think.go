package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// generate asks the agent's model and completes the answer with what the
// record needs.
func (a *actor) generate(ctx context.Context) (*model.Answer, error) {
	thinker, err := a.rt.modelOf(a.agent)
	if err != nil {
		return nil, err
	}
	seat := a.rt.gate.Bind(identity.ByAgent(a.agent.ID))
	r := a.request(seat)
	answer, err := collect(ctx, thinker, r)
	if err != nil {
		return nil, err
	}
	answer.State, answer.Tools = seat.State, nil
	if !slices.Equal(r.Tools, a.state.tools) || a.state.answers == 0 {
		answer.Tools = r.Tools
	}
	a.name(answer.Calls)
	return answer, nil
}

// name gives calls their ids: the same for the same place in the journal.
func (a *actor) name(calls []model.Call) {
	for i := range calls {
		c := &calls[i]
		c.ID = identity.CallID(identity.Derive(string(a.agent.ID), strconv.Itoa(a.state.answers), strconv.Itoa(i)))
		switch {
		case len(c.Args) == 0:
			c.Args = json.RawMessage(`{}`)
		case !storable(c.Args): // quoted, so that the record stays JSON and the gate refuses it
			c.Args, _ = json.Marshal(string(c.Args))
		default:
			c.Args = asStored(c.Args)
		}
		c.Name, c.Provider = valid(c.Name), valid(c.Provider)
	}
}

// asStored gives JSON as the journal gives it back: a process that starts
// anew then sends a model the same bytes.
func asStored(doc json.RawMessage) json.RawMessage {
	if settled(doc) {
		return bytes.Clone(doc)
	}
	text, err := json.Marshal(doc)
	if doc == nil || err != nil {
		return doc
	}
	return text
}

// settled says whether encoding/json would change nothing in a document: there
// is no space between its tokens and nothing in it that is escaped.
func settled(doc []byte) bool {
	inText := false
	for i := 0; i < len(doc); i++ {
		switch b := doc[i]; {
		case b == '"':
			inText = !inText
		case b == '\\':
			i++ // within a string: what is escaped ends none
		case b == '<', b == '>', b == '&', b == 0xE2: // the last begins U+2028
			return false
		case b <= ' ' && !inText:
			return false
		}
	}
	return true
}

// valid gives text as the journal gives it back.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// storable says whether a document is JSON that can be read again also from
// inside a record: encoding/json gives up past some depth.
func storable(doc []byte) bool {
	const around, most = 100, 10_000
	return json.Valid(doc) && (len(doc) < most-around ||
		json.Valid(slices.Concat(bytes.Repeat([]byte("["), around), doc, bytes.Repeat([]byte("]"), around))))
}

func (a *actor) request(seat *gate.Seat) model.Request {
	names := seat.Names()
	r := model.Request{
		Self:   model.Self{ID: a.agent.ID, Role: a.role, Parent: a.agent.Parent, Task: a.agent.Task, State: seat.State},
		System: a.rt.prompt(a.agent, names) + a.errand(),
		Items:  slices.Clip(a.state.items), Tools: names, ToolJSON: seat.Wire(), Compact: a.state.compact,
	}
	r.System += fullness(a.state.usage.with(r), names)
	return r
}

// collect reads a model's answer to its end. What the model breaks is its failure.
func collect(ctx context.Context, m model.Model, r model.Request) (answer *model.Answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, failedCall(fmt.Errorf("the model panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	for delta, err := range m.Generate(ctx, r) {
		if err != nil {
			return nil, failedCall(err)
		}
		if delta.Answer != nil {
			answer = delta.Answer
		}
	}
	switch {
	case answer == nil:
		return nil, errcode.New(errcode.LLMCallFailed, "the model gave no answer")
	case answer.Value != nil && !storable(answer.Value):
		return nil, errcode.New(errcode.LLMCallFailed, "the value of the model's answer is not JSON, or nested too deep")
	}
	own := *answer
	own.Text, own.Value = valid(own.Text), asStored(own.Value)
	own.Calls = slices.Clone(answer.Calls)
	return &own, nil
}

func failedCall(err error) error {
	if errcode.Of(err) != errcode.Internal {
		return err
	}
	return errcode.Wrap(errcode.LLMCallFailed, err, "the model could not be asked; the log has the cause")
}

// readBy gives how many messages a model had read when it failed, if it says
// so in the detail read (script does). A turn that read nothing new would fail
// for ever: then, as when nothing is said, it is 0, all.
func (a *actor) readBy(cause error) int {
	if e, ok := errors.AsType[*errcode.Error](cause); ok {
		if read, ok := e.Details["read"].(int); ok && read > a.state.behind {
			return read
		}
	}
	return 0
}

// notice is the error message a parent gets.
func (a *actor) notice(cause error) []byte {
	var original string
	for _, item := range slices.Backward(a.state.items) {
		if item.Message != nil {
			original = item.Message.ID
			break
		}
	}
	payload, _ := json.Marshal(map[string]any{ // strings and a time always marshal
		"kind": "error", "errorType": errcode.Of(cause), "message": errcode.Message(cause),
		"agentId": a.agent.ID, "originalMessageId": original, "taskId": a.agent.Task, "timestamp": a.rt.now(),
	})
	return payload
}

func textPayload(text string) json.RawMessage {
	payload, _ := json.Marshal(struct {
		Text string `json:"text"`
	}{text}) // a string always marshals
	return payload
}
