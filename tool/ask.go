package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rolecall/rolecall/errcode"
)

// Asks says whether a tool may ask a person, or its client, while it is called.
type Asks uint8

// What a tool may ask. The zero Asks is the one without any right.
const (
	AsksNothing Asks = iota // Ask fails
	AsksFirst               // asks before it acts: its function may run again from the beginning, with the answers so far
	AsksMidway              // may have acted when it asks: its function runs once, so it can ask only where an answer can be waited for
)

// MaxQuestions is how many requests one call may make.
const MaxQuestions = 16

// asking is what a call has asked.
type asking struct {
	source     InputSource
	call       Call
	asks       Asks
	repeatable bool

	mu    sync.Mutex      // held while a round waits: a call asks one round at a time
	asked map[string]bool // the names of the requests so far
}

// askingKey is the context key of the asking of the current call.
type askingKey struct{}

// BindInput returns the context of a call in which it may ask what its definition allows. The gate
// calls it.
func BindInput(ctx context.Context, c Call, d Definition) context.Context {
	a := &asking{source: InputOf(ctx), call: c, asks: d.Asks, asked: map[string]bool{}}
	a.repeatable = d.Asks == AsksFirst || d.Asks == AsksMidway && (d.Effect == ReadOnly || d.Effect == Idempotent)
	return context.WithValue(ctx, askingKey{}, a)
}

// Ask asks the person behind the call that ctx belongs to, and waits for the answer. The time of
// waiting does not count to the time limit of the call.
//
// The answer comes from the client of the call, or from the person who started the task. If the
// client has no session, the call ends here with an error, which the tool must return. The
// function then runs again from its beginning, and Ask returns the answer. So a tool asks before
// it acts (AsksFirst).
//
// Errors:
//
//   - InputUnavailable if no person can be asked, if the tool does not declare that it asks
//     (Options.Asks), or if it has asked too much
//   - InputRequired if the call ends here
//   - InvalidArguments for an invalid question or answer
//   - the errors of ctx
func Ask(ctx context.Context, q Question) (Answer, error) {
	all, err := RequestInput(ctx, nil, InputRequest{Name: q.Name, Question: &q})
	if err != nil {
		return Answer{Action: Cancel}, err
	}
	return *all[0].Answer, nil
}

// AskModel asks the model of the client that calls. It returns the errors of Ask.
func AskModel(ctx context.Context, r ModelRequest) (ModelReply, error) {
	all, err := RequestInput(ctx, nil, InputRequest{Model: &r})
	if err != nil {
		return ModelReply{}, err
	}
	return *all[0].Reply, nil
}

// ListRoots asks the client that calls for its roots. It returns the errors of Ask.
func ListRoots(ctx context.Context) ([]Root, error) {
	all, err := RequestInput(ctx, nil, InputRequest{})
	if err != nil {
		return nil, err
	}
	return all[0].Roots, nil
}

// SupportsInput reports whether the call that ctx belongs to can ask for a kind of input.
func SupportsInput(ctx context.Context, kind InputKind) bool {
	a, ok := ctx.Value(askingKey{}).(*asking)
	return ok && a.asks != AsksNothing && a.source != nil && a.source.SupportsInput(kind)
}

// LastMemo returns the memo of the last RequestInput of the call, if its function runs again because
// of that. Otherwise it returns nil: the function runs for the first time.
func LastMemo(ctx context.Context) json.RawMessage {
	a, ok := ctx.Value(askingKey{}).(*asking)
	if !ok || a.asks == AsksNothing || a.source == nil {
		return nil
	}
	return a.source.LastMemo()
}

// RequestInput asks for several things at once, and returns the responses in their order. With a
// memo, the tool promises to continue from it (LastMemo) when its function runs again. It must
// not repeat work that it has done. RequestInput returns the errors of Ask.
func RequestInput(ctx context.Context, memo json.RawMessage, requests ...InputRequest) ([]InputResponse, error) {
	a, ok := ctx.Value(askingKey{}).(*asking)
	switch {
	case !ok:
		return nil, errcode.New(errcode.InputUnavailable, "ask: this is not a call of a tool")
	case a.asks == AsksNothing:
		return nil, errcode.New(errcode.InputUnavailable, "%s asked for input without declaring it: set Options.Asks of the tool", a.call.Name)
	case a.source == nil:
		return nil, errcode.New(errcode.InputUnavailable, "%s asks for input, and this call has no person or client that could answer", a.call.Name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	requests, err := a.prepare(requests)
	if err != nil {
		return nil, err
	}
	defer pauseClocks(ctx)()
	round := InputRound{Call: a.call, Requests: requests, Repeatable: a.repeatable || memo != nil, Memo: memo, Log: noLog{}}
	responses, err := a.source.RequestInput(ctx, round)
	if err != nil {
		return nil, err
	}
	return checkResponses(requests, responses)
}

// prepare returns checked requests with names. It counts them. It must be called with mu held.
func (a *asking) prepare(requests []InputRequest) ([]InputRequest, error) {
	if len(requests) == 0 {
		return nil, errcode.New(errcode.InvalidArguments, "%s asks for nothing: name at least one request", a.call.Name)
	}
	if len(a.asked)+len(requests) > MaxQuestions {
		return nil, errcode.New(errcode.InputUnavailable, "%s asks for more than %d things in one call", a.call.Name, MaxQuestions)
	}
	list := make([]InputRequest, len(requests))
	for i, r := range requests {
		r.Name = cmp.Or(r.Name, fmt.Sprintf("%s-%d", r.Kind(), len(a.asked)+1))
		if a.asked[r.Name] || CheckName(r.Name) != nil || len(r.Name) > 64 {
			return nil, errcode.New(errcode.InvalidArguments, "%s: %.80q is not a name for a question, or was used before in this call", a.call.Name, r.Name)
		}
		if err := r.prepare(); err != nil {
			return nil, err
		}
		a.asked[r.Name] = true
		list[i] = r
	}
	return list, nil
}
