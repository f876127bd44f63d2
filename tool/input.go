package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// maxRoots is how many roots of a client a tool gets. It gets the first roots.
const maxRoots = 100

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
	// if there was no answer, and reason says why.
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
	// returns within a time that it bounds. It returns the errors of RequestInput.
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

// prepare checks a request, and copies its question with the name.
func (r *InputRequest) prepare() error {
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
	case kind == ModelInput && got.Reply != nil && len(got.Reply.Text) > maxModelText:
		return InputResponse{}, errcode.New(errcode.InvalidArguments, "the reply of the model to %s has %d bytes, and at most %d are accepted", r.Name, len(got.Reply.Text), maxModelText).With("field", r.Name)
	case kind == ModelInput && got.Reply != nil:
		return InputResponse{Reply: got.Reply}, nil
	case kind == RootsInput && got.Answer == nil && got.Reply == nil:
		return InputResponse{Roots: got.Roots[:min(len(got.Roots), maxRoots)]}, nil
	}
	return InputResponse{}, errcode.New(errcode.InvalidArguments, "the response to %s is not what was asked for", r.Name).With("field", r.Name)
}
