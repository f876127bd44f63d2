// Package model owns the interface to whatever thinks for an agent: a
// language model, a script, a recording, a person.
//
// A Model gets the whole conversation with every request and keeps no state
// that matters: what it answers may depend on the Request alone, so that an
// agent survives a restart. Answers are proposals; nothing an answer says is
// permitted before the gate has decided it.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// Model thinks. Generate yields partial text as it comes and, last, exactly
// one Delta that holds the Answer; an error ends the sequence. It must end
// when ctx does. Safe for concurrent use.
type Model interface {
	Generate(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// Wrapper is a Model inside another that changes what it is asked or says. It
// is a Language with the window of what is inside; 0 when that is none.
type Wrapper struct{ Model }

// Window implements Language.
func (a Wrapper) Window() int {
	tokens, _ := Window(a.Model)
	return tokens
}

// Delta is a piece of an answer. All but Answer is to be shown, never stored.
type Delta struct {
	Text    string  // text as it comes
	Tool    string  // the name of a call that begins
	Args    string  // arguments of that call as they come
	Restart bool    // the answer is begun anew: what came so far is void
	Note    string  // what the model is waiting for
	Answer  *Answer // set in the last Delta only
}

// LanguageModel is a language model: it has a window, and is asked for text in
// words. Other models (a script, a person) are never told what to do.
type LanguageModel interface {
	Model
	Window() int // tokens that a request and its answer may have
}

// Window gives the window of a language model, and says whether m is one.
func Window(m Model) (tokens int, ok bool) {
	l, ok := m.(LanguageModel)
	if !ok {
		return 0, false
	}
	return l.Window(), l.Window() > 0
}

// Request is everything a model may know.
type Request struct {
	Self     AgentInfo
	System   string   // the system prompt
	Items    []Item   // the conversation in the order the journal has it
	Tools    []string // names visible now, in order; do not change
	ToolJSON []byte   // the same tools, serialised for the wire; do not change
	Compact  *Summary // set when earlier items are to be sent as a summary

	// Image finds an image that a message or result names as an artifact, as
	// far as the agent may read it. Nil finds none.
	Image func(ref string) (Image, error)
}

// Image is a picture in a conversation.
type Image struct {
	MediaType string // such as image/png
	Data      []byte
}

// AgentInfo says who thinks.
type AgentInfo struct {
	ID     identity.AgentID `json:"id"`
	Role   string           `json:"role"` // the role's name
	Parent identity.AgentID `json:"parent,omitempty"`
	Task   identity.TaskID  `json:"task"`
	State  string           `json:"state,omitempty"` // workflow state
}

// Summary stands for the first Items of a conversation.
type Summary struct {
	Text  string
	Items int // how many of Request.Items the summary replaces
}

// Item is one entry of a conversation; exactly one field is set.
type Item struct {
	Message *Message // somebody wrote to the agent
	Answer  *Answer  // the model answered
	Result  *Result  // a call of the last answer ended
}

// Messages counts the messages of a conversation.
func Messages(items []Item) (n int) {
	for _, item := range items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// Message is what one member of the organization sends another.
type Message struct {
	ID        string          `json:"id"`
	From      string          `json:"from"` // an agent's id or "user"
	To        string          `json:"to"`
	Task      identity.TaskID `json:"taskId,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt time.Time       `json:"createdAt"`
}

// Result is the outcome of a call, as the model reads it.
type Result struct {
	Call    identity.CallID `json:"call"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content"` // tool.Result.JSON
	IsError bool            `json:"isError,omitempty"`
}

// Finish says how an answer ends.
type Finish string

// The ways an answer ends. The zero Finish is refused.
const (
	FinishToolCalls Finish = "calls"    // tools are to be called; ask again with their results
	FinishContinue  Finish = "continue" // Text goes to the user; ask again at once
	FinishWait      Finish = "wait"     // nothing to say: ask again when a message has come
	FinishEnd       Finish = "end"      // the turn is over; Text or Value is its outcome
	FinishPlan      Finish = "planned"  // of the runtime alone: Plan is what is to be done, or Fault why there is none; ask again
)

// Step is one step of a plan.
type Step struct {
	Tool   string `json:"tool"`
	Reason string `json:"why,omitempty"`
}

// Answer is what a model says at one step. Providers set all fields but
// those of "As recorded", which the runtime fills in.
type Answer struct {
	Text         string          `json:"text,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"` // outcome of an End that is not plain text
	Calls        []Call          `json:"calls,omitempty"`
	Finish       Finish          `json:"finish"`
	MessagesRead int             `json:"read"`          // messages of the conversation taken in so far
	Log          []string        `json:"log,omitempty"` // what the script wrote to its console
	Usage        Usage           `json:"usage,omitzero"`
	Stop         StopReason      `json:"stop,omitempty"` // set when something ended the answer before its time

	// Reasoning is what a provider wants back with the conversation, in its own
	// form; Provider says whose. Nobody else reads it.
	Reasoning json.RawMessage `json:"reasoning,omitempty"`
	Provider  string          `json:"provider,omitempty"`

	// As recorded: what the step that gave this answer saw.
	Tools     []string `json:"tools,omitzero"` // nil when the same as with the answer before
	State     string   `json:"state,omitempty"`
	Plan      []Step   `json:"plan,omitempty"`  // of Finish Planned
	PlanError string   `json:"fault,omitempty"` // why the answer is no plan, or broke the one there was
}

// StopReason says what ended an answer before its time.
type StopReason string

// The ways an answer is ended.
const (
	Refusal StopReason = "refusal" // the model, or its provider's filter, refused; Text says so
	Length  StopReason = "length"  // the answer is as long as it may be
)

// Call is a tool call a model proposes.
type Call struct {
	ID       identity.CallID `json:"id"`                 // the runtime's own
	Provider string          `json:"provider,omitempty"` // the provider's id, only ever echoed to it
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"` // unchecked; a provider that got something else than JSON quotes it as a JSON string
}

// Usage counts tokens of one answer; zero means not reported.
type Usage struct {
	Input  int   `json:"input,omitempty"`  // all that was sent, what was cached too
	Cached int   `json:"cached,omitempty"` // of Input, what the provider had already
	Output int   `json:"output,omitempty"` // reasoning too
	Cost   Money `json:"costNano,omitempty"`

	Estimated bool `json:"estimated,omitempty"` // the provider counted nothing
}

// Add gives what both come to.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached, Output: u.Output + v.Output,
		Cost: u.Cost + v.Cost, Estimated: u.Estimated || v.Estimated,
	}
}

// Money is an amount in billionths of the currency prices are written in.
type Money int64

// Prices are what a million tokens cost. The zero Prices cost nothing.
type Prices struct {
	Input, Cached, Output Money
}

// Cost gives what a usage costs. What was cached costs as input when it has no
// price of its own.
func (p Prices) Cost(u Usage) Money {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	u = u.Clamp()
	return perMillion(u.Input-u.Cached, p.Input) + perMillion(u.Cached, cached) + perMillion(u.Output, p.Output)
}

// perMillion multiplies without overflow: sane counts times a price are more
// than 64 bits hold.
func perMillion(tokens int, price Money) Money {
	const million = 1_000_000
	high, low := bits.Mul64(uint64(tokens), uint64(max(0, price)))
	if high >= million {
		return math.MaxInt64 / 4
	}
	cost, _ := bits.Div64(high, low, million)
	return Money(min(cost, math.MaxInt64/4))
}

// Clamp gives a usage within what can be, since providers send anything: no
// count lowers a sum or makes it overflow, and no more is cached than was sent.
func (u Usage) Clamp() Usage {
	const most = 100_000_000
	sane := func(n int) int { return min(max(0, n), most) }
	u.Input, u.Output, u.Cost = sane(u.Input), sane(u.Output), min(max(0, u.Cost), 1<<52)
	u.Cached = min(sane(u.Cached), u.Input)
	return u
}

// String gives an amount with six decimals.
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Sprintf("%s%d.%06d", sign, m/1e9, m%1e9/1e3)
}
