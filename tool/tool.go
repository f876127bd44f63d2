// Package tool owns what a tool is: a named function with a JSON schema, an
// effect class and a handler.
//
// Make one from a Go function with New, or implement Tool. A tool's own
// failure is a Result the model can read (Failure); an error is the
// machinery's. The package runs nothing and permits nothing: tools are called
// by gate alone.
package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Effect says what calling a tool again would do.
type Effect uint8

// The effect classes. The zero Effect is the one that promises nothing.
const (
	Mutating   Effect = iota // acts on the world; never run again without knowing its outcome
	Idempotent               // the same call id again has no further effect
	ReadOnly                 // changes nothing; may run beside others
)

var effects = [...]string{"mutating", "idempotent", "readOnly"}

// Valid says whether e is one of the effect classes.
func (e Effect) Valid() bool { return int(e) < len(effects) }

// String gives the effect's name as documents and listings show it; what is
// not known is as bad as Mutating.
func (e Effect) String() string {
	if !e.Valid() {
		return effects[Mutating]
	}
	return effects[e]
}

// UnmarshalText implements encoding.TextUnmarshaler; what is not known is
// Mutating.
func (e *Effect) UnmarshalText(text []byte) error {
	*e = Mutating
	for i, name := range effects {
		if name == string(text) {
			*e = Effect(i)
		}
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Definition is what a model and the gate know of a tool. It never changes
// while the tool is registered.
type Definition struct {
	Name        string          `json:"name"` // ASCII letters, digits, '_', '.', '-'; 1 to 128 bytes
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"` // a JSON schema of type object
	Effect      Effect          `json:"effect"`
	State       string          `json:"state,omitempty"`            // workflow state a success moves to; "" moves nothing
	States      []string        `json:"availableInStates,omitzero"` // states that offer the tool; nil is every state, empty is none
	Auth        *Auth           `json:"auth,omitempty"`             // who has to vouch for the caller; nil is nobody
	Declared    Declared        `json:"-"`                          // of a tool that a configuration made; nil of others
}

// Call is one request to run a tool.
type Call struct {
	ID   identity.CallID // the idempotency key: the same for every try of one call
	Name string
	Args json.RawMessage // checked by the gate before a tool sees it
	By   identity.Principal

	// Of a tool with an Auth, what the gate found of the caller's Credentials.
	Claims map[string]json.RawMessage `json:"-"` // verified ones, JSON objects, by auth service
	Secure json.RawMessage            `json:"-"` // secure arguments, unchecked; nil is none
}

// Result is what a tool answers. The model reads Structured if there is one,
// else Text.
type Result struct {
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// JSON gives the result as one JSON document: Structured, or Text as a string.
func (r Result) JSON() json.RawMessage {
	if len(r.Structured) > 0 {
		return r.Structured
	}
	text, _ := json.Marshal(r.Text) // a string always marshals
	return text
}

// Tool is a named function. Call may run concurrently with itself; it returns
// an error only when the machinery failed.
type Tool interface {
	Definition() Definition
	Call(ctx context.Context, c Call) (Result, error)
}

// Failure is the Result of a call that was refused or failed, in the shape
// models read: {"error": code, "toolName": name, "message": text} and details.
func Failure(name string, err error) Result {
	body := map[string]any{}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		for key, value := range e.Details {
			body[key] = value
		}
	}
	body["error"] = errcode.Of(err)
	body["toolName"] = name
	body["message"] = errcode.Message(err)
	text, marshalErr := json.Marshal(body)
	if marshalErr != nil { // a detail that is not JSON: the bare facts remain
		text, _ = json.Marshal(map[string]any{"error": errcode.Of(err), "toolName": name, "message": errcode.Message(err)})
	}
	return Result{Structured: text, IsError: true}
}
