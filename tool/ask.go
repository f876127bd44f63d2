package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Asks says whether a tool may ask a person, or its client, while it is called.
type Asks uint8

// What a tool may ask. The zero Asks is the one without any right.
const (
	AsksNothing Asks = iota // Ask fails
	AsksFirst               // asks before it acts: its function may run again from the beginning, with the answers so far
	AsksMidway              // may have acted when it asks: its function runs once, so it can ask only where an answer can be waited for
)

// Limits of what one call may ask.
const (
	MaxQuestions     = 16      // requests of one call
	MaxQuestion      = 4 << 10 // bytes of a message
	maxModelMessages = 32      // messages of a ModelRequest
	maxModelText     = 64 << 10
	maxModelTokens   = 8192
	maxRoots         = 100
)

// Question is what a tool asks a person.
type Question struct {
	// Name identifies the question in its call: 1 to 64 ASCII letters, digits, '_', '.' and
	// '-', once in a call. An empty name is replaced by one with the number of the question.
	Name    string `json:"name"`
	Message string `json:"message"` // for the person; at most 4 KiB

	// Schema describes the answer: a JSON schema of type object, at most 16 KiB, whose
	// properties are strings, numbers, integers, booleans and lists of choices. nil asks
	// for consent only.
	Schema json.RawMessage `json:"schema,omitempty"`

	// URL is an http or https address that the person should open. It is shown as text and
	// never opened. A question with a URL has no Schema.
	URL string `json:"url,omitempty"`

	// Server is the MCP server that asks; "" is the tool itself. A client of the server
	// sets it.
	Server string `json:"server,omitempty"`
}

// Action is what a person did with a question.
type Action string

// The actions. Only an accepted question has an answer.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // the person refused, or did not answer in time
	Cancel  Action = "cancel"  // the person made no choice
)

