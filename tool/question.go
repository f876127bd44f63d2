package tool

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Limits of a question.
const (
	maxQuestion    = 4 << 10 // bytes of the message
	maxQuestionURL = 2 << 10 // bytes
)

// Question is what a tool asks a person.
type Question struct {
	// Name identifies the question in its call: 1 to 64 ASCII letters, digits, '_', '.' and
	// '-', once in a call. An empty name is replaced by one with the number of the question.
	Name    string `json:"name"`
	Message string `json:"message"` // for the person; at most 4 KiB

	// Schema describes the answer: a JSON schema of type object, at most 16 KiB, whose
	// properties are strings, numbers, integers, booleans and lists of choices. nil asks
	// for consent only.
	Schema json.RawMessage `json:"schema,omitempty"`

	// URL is an http or https address that the person should open. It is shown as text and
	// never opened. A question with a URL has no Schema.
	URL string `json:"url,omitempty"`

	// Server is the MCP server that asks; "" is the tool itself. A client of the server
	// sets it.
	Server string `json:"server,omitempty"`
}

// Action is what a person did with a question.
type Action string

// The actions. Only an accepted question has an answer.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // the person refused, or did not answer in time
	Cancel  Action = "cancel"  // the person made no choice
)

// Answer is the answer to a Question. Content is valid for the Schema, with the defaults of what
// the person left out. It is nil unless the question was accepted and has a Schema.
type Answer struct {
	Action  Action          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// consentSchema is the schema of a question without one.
const consentSchema = `{"type":"object","properties":{}}`

// AnswerSchema returns the schema of the answer: Schema, or the schema of an empty object. A
// question with a URL has none.
func (q Question) AnswerSchema() json.RawMessage {
	switch {
	case q.URL != "":
		return nil
	case len(q.Schema) == 0:
		return json.RawMessage(consentSchema)
	}
	return q.Schema
}

// Attributed returns the message with a beginning that says who asks. A tool or server cannot
// pose as another or as rolecall.
func (q Question) Attributed(toolName string) string {
	who := toolName
	if q.Server != "" {
		who += " (MCP server " + textutil.Sanitize(textutil.Truncate(q.Server, 80)) + ")"
	}
	return who + " asks: " + q.Message
}

// check checks a question whose message was sanitized.
func (q Question) check() error {
	switch {
	case q.Message == "" || len(q.Message) > maxQuestion:
		return errcode.New(errcode.InvalidArguments, "question %s has %d bytes of text; 1 to %d are allowed", q.Name, len(q.Message), maxQuestion)
	case q.URL != "" && len(q.Schema) > 0:
		return errcode.New(errcode.InvalidArguments, "question %s has a URL and a schema; only one is allowed", q.Name)
	case q.URL != "":
		return q.checkURL()
	}
	_, err := parseForm(q.Name, q.AnswerSchema())
	return err
}

// checkURL rejects what is not an address of a page. The text must print as it is.
func (q Question) checkURL() error {
	u, err := url.Parse(q.URL)
	if err != nil || len(q.URL) > maxQuestionURL || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || textutil.Sanitize(q.URL) != q.URL || strings.Contains(q.URL, " ") {
		return errcode.New(errcode.InvalidArguments, "question %s: the URL must be an address such as https://host/path, without a password", q.Name)
	}
	return nil
}

// CheckAnswer returns an answer as the tool gets it. It fills in the defaults of fields that are
// missing, and drops what was not asked for. It drops the content unless the action is Accept.
//
// Errors: InvalidArguments for an unknown action, and for content that does not match the schema.
func (q Question) CheckAnswer(a Answer) (Answer, error) {
	switch a.Action {
	case Accept:
	case Decline, Cancel:
		return Answer{Action: a.Action}, nil
	default:
		return Answer{}, errcode.New(errcode.InvalidArguments, "the answer to %s has the action %.40q; use accept, decline or cancel", q.Name, a.Action).With("field", q.Name)
	}
	if q.URL != "" || len(q.Schema) == 0 {
		return Answer{Action: Accept}, nil
	}
	f, err := parseForm(q.Name, q.Schema)
	if err != nil {
		return Answer{}, err
	}
	content, err := f.complete(a.Content)
	if err != nil {
		return Answer{}, errcode.New(errcode.InvalidArguments, "the answer to %s is not valid: %s", q.Name, errcode.Message(err)).With("field", q.Name)
	}
	return Answer{Action: Accept, Content: content}, nil
}
