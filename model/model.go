// Package model defines the interface of the models that answer for an agent. A
// model is a language model, a script, a recording or a person.
//
//	for delta, err := range m.Generate(ctx, request) {
//		if err != nil {
//			return err
//		}
//		if delta.Answer != nil {
//			return record(delta.Answer)
//		}
//	}
//
// A Model receives the whole conversation with every request. Its answer may
// depend on the Request alone, so that an agent survives a restart. Answers are
// proposals: the gate decides every tool call in them. Implementations are in
// the packages below this one.
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"time"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/picture"
)

// Model answers requests. Generate yields partial text as it arrives and, last,
// exactly one AnswerDelta with an Answer; an error ends the sequence. It must return
// when ctx is done. Implementations must be safe for concurrent use.
type Model interface {
	Generate(ctx context.Context, r Request) iter.Seq2[AnswerDelta, error]
}

// WindowWrapper embeds a Model in a decorator, a Model that changes requests or
// answers. It implements LanguageModel and forwards the context window.
type WindowWrapper struct{ Model }

// Window implements LanguageModel. It returns 0 if the wrapped model is not a
// language model.
func (w WindowWrapper) Window() int {
	tokens, _ := WindowOf(w.Model)
	return tokens
}

// AnswerDelta is a part of an answer. Fields other than Answer are for display only and
// are never stored.
type AnswerDelta struct {
	Text    string  // the next part of the text
	Tool    string  // the name of a tool call that begins
	Args    string  // the next part of that call's arguments
	Restart bool    // the answer starts again: discard earlier deltas
	Note    string  // why the model waits, for people
	Answer  *Answer // set in the last AnswerDelta only
}

// LanguageModel is a Model with a context window that follows instructions in
// natural language. Other models (a script, a person) get no such instructions.
type LanguageModel interface {
	Model
	Window() int // most tokens of a request and its answer together
}

// WindowOf returns the context window of m in tokens. It reports false if m is not
// a language model or does not know its window.
func WindowOf(m Model) (tokens int, ok bool) {
	l, ok := m.(LanguageModel)
	if !ok {
		return 0, false
	}
	return l.Window(), l.Window() > 0
}

// Request is what a model is asked.
type Request struct {
	Self     AgentInfo
	System   string          // the system prompt; the same for all agents of a role
	Opening  string          // text of the runtime before the conversation, such as the agent's assignment; may be ""
	Items    []Item          // the conversation in journal order
	Note     string          // text of the runtime after the conversation, for this request only; may be ""
	Tools    []string        // names of the visible tools, in order; read-only
	ToolJSON []byte          // the same tools as tool.MarshalTools writes them; read-only
	NoCalls  bool            // the tools are sent, as in other requests of the conversation, but none may be called
	NoImages bool            // the model sees no images: it is sent their descriptions only
	Compact  *ContextSummary // set to send earlier items as a summary

	// Image returns the image that a message or result names as an artifact, if
	// the agent may read it. Nil finds no images.
	Image func(ref string) (Image, error)
}

// Image is an image in a conversation.
type Image struct {
	MediaType string // such as image/png
	Data      []byte
}

// IsImageType reports whether models are shown images of a media type.
func IsImageType(mediaType string) bool { return picture.IsSupported(mediaType) }

// AgentInfo identifies the agent that asks.
type AgentInfo struct {
	ID     identity.AgentID `json:"id"`
	Role   string           `json:"role"` // the role's name
	Parent identity.AgentID `json:"parent,omitempty"`
	Task   identity.TaskID  `json:"task"`
	State  string           `json:"state,omitempty"` // workflow state
}

// ContextSummary replaces the first items of a conversation.
type ContextSummary struct {
	Text  string
	Items int // how many of Request.Items it replaces
}

// Item is one entry of a conversation; exactly one field is set.
type Item struct {
	Message *Message    // the agent received a message
	Answer  *Answer     // the model answered
	Result  *CallResult // a call of the last answer ended
}

// CountMessages returns the number of messages among items.
func CountMessages(items []Item) (n int) {
	for _, item := range items {
		if item.Message != nil {
			n++
		}
	}
	return n
}

