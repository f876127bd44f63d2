package openaiapi

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/model"
)

// Model is a role that can be asked.
type Model struct {
	ID      string `json:"id"` // the role's name
	Object  string `json:"object"`
	Created int64  `json:"created"` // in seconds since 1970
	OwnedBy string `json:"owned_by"`
}

// NewModel returns the model of a role.
func NewModel(name string, created time.Time) Model {
	return Model{name, "model", created.Unix(), "rolecall"}
}

// ModelList lists models.
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// Completion is the answer to a Request, or a chunk of a stream.
type Completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

// Choice is the only choice of a completion. Message is of an answer, Delta of a chunk.
type Choice struct {
	Index        int          `json:"index"`
	Message      *ChatMessage `json:"message,omitempty"`
	Delta        *Delta       `json:"delta,omitempty"`
	FinishReason *string      `json:"finish_reason"` // null in a chunk that is not the last
}

// ChatMessage is the message of an answer.
type ChatMessage struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

// Delta is the message of a chunk.
type Delta struct {
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
}

// Usage is what the models of the whole task have used.
type Usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// NewUsage converts the usage of models.
func NewUsage(u model.TokenUsage) *Usage {
	out := &Usage{Prompt: int64(u.Input), Completion: int64(u.Output), Total: int64(u.Input) + int64(u.Output)}
	out.Details.Cached = int64(u.Cached)
	return out
}

// Writer makes the answer to one request.
type Writer struct {
	ID      string
	Model   string
	Created time.Time
}

func (w Writer) completion(object string, c Choice) Completion {
	return Completion{ID: w.ID, Object: object, Created: w.Created.Unix(), Model: w.Model, Choices: []Choice{c}}
}

// Answer returns a whole answer.
func (w Writer) Answer(result json.RawMessage, stop model.StopReason, u *Usage) Completion {
	out := w.completion("chat.completion", Choice{Message: &ChatMessage{Role: "assistant", Content: ResultText(result)}, FinishReason: finishReason(stop)})
	out.Usage = u
	return out
}

// Chunk returns a chunk with a text; the first one has the role.
func (w Writer) Chunk(text string, first bool) Completion {
	delta := &Delta{Content: text}
	if first {
		delta.Role = "assistant"
	}
	return w.completion("chat.completion.chunk", Choice{Delta: delta})
}

// End returns the last chunk of an answer.
func (w Writer) End(stop model.StopReason) Completion {
	return w.completion("chat.completion.chunk", Choice{Delta: &Delta{}, FinishReason: finishReason(stop)})
}

// UsageChunk returns the chunk with the usage, which has no choice.
func (w Writer) UsageChunk(u *Usage) Completion {
	out := w.completion("chat.completion.chunk", Choice{})
	out.Choices, out.Usage = []Choice{}, u
	return out
}

// finishReason returns why an answer ended.
func finishReason(stop model.StopReason) *string {
	reason := "stop"
	switch stop {
	case model.Length:
		reason = "length"
	case model.ContentFilter, model.Refusal:
		reason = "content_filter"
	}
	return &reason
}

// ResultText returns the result of a task as a text: a JSON text as it is, another value as JSON.
func ResultText(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}
