package openaiapi

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/model"
)

// ModelEntry is an entry of the list of models: a role that clients can ask.
type ModelEntry struct {
	ID      string `json:"id"` // the role's name
	Object  string `json:"object"`
	Created int64  `json:"created"` // in seconds since 1970
	OwnedBy string `json:"owned_by"`
}

// NewModel returns the entry of a role.
func NewModel(name string, created time.Time) ModelEntry {
	return ModelEntry{name, "model", created.Unix(), "rolecall"}
}

// ModelList lists models.
type ModelList struct {
	Object string       `json:"object"`
	Data   []ModelEntry `json:"data"`
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

// Choice is the only choice of a completion. A whole answer has Message,
// a chunk has Delta.
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
	Refusal *string `json:"refusal"` // always null
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

// CompletionBuilder builds the answer to one request.
type CompletionBuilder struct {
	ID      string
	Model   string
	Created time.Time
}

func (b CompletionBuilder) completion(object string, c Choice) Completion {
	return Completion{ID: b.ID, Object: object, Created: b.Created.Unix(), Model: b.Model, Choices: []Choice{c}}
}

// WholeAnswer returns an answer that is no stream.
func (b CompletionBuilder) WholeAnswer(result json.RawMessage, stop model.StopReason, u *Usage) Completion {
	out := b.completion("chat.completion", Choice{Message: &ChatMessage{Role: "assistant", Content: ResultText(result)}, FinishReason: finishReason(stop)})
	out.Usage = u
	return out
}

// Chunk returns a chunk with a text; the first one has the role.
func (b CompletionBuilder) Chunk(text string, first bool) Completion {
	delta := &Delta{Content: text}
	if first {
		delta.Role = "assistant"
	}
	return b.completion("chat.completion.chunk", Choice{Delta: delta})
}

// FinalChunk returns the last chunk of an answer.
func (b CompletionBuilder) FinalChunk(stop model.StopReason) Completion {
	return b.completion("chat.completion.chunk", Choice{Delta: &Delta{}, FinishReason: finishReason(stop)})
}

// UsageChunk returns the chunk with the usage, which has no choice.
func (b CompletionBuilder) UsageChunk(u *Usage) Completion {
	out := b.completion("chat.completion.chunk", Choice{})
	out.Choices, out.Usage = []Choice{}, u
	return out
}

// finishReason returns OpenAI's finish_reason for a StopReason.
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

// ResultText returns the result of a task as a text: the content of a JSON string, or any
// other value as JSON.
func ResultText(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) == nil {
		return text
	}
	return string(result)
}
