// Package tool defines tools: named functions with a JSON schema for their arguments and an
// effect class, which models call.
//
// New makes a tool of a Go function. The input schema is inferred from the type of its
// argument:
//
//	type query struct {
//		City string `json:"city" jsonschema:"a city, such as Vienna"`
//	}
//
//	func forecast(ctx context.Context, q query) (string, error) {
//		return "sunny in " + q.City, nil
//	}
//
//	t, err := tool.New("forecast", "Return the weather of a city.", forecast, &tool.Options{
//		Effect: tool.ReadOnly,
//	})
//
// # Effect classes
//
// The effect of a tool determines what happens to a call that was interrupted, for example by
// a crash:
//
//   - Mutating, the default: the call may change something and is not repeated. The model is
//     told that the outcome is unknown.
//   - Idempotent: a repetition with the same Call.ID has no further effect, so the call is
//     repeated.
//   - ReadOnly: the call changes nothing. It is repeated, and may run concurrently with other
//     calls.
//
// # Flags
//
// The flags of a tool say whether its results may contain untrusted text or private data, and
// whether a call may send data out. Flags that are not set count as all three. They are no
// permission: "rolecall role lint" reads them.
//
// # Options
//
// Options.State is the workflow state that a successful call moves the agent to, and
// Options.States are the states in which the tool is available. Options.Input replaces the
// inferred schema. Options.Shown is a shorter schema for models.
//
// Options.Asks lets the tool ask a person during a call (Ask).
//
// # Results and errors
//
// A result may have pictures, sounds and resources besides its text (see Content):
//
//	return tool.Result{Text: "The sales of May.", Content: []tool.Content{
//		{Type: tool.ImageContent, Data: png},
//	}}, nil
//
// A failure of a tool is a Result that the model reads (see Failure). An error is a failure of
// the machinery, such as an ended context. A tool that does not fit a Go function implements
// the interface Tool.
//
// This package calls no tool and decides no permission: only package gate calls tools.
package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Effect is the effect class of a tool: what it means to repeat a call.
type Effect uint8

// The effect classes. The zero Effect is the one without any guarantee.
const (
	Mutating   Effect = iota // may change something; never repeated if its outcome is unknown
	Idempotent               // a repetition with the same call id has no further effect
	ReadOnly                 // changes nothing; may run concurrently with other calls
)

var effects = [...]string{"mutating", "idempotent", "readOnly"}

// IsValid reports whether e is one of the effect classes.
func (e Effect) IsValid() bool { return int(e) < len(effects) }

// String returns the name of the effect in documents and listings. An invalid effect is shown
// as mutating.
func (e Effect) String() string {
	if !e.IsValid() {
		return effects[Mutating]
	}
	return effects[e]
}

// UnmarshalText implements encoding.TextUnmarshaler. It never fails: an unknown name is
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

// Definition describes a tool to models and to the gate. It must not be changed while the tool
// is registered.
type Definition struct {
	Name        string          `json:"name"` // ASCII letters, digits, '_', '.', '-'; 1 to 128 bytes
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"` // a JSON schema of type object
	Shown       json.RawMessage `json:"-"`           // the schema that models read; nil: Input. It may leave out what Input accepts
	Effect      Effect          `json:"effect"`
	Flags       Flags           `json:"-"`                          // what the tool brings together with others; the zero Flags are unknown and count as all
	State       string          `json:"state,omitempty"`            // the workflow state after a success; "" keeps the state
	States      []string        `json:"availableInStates,omitzero"` // the states in which the tool is available; nil: all, empty: none
	Auth        *Auth           `json:"auth,omitempty"`             // the tokens that callers need; nil: none
	Asks        Asks            `json:"-"`                          // what the tool may ask the caller during a call (Ask)
	Listing     Listing         `json:"-"`                          // further fields of the tool in the listing of the MCP server
	Declared    Declared        `json:"-"`                          // set for tools that a configuration declares
	Catalog     Catalog         `json:"-"`                          // set for tools that list or read resources
}