// Message is a message between members of the organization.
type Message struct {
	ID        string          `json:"id"`
	From      string          `json:"from"`               // an agent's id or "user"
	FromName  string          `json:"fromName,omitempty"` // the sender's name in its task; "" for the user, and in old records
	FromRole  string          `json:"fromRole,omitempty"` // the name of the sender's role; "" for the user
	To        string          `json:"to"`
	Task      identity.TaskID `json:"taskId,omitempty"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt time.Time       `json:"createdAt"`
}

// Text returns the text of the payload: the payload itself if it is a JSON string, or its field
// text if it is an object. It returns "" if there is no such text.
func (m Message) Text() string {
	payload := gjson.ParseBytes(m.Payload)
	if payload.IsObject() {
		payload = payload.Get("text")
	}
	if payload.Type != gjson.String {
		return ""
	}
	return payload.Str
}

// CallResult is the outcome of a call, as the model reads it.
type CallResult struct {
	Call    identity.CallID `json:"call"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content"` // tool.Result.JSON
	IsError bool            `json:"isError,omitempty"`
}

// FinishReason is the way an answer ends.
type FinishReason string

// EndsTurn reports whether an answer with this finish ends the turn with a result.
func (f FinishReason) EndsTurn() bool { return f == FinishEnd || f == FinishResult }

// The ways an answer ends. The zero Finish is invalid.
const (
	FinishToolCalls FinishReason = "calls"    // call the tools, then ask again with their results
	FinishContinue  FinishReason = "continue" // send Text to the user and ask again at once
	FinishWait      FinishReason = "wait"     // no answer: ask again when a message arrives
	FinishEnd       FinishReason = "end"      // the turn ends; Text or Value is its result
	FinishResult    FinishReason = "result"   // the task ends, and with it the agents below; Text or Value is its result. Below the first agent of a task it is FinishEnd
	FinishPlan      FinishReason = "planned"  // set by the runtime only: Plan holds the steps, or PlanError why there are none; ask again
	FinishRepair    FinishReason = "repair"   // set by the runtime only: the answer cannot be used as it is; ask again, as Repair says
	FinishInvalid   FinishReason = "invalid"  // set by the runtime only: Repair was asked for and did not help; the turn fails
)

// SetByRuntime reports whether only the runtime sets a finish.
func (f FinishReason) SetByRuntime() bool { return f == FinishPlan || f.IsUnusable() }

// IsUnusable reports whether an answer with this finish is replaced by the next one.
func (f FinishReason) IsUnusable() bool { return f == FinishRepair || f == FinishInvalid }

// PlanStep is one step of a plan.
type PlanStep struct {
	Tool   string `json:"tool"`
	Reason string `json:"why,omitempty"`
}

// Answer is the answer of a model at one step. Models set all fields except those
// the runtime records.
type Answer struct {
	Text         string          `json:"text,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"` // result of FinishEnd or FinishResult if it is not plain text
	Calls        []Call          `json:"calls,omitempty"`
	Finish       FinishReason    `json:"finish"`
	MessagesRead int             `json:"read"`          // how many messages of the conversation it has read; 0 means all
	Log          []string        `json:"log,omitempty"` // console output of an agent script
	Usage        TokenUsage      `json:"usage,omitzero"`
	Model        string          `json:"model,omitempty"` // the configured name of the language model that answered
	Stop         StopReason      `json:"stop,omitempty"`  // set if the answer ended early: it is incomplete

	// Reasoning is opaque data that a provider needs back with the conversation,
	// in its own format. Provider names the provider; only it reads Reasoning.
	Reasoning json.RawMessage `json:"reasoning,omitempty"`
	Provider  string          `json:"provider,omitempty"`

	// Recorded by the runtime: what the model saw at this step.
	Tools        []string     `json:"tools,omitzero"` // nil if unchanged since the previous answer
	State        string       `json:"state,omitempty"`
	Plan         []PlanStep   `json:"plan,omitempty"`     // of FinishPlan
	DroppedCalls int          `json:"dropped,omitempty"`  // calls beyond the limit; the last of Calls was the first beyond it, and is denied
	PlanError    string       `json:"fault,omitempty"`    // why the answer is not a plan, or deviates from the current one
	Repair       AnswerRepair `json:"repair,omitempty"`   // of FinishRepair and FinishInvalid
	Withheld     bool         `json:"withheld,omitempty"` // Text replaces what the model answered without a successful call
}

