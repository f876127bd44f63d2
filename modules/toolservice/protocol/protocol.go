// Package protocol defines what runtime and tool services exchange: topics, the bodies of
// requests and responses, and call tokens. Both sides import it. It knows no broker.
//
// The bodies are the same as in TrustGraph, so that its services and agents work unchanged:
//
//	{"user": "ann", "config": "{\"style\": \"pun\"}", "arguments": "{\"topic\": \"llamas\"}"}
//	{"error": null, "response": "Here's a pun for you: ...", "end_of_stream": true}
//
// A request and its responses have the same id, in the header HeaderID. Everything about the
// caller that a service can trust is in the call token, in HeaderToken; see Token.
package protocol

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Headers of messages.
const (
	HeaderID    = "id"             // of the request; each of its responses has the same
	HeaderToken = "rolecall-token" // of a request, see SignToken; services may ignore it
)

// Request is the body of a request.
type Request struct {
	User      string // for whom the call is made: an external caller, or "operator"
	Config    string // a JSON object: the values of the tool
	Arguments string // a JSON object: the arguments of the model, as the caller sent them
}

// requestBody is the JSON of a Request.
type requestBody struct {
	User      string `json:"user"`
	Config    string `json:"config"`
	Arguments string `json:"arguments"`
}

// Encode returns the JSON of r.
func (r Request) Encode() []byte {
	body := make([]byte, 0, len(r.User)+len(r.Config)+len(r.Arguments)+128)
	body = appendMember(append(body, '{'), "user", r.User)
	body = appendMember(body, "config", r.Config)
	return append(appendMember(body, "arguments", r.Arguments), '}')
}

// DecodeRequest reads the body of a request. Absent and empty fields are as TrustGraph reads
// them: no user, and objects without members.
func DecodeRequest(data []byte) (Request, error) {
	body, ok := readFlatRequest(data)
	if !ok {
		if err := json.Unmarshal(data, &body); err != nil {
			return Request{}, fmt.Errorf("read the request: %w", err)
		}
	}
	for _, text := range []*string{&body.Config, &body.Arguments} {
		if *text == "" {
			*text = "{}"
		}
	}
	return Request(body), nil
}

// readFlatRequest reads a body that a runtime writes. It reports false for another one.
func readFlatRequest(data []byte) (requestBody, bool) {
	var body requestBody
	ok := readFlat(data, func(name []byte, v flatValue) bool {
		switch string(name) {
		case "user":
			return v.storeText(&body.User)
		case "config":
			return v.storeText(&body.Config)
		case "arguments":
			return v.storeText(&body.Arguments)
		}
		return false
	})
	if !ok {
		return requestBody{}, false
	}
	return body, true
}

// Error is a failure that a service reports.
type Error struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Types of errors that this package's users write. A service may have its own.
const (
	ErrorService     = "tool-service-error" // the tool failed
	ErrorRateLimited = "too-many-requests"  // the service did nothing; the request may be sent again
	ErrorForbidden   = "forbidden"          // the call token is missing or wrong; the service did nothing
)

// Response is the body of a response. A request has one or more; the last one has EndOfStream.
type Response struct {
	Error       *Error
	Text        string // the result, or the next piece of it
	EndOfStream bool
}

// responseBody is the JSON of a Response. The response may be any JSON: a service that does not
// write a text means the JSON of what it writes.
type responseBody struct {
	Error       *Error          `json:"error"`
	Response    json.RawMessage `json:"response"`
	EndOfStream bool            `json:"end_of_stream"`
}

// Encode returns the JSON of r.
func (r Response) Encode() []byte {
	failure, _ := json.Marshal(r.Error) // texts always marshal
	body := make([]byte, 0, len(r.Text)+len(failure)+64)
	body = append(appendName(append(body, '{'), "error"), failure...)
	body = appendName(appendMember(body, "response", r.Text), "end_of_stream")
	return append(strconv.AppendBool(body, r.EndOfStream), '}')
}

// DecodeResponse reads the body of a response. A response that is not a text is its JSON.
func DecodeResponse(data []byte) (Response, error) {
	if r, ok := readFlatResponse(data); ok {
		return r, nil
	}
	var body responseBody
	if err := json.Unmarshal(data, &body); err != nil {
		return Response{}, fmt.Errorf("read the response: %w", err)
	}
	r := Response{Error: body.Error, EndOfStream: body.EndOfStream}
	if len(body.Response) == 0 || string(body.Response) == "null" {
		return r, nil
	}
	if json.Unmarshal(body.Response, &r.Text) != nil {
		r.Text = string(body.Response)
	}
	return r, nil
}

// readFlatResponse reads a body with a text and without an error. It reports false for another
// one.
func readFlatResponse(data []byte) (Response, bool) {
	var r Response
	ok := readFlat(data, func(name []byte, v flatValue) bool {
		switch string(name) {
		case "error":
			return !v.isText && string(v.raw) == "null"
		case "response":
			return v.isText && v.storeText(&r.Text)
		case "end_of_stream":
			return v.storeBool(&r.EndOfStream)
		}
		return false
	})
	return r, ok
}