// ModelSchema returns the input schema that models read.
func (d *Definition) ModelSchema() json.RawMessage {
	if d.Shown != nil {
		return d.Shown
	}
	return d.Input
}

// Call is one request to run a tool.
type Call struct {
	ID   identity.CallID // the idempotency key: the same for every repetition of one call
	Name string
	Args json.RawMessage // a JSON object that the gate has validated against the input schema
	By   identity.Principal

	// Owner is a text that identifies on whose behalf the call is made. For a caller that is
	// the caller itself. For an agent it is the external caller that started its task, or the
	// task if the operator started it. Places for which calls wait are shared fairly among
	// owners. The gate sets it.
	Owner string `json:"-"`

	// What the gate took from the caller's Credentials, for a tool with an Auth.
	Claims map[string]json.RawMessage `json:"-"` // verified claims, JSON objects, by auth service
	Secure json.RawMessage            `json:"-"` // secure arguments, not validated; nil if there are none
}

// FairKey returns the key of a call where places are shared fairly. The key is its owner, and
// the agent or user that calls, as a member of the owner. A call that did not pass a gate has
// no Owner; its caller takes that place.
func (c Call) FairKey() (owner, member string) {
	member = cmp.Or(c.By.Key(), c.By.String())
	return cmp.Or(c.Owner, member), member
}

// Result is the result of a call. The model reads Structured if it is set, else Text. With
// Content it reads all three, and sees the pictures if it sees any.
type Result struct {
	Text       string          `json:"text,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"`
	Content    []Content       `json:"content,omitempty"` // texts, pictures, sounds and resources
	IsError    bool            `json:"isError,omitempty"`

	// Absent is set if the call looked for something that does not exist; the JSON of the
	// result is null then. It says what is missing and what exists instead. Language models
	// read it in place of null; other callers get null.
	Absent string `json:"-"`

	// Cause is the error of which a Failure with the code internal was made. The Failure does
	// not contain its text, because callers must not read it. The gate logs it.
	Cause error `json:"-"`
}

// JSON returns the result as one JSON document:
//
//   - With Content it is {"content": [...], "structuredContent": ...}. Text is the first content.
//     Bytes (Content.Data) are left out; a description says what they are.
//   - A Failure with Content is its Structured with the field content added.
//   - Otherwise it is Structured, or Text as a JSON string if Structured is empty.
func (r Result) JSON() json.RawMessage {
	if len(r.Content) > 0 {
		return r.contentJSON()
	}
	if len(r.Structured) > 0 {
		return r.Structured
	}
	text, _ := json.Marshal(r.Text) // a string always marshals
	return text
}

// Tool is a named function. Implementations must be safe for concurrent use. Call returns a
// failure of the tool as a Result (Failure), and an error only if the machinery failed or ctx
// ended.
type Tool interface {
	Definition() Definition
	Call(ctx context.Context, c Call) (Result, error)
}

// Failure returns the Result of a call that was denied or failed. Models read the form {"error":
// code, "toolName": name, "message": text}. The details of an *errcode.Error are added.
func Failure(name string, err error) Result {
	body := map[string]any{}
	if e, ok := errors.AsType[*errcode.Error](err); ok {
		for key, value := range e.Details {
			body[key] = value
		}
	}
	body["error"] = errcode.CodeOf(err)
	body["toolName"] = name
	body["message"] = errcode.Message(err)
	text, marshalErr := json.Marshal(body)
	if marshalErr != nil { // a detail is not JSON: leave the details out
		text, _ = json.Marshal(map[string]any{"error": errcode.CodeOf(err), "toolName": name, "message": errcode.Message(err)})
	}
	r := Result{Structured: text, IsError: true}
	if errcode.CodeOf(err) == errcode.Internal {
		r.Cause = err
	}
	return r
}
