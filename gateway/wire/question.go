package wire

import (
	"encoding/json"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// ToolQuestion is a question of a tool that waits for the person who started its task. Message
// comes from the tool or from an MCP server: it is text, without control characters.
type ToolQuestion struct {
	ID      string           `json:"id"`
	Agent   identity.AgentID `json:"agent"` // that called the tool
	Call    identity.CallID  `json:"call"`
	Tool    string           `json:"tool"`
	Server  string           `json:"server,omitempty"` // the MCP server that asks; absent if it is the tool itself
	Message string           `json:"message"`
	Schema  json.RawMessage  `json:"schema,omitempty"` // of the content of the answer; absent for consent only
	URL     string           `json:"url,omitempty"`    // a page that the person should open
	Asked   time.Time        `json:"asked"`
	Until   time.Time        `json:"until"` // when it counts as declined
}

// ToolQuestions are the questions of a task that wait for an answer, oldest first.
type ToolQuestions struct {
	Questions []ToolQuestion `json:"questions"`
}

// ToolAnswer is the body of POST /api/v1/tasks/{id}/questions/{question}.
type ToolAnswer struct {
	Action  tool.Action     `json:"action"`            // accept, decline or cancel
	Content json.RawMessage `json:"content,omitempty"` // an object that fits the schema; fields with a default may be left out
}