// Answer is the answer to a Question. Content is valid for the Schema, with the defaults of what
// the person left out. It is nil unless the question was accepted and has a Schema.
type Answer struct {
	Action  Action          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// ModelRequest is a request to the model of the caller. It has no tools.
type ModelRequest struct {
	System    string         `json:"system,omitempty"`
	Messages  []ModelMessage `json:"messages"`
	MaxTokens int            `json:"maxTokens"` // 1 to 8192
}

// ModelMessage is a text of a ModelRequest. Role is "user" or "assistant".
type ModelMessage struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// ModelReply is what the model answered.
type ModelReply struct {
	Text       string `json:"text"`
	Model      string `json:"model,omitempty"`
	StopReason string `json:"stopReason,omitempty"`
}

// Root is a directory in which the user of a client works.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// InputKind is what a client may be asked for.
type InputKind string

// The kinds of input, by the names of the capabilities of MCP.
const (
	PersonInput InputKind = "elicitation"
	ModelInput  InputKind = "sampling"
	RootsInput  InputKind = "roots"
)

// InputRequest is one thing that a tool asks for. Without a Question and a Model it asks for the
// roots of the client.
type InputRequest struct {
	Name     string        `json:"name"` // as Question.Name
	Question *Question     `json:"question,omitempty"`
	Model    *ModelRequest `json:"model,omitempty"`
}

// Kind returns what is asked for.
func (r InputRequest) Kind() InputKind {
	switch {
	case r.Question != nil:
		return PersonInput
	case r.Model != nil:
		return ModelInput
	}
	return RootsInput
}

// InputResponse is the response to an InputRequest. The field of its kind is set.
type InputResponse struct {
	Answer *Answer     `json:"answer,omitempty"`
	Reply  *ModelReply `json:"reply,omitempty"`
	Roots  []Root      `json:"roots,omitempty"`
}

// InputRound is what a call asks for at once.
type InputRound struct {
	Call     Call
	Requests []InputRequest // at least one, checked, with different names

	// Repeatable reports whether the call may end here, and its function run again from the
	// beginning when the answers are there.
	Repeatable bool

	// Memo is what RequestInput was given to continue from.
	Memo json.RawMessage

	// Log records the questions and answers of the round. Sources call it.
	Log InputLog
}

// InputLog records what a call asks for, and what it gets.
type InputLog interface {
	// InputAsked records a request before it is sent. id is under which the person who
	// started the task answers it; "" if the client answers it. After until it counts as
	// declined.
	InputAsked(r InputRequest, id string, until time.Time) error

	// InputAnswered records a response before the tool gets it. by is who answered; it is ""
	// if nobody did, and reason says why.
	InputAnswered(r InputRequest, got InputResponse, by, reason string) error
}

// noLog records nothing.
type noLog struct{}

func (noLog) InputAsked(InputRequest, string, time.Time) error                { return nil }
func (noLog) InputAnswered(InputRequest, InputResponse, string, string) error { return nil }

// InputSource answers what calls ask. Implementations must be safe for concurrent use.
type InputSource interface {
	// SupportsInput reports whether requests of a kind can be answered.
	SupportsInput(kind InputKind) bool

	// LastMemo returns the memo of the round before, if the function of the call runs again
	// because of it, else nil.
	LastMemo() json.RawMessage

	// RequestInput returns the responses to the requests of a round, in their order. It
	// returns within a time that it bounds. Errors are those of RequestInput.
	RequestInput(ctx context.Context, round InputRound) ([]InputResponse, error)
}

// sourceKey is the context key of the InputSource.
type sourceKey struct{}

// WithInput returns a context in which calls ask source. nil answers nothing.
func WithInput(ctx context.Context, source InputSource) context.Context {
	return context.WithValue(ctx, sourceKey{}, source)
}

// InputOf returns the source in a context, or nil.
func InputOf(ctx context.Context) InputSource {
	source, _ := ctx.Value(sourceKey{}).(InputSource)
	return source
}

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
// Errors: InputUnavailable if there is nobody to ask, if the tool does not declare that it asks
// (Options.Asks), or if it has asked too much; InputRequired if the call ends here;
// InvalidArguments for an invalid question or answer; and those of ctx.
func Ask(ctx context.Context, q Question) (Answer, error) {
	all, err := RequestInput(ctx, nil, InputRequest{Name: q.Name, Question: &q})
	if err != nil {
		return Answer{Action: Cancel}, err
	}
	return *all[0].Answer, nil
}

// AskModel asks the model of the client that calls. Errors are those of Ask.
func AskModel(ctx context.Context, r ModelRequest) (ModelReply, error) {
	all, err := RequestInput(ctx, nil, InputRequest{Model: &r})
	if err != nil {
		return ModelReply{}, err
	}
	return *all[0].Reply, nil
}

// ListRoots asks the client that calls for its roots. Errors are those of Ask.
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
// memo, the tool promises to continue from it (LastMemo) when its function runs again, without a
// repetition of what it has done. Errors are those of Ask.
func RequestInput(ctx context.Context, memo json.RawMessage, requests ...InputRequest) ([]InputResponse, error) {
	a, ok := ctx.Value(askingKey{}).(*asking)
	switch {
	case !ok:
		return nil, errcode.New(errcode.InputUnavailable, "ask: this is not a call of a tool")
	case a.asks == AsksNothing:
		return nil, errcode.New(errcode.InputUnavailable, "%s asked for input without declaring it: set Options.Asks of the tool", a.call.Name)
	case a.source == nil:
		return nil, errcode.New(errcode.InputUnavailable, "%s asks for input, and nobody can be asked here", a.call.Name)
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
	if len(requests) == 0 || len(a.asked)+len(requests) > MaxQuestions {
		return nil, errcode.New(errcode.InputUnavailable, "%s asks for more than %d things in one call", a.call.Name, MaxQuestions)
	}
	list := make([]InputRequest, len(requests))
	for i, r := range requests {
		r.Name = cmp.Or(r.Name, fmt.Sprintf("%s-%d", r.Kind(), len(a.asked)+1))
		if a.asked[r.Name] || CheckName(r.Name) != nil || len(r.Name) > 64 {
			return nil, errcode.New(errcode.InvalidArguments, "%s: %.80q is not a name for a question, or was used before in this call", a.call.Name, r.Name)
		}
		if err := r.check(); err != nil {
			return nil, err
		}
		a.asked[r.Name] = true
		list[i] = r
	}
	return list, nil
}

// check checks a request, and copies its question with the name.
func (r *InputRequest) check() error {
	switch {
	case r.Question != nil && r.Model != nil:
		return errcode.New(errcode.InvalidArguments, "the request %s asks a person and a model", r.Name)
	case r.Question != nil:
		q := *r.Question
		q.Name = r.Name
		q.Message = strings.TrimSpace(textutil.SanitizeLines(q.Message))
		r.Question = &q
		return q.check()
	case r.Model != nil:
		return r.Model.check(r.Name)
	}
	return nil
}

// check checks the bounds of a request to a model.
func (m *ModelRequest) check(name string) error {
	size := len(m.System)
	for _, message := range m.Messages {
		size += len(message.Text)
		if message.Role != "user" && message.Role != "assistant" {
			return errcode.New(errcode.InvalidArguments, "the request %s has a message of the role %.40q; use user or assistant", name, message.Role)
		}
	}
	if len(m.Messages) == 0 || len(m.Messages) > maxModelMessages || size > maxModelText || m.MaxTokens < 1 || m.MaxTokens > maxModelTokens {
		return errcode.New(errcode.InvalidArguments, "the request %s needs 1 to %d messages with at most %d bytes, and 1 to %d tokens", name, maxModelMessages, maxModelText, maxModelTokens)
	}
	return nil
}

// checkResponses returns the responses if each has what was asked for. The content of answers is
// checked, and defaults are filled in.
func checkResponses(requests []InputRequest, responses []InputResponse) ([]InputResponse, error) {
	if len(responses) != len(requests) {
		return nil, fmt.Errorf("ask: %d responses to %d requests", len(responses), len(requests))
	}
	list := make([]InputResponse, len(requests))
	for i, r := range requests {
		checked, err := r.CheckResponse(responses[i])
		if err != nil {
			return nil, err
		}
		list[i] = checked
	}
	return list, nil
}

// CheckResponse returns a response as the tool gets it: with the content of its answer checked
// and completed, or with a shortened list of roots. It rejects a response of another kind.
//
// Errors: InvalidArguments.
func (r InputRequest) CheckResponse(got InputResponse) (InputResponse, error) {
	switch kind := r.Kind(); {
	case kind == PersonInput && got.Answer != nil:
		answer, err := r.Question.CheckAnswer(*got.Answer)
		return InputResponse{Answer: &answer}, err
	case kind == ModelInput && got.Reply != nil && len(got.Reply.Text) <= maxModelText:
		return InputResponse{Reply: got.Reply}, nil
	case kind == RootsInput && got.Answer == nil && got.Reply == nil:
		return InputResponse{Roots: got.Roots[:min(len(got.Roots), maxRoots)]}, nil
	}
	return InputResponse{}, errcode.New(errcode.InvalidArguments, "the response to %s is not what was asked for", r.Name).With("field", r.Name)
}