// AnswerRepair is what a model is asked to do about an answer that cannot be used.
type AnswerRepair string

// The repairs.
const (
	RepairContinue AnswerRepair = "continue" // the answer reached its maximum length: continue it
	RepairCall     AnswerRepair = "call"     // the answer is a call written as text: call the tool
	RepairAnswer   AnswerRepair = "answer"   // the answer is empty: answer
)

// StopReason is why an answer ended early.
type StopReason string

// The reasons for which an answer ends early.
const (
	Length        StopReason = "length"         // the answer reached its maximum length
	ContentFilter StopReason = "content_filter" // the provider's filter ended the answer; Text explains
	Refusal       StopReason = "refusal"        // the model refused; Text explains
)

// Refused reports whether the model or its provider's filter refused.
func (s StopReason) Refused() bool { return s == ContentFilter || s == Refusal }

// Call is a tool call a model proposes.
type Call struct {
	ID       identity.CallID `json:"id"`                 // the runtime's own
	Provider string          `json:"provider,omitempty"` // the provider's id, only sent back to it
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"` // unchecked; text that is not JSON is quoted as a JSON string
}

// TokenUsage is the tokens and cost of one answer; zero means not reported.
type TokenUsage struct {
	Input  int   `json:"input,omitempty"`  // tokens sent, including cached ones
	Cached int   `json:"cached,omitempty"` // tokens of Input that the provider had cached
	Output int   `json:"output,omitempty"` // tokens generated, including reasoning
	Cost   Money `json:"costNano,omitempty"`

	Currency  string `json:"currency,omitempty"`  // of Cost, such as EUR; "" if the prices name none
	Estimated bool   `json:"estimated,omitempty"` // the provider did not report the tokens
}

// Add returns the sum of u and v. Costs in different currencies, which a configuration cannot
// have at one time, are added as if they were in the same one.
func (u TokenUsage) Add(v TokenUsage) TokenUsage {
	return TokenUsage{
		Input: u.Input + v.Input, Cached: u.Cached + v.Cached, Output: u.Output + v.Output,
		Cost: u.Cost + v.Cost, Currency: cmp.Or(u.Currency, v.Currency), Estimated: u.Estimated || v.Estimated,
	}
}

// Money is an amount in billionths of the currency prices are written in.
type Money int64

// TokenPrices are the prices of a million tokens. With the zero Prices nothing costs.
type TokenPrices struct {
	Input, Cached, Output Money
	Currency              string // such as EUR; "" if it is not known
}

// Cost returns the cost of u. Without a price for cached tokens they cost as much
// as input.
func (p TokenPrices) Cost(u TokenUsage) Money {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	u = u.Clamp()
	return perMillion(u.Input-u.Cached, p.Input) + perMillion(u.Cached, cached) + perMillion(u.Output, p.Output)
}

// perMillion returns tokens*price/1e6. The product may need more than 64 bits;
// the result saturates.
func perMillion(tokens int, price Money) Money {
	const million = 1_000_000
	high, low := bits.Mul64(uint64(tokens), uint64(max(0, price)))
	if high >= million {
		return math.MaxInt64 / 4
	}
	cost, _ := bits.Div64(high, low, million)
	return Money(min(cost, math.MaxInt64/4))
}

// Clamp returns u with each field in a plausible range, since the counts come from
// outside. Sums of clamped usages neither decrease nor overflow, and Cached is at
// most Input.
func (u TokenUsage) Clamp() TokenUsage {
	const maxTokens = 100_000_000
	clamp := func(n int) int { return min(max(0, n), maxTokens) }
	u.Input, u.Output, u.Cost = clamp(u.Input), clamp(u.Output), min(max(0, u.Cost), 1<<52)
	u.Cached = min(clamp(u.Cached), u.Input)
	return u
}

// String returns the amount with six decimals, such as "0.001500".
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	return fmt.Sprintf("%s%d.%06d", sign, m/1e9, m%1e9/1e3)
}
