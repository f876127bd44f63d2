// Package openaiapi has the shapes of the OpenAI API that chat programs use: the list of models,
// and chat completions. It reads requests and writes answers; it starts no tasks.
//
// Source: OpenAI's API reference, "Models" and "Chat Completions". Errors have the shape of the
// gateway (wire.ErrorBody), whose fields message and code clients of OpenAI read, too.
package openaiapi

import (
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
)

// maxMessages limits the messages of a request.
const maxMessages = 1000

// Request is a request for a chat completion. Other fields, such as temperature, have no effect.
type Request struct {
	Model          string          `json:"model"`
	Messages       []Message       `json:"messages"`
	Stream         bool            `json:"stream"`
	StreamOptions  *StreamOptions  `json:"stream_options"`
	ResponseFormat *ResponseFormat `json:"response_format"`
	Choices        int             `json:"n"`
	Tools          json.RawMessage `json:"tools"`
	Functions      json.RawMessage `json:"functions"`
}

// StreamOptions are options of a stream.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// ResponseFormat says what the answer must be: text, json_object or json_schema.
type ResponseFormat struct {
	Type   string `json:"type"`
	Schema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
}

// Message is a message of a conversation.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text, or a list of parts
}

// Question is what a request asks an agent.
type Question struct {
	Text    string          // of the last message
	Files   []org.TaskFile  // pictures of the last message
	History []HistoryItem   // the messages before, oldest first
	Schema  json.RawMessage // that the answer must fit; nil for any
}

// HistoryItem is an earlier message, as the sender tells it.
type HistoryItem struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// DecodeRequest reads a request. Errors: InvalidArguments, with the detail "field".
func DecodeRequest(data []byte) (Request, error) {
	var q Request
	if err := strictjson.CheckDecodable(data, nil); err != nil {
		return q, errcode.New(errcode.InvalidArguments, "the body is a malformed or ambiguous JSON object: %v", err)
	}
	if err := json.Unmarshal(data, &q); err != nil {
		return q, errcode.New(errcode.InvalidArguments, "the body is no request for a chat completion: %v", err)
	}
	switch {
	case q.Model == "":
		return q, invalid("model", "is missing: name a role")
	case len(q.Messages) == 0:
		return q, invalid("messages", "is empty")
	case len(q.Messages) > maxMessages:
		return q, invalid("messages", "has more than 1000 messages")
	case q.Choices > 1:
		return q, invalid("n", "is more than 1: an agent answers once")
	case hasItems(q.Tools):
		return q, invalid("tools", "is not empty: the agent has the tools of its role, and calls them itself")
	case hasItems(q.Functions):
		return q, invalid("functions", "is not empty: the agent has the tools of its role, and calls them itself")
	}
	return q, nil
}

// hasItems reports whether a JSON value is neither absent, null nor an empty list.
func hasItems(raw json.RawMessage) bool {
	text := strings.Join(strings.Fields(string(raw)), "")
	return text != "" && text != "null" && text != "[]"
}

func invalid(field, problem string) error {
	return errcode.New(errcode.InvalidArguments, "field %q %s", field, problem).With("field", field)
}

// Question returns what the request asks: its last message, which has to be the user's. The
// messages before are data. Errors: InvalidArguments, with the detail "field".
func (q Request) Question() (Question, error) {
	last := len(q.Messages) - 1
	if role := q.Messages[last].Role; role != "user" {
		return Question{}, invalid("messages", "ends with a message of "+quoteRole(role)+"; the last one has to be the user's")
	}
	var out Question
	for _, m := range q.Messages[:last] {
		text, _, err := m.read()
		if err != nil {
			return Question{}, err
		}
		switch m.Role {
		case "system", "developer", "user", "assistant", "tool", "function":
			out.History = append(out.History, HistoryItem{m.Role, text})
		default:
			return Question{}, invalid("messages", "has a message of "+quoteRole(m.Role))
		}
	}
	var err error
	if out.Text, out.Files, err = q.Messages[last].read(); err != nil {
		return Question{}, err
	}
	if out.Text == "" {
		return Question{}, invalid("messages", "ends with a message without text")
	}
	out.Schema, err = q.ResponseFormat.schema()
	return out, err
}

func quoteRole(role string) string {
	text, _ := json.Marshal(role[:min(len(role), 40)]) // a text always marshals
	return string(text)
}

// schema returns the JSON schema of the answer, nil for any answer.
func (f *ResponseFormat) schema() (json.RawMessage, error) {
	switch {
	case f == nil, f.Type == "text":
		return nil, nil
	case f.Type == "json_object":
		return json.RawMessage(`{"type":"object"}`), nil
	case f.Type == "json_schema" && f.Schema != nil && f.Schema.Schema != nil:
		return f.Schema.Schema, nil
	case f.Type == "json_schema":
		return nil, invalid("response_format", "has no json_schema.schema")
	}
	return nil, invalid("response_format", "has an unknown type; use text, json_object or json_schema")
}
