package provider

import "encoding/json"

// Options are settings of requests that not every provider has. Zero fields leave them
// to the provider.
type Options struct {
	Thinking      Thinking        `json:",omitzero"`
	TopP          *float64        `json:",omitempty"`
	Seed          *int            `json:",omitempty"`
	ToolChoice    string          `json:",omitempty"` // ToolsAuto, ToolsRequired or ToolsNone; sent with tools only
	ParallelTools *bool           `json:",omitempty"` // an answer may call several tools; sent with tools only
	Body          json.RawMessage `json:",omitempty"` // further fields of requests, a JSON object; New panics for any other JSON
}

// Values of Options.ToolChoice.
const (
	ToolsAuto     = "auto"     // the model decides
	ToolsRequired = "required" // every answer calls a tool
	ToolsNone     = "none"     // no answer calls a tool
)

// Thinking is how much a model thinks before it answers: a level or a number of tokens.
type Thinking struct {
	Level  string `json:",omitempty"` // one of the levels below; "" if Tokens is given
	Tokens int    `json:",omitempty"` // most tokens
}

// Levels of Thinking.
const (
	ThinkingNone   = "none"
	ThinkingLow    = "low"
	ThinkingMedium = "medium"
	ThinkingHigh   = "high"
)

// Budget returns the most tokens to think with, for models that know no levels. It is 0
// if the model is not to think or t is zero.
func (t Thinking) Budget() int {
	switch t.Level {
	case ThinkingLow:
		return 1024
	case ThinkingMedium:
		return 8192
	case ThinkingHigh:
		return 24_576
	}
	return t.Tokens
}

// Enabled reports whether t asks the model to think.
func (t Thinking) Enabled() bool { return t.Budget() > 0 }

// documentPrefix returns the beginning of a JSON document with the fields of objects,
// each followed by a comma, or nil if they have none. It panics if one of them is not an
// object.
func documentPrefix(objects ...any) []byte {
	prefix := []byte{'{'}
	for _, o := range objects {
		doc, err := json.Marshal(o)
		switch {
		case err != nil || doc[0] != '{' && string(doc) != "null":
			panic("provider: the fields of a request are not a JSON object: " + string(doc))
		case string(doc) != "{}" && string(doc) != "null":
			prefix = append(append(prefix, doc[1:len(doc)-1]...), ',')
		}
	}
	if len(prefix) == 1 {
		return nil
	}
	return prefix
}
