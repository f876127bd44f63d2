package tool

import "github.com/rolecall/rolecall/errcode"

// Limits of a ModelRequest and its reply.
const (
	maxModelMessages = 32
	maxModelText     = 64 << 10 // bytes of the texts of a request, and of a reply
	maxModelTokens   = 8192
)

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
