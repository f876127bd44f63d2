package tool

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
)

// Catalog lets clients that know resources and prompts use a tool for them. Clients of the
// Model Context Protocol know these. It is set in the Definition of the tool. Each request of
// such a client becomes a call of the tool, which passes the gate like any other. A caller
// that may not call the tool reads and lists nothing with it.
//
// A Catalog decides no permissions. Its methods must be safe for concurrent use and must not
// block. Two Catalogs of the same tool must be equal by reflect.DeepEqual.
type Catalog interface {
	// Source returns the name of what the resources and prompts belong to. Tools that list and
	// read the same ones return the same name. Lists are sorted by it.
	Source() string

	// Answers reports whether the tool answers requests of a kind.
	Answers(CatalogKind) bool

	// Arguments returns the arguments of the call that answers a request. It reports false for
	// other kinds, and for a URI or a name that is not of its source. Nil arguments mean that Answer needs no call. The request is not trusted.
	Arguments(CatalogRequest) (args json.RawMessage, ok bool)

	// Answer converts the result of that call, which has succeeded; it is the zero Result if
	// there was no call. An error with the code file_not_found or artifact_not_found means that
	// there is no such resource.
	Answer(CatalogRequest, Result) (CatalogAnswer, error)
}

// ResourceVersioner is a Catalog whose resources change, which clients can watch.
type ResourceVersioner interface {
	Catalog

	// ResourceVersion returns a text that differs once the resource has changed. It is called
	// every few seconds as long as a client watches the resource and may read it. It must not
	// wait for another computer. by is whom the resource is watched for.
	ResourceVersion(ctx context.Context, by identity.Principal, uri string) (string, error)
}

// CatalogKind is what a CatalogRequest asks for.
type CatalogKind uint8

// The kinds of requests.
const (
	ListResources CatalogKind = iota + 1
	ListTemplates
	ReadResource
	ListPrompts
	GetPrompt
	Complete // the values of an argument of a prompt, or of a variable of a template
)

// CatalogRequest is a request for resources or prompts.
type CatalogRequest struct {
	Kind      CatalogKind
	Cursor    string            // of the lists: "" for the first page, else Next of the page before
	URI       string            // of ReadResource; of Complete, the template, unless Name is set
	Name      string            // of GetPrompt and Complete, the prompt
	Arguments map[string]string // of GetPrompt; of Complete, those that are known
	Argument  string            // of Complete: what is completed
	Value     string            // of Complete: how the value begins
}

// CatalogAnswer is the answer to a CatalogRequest. Only the fields of its kind are set.
type CatalogAnswer struct {
	Resources []Resource
	Templates []ResourceTemplate
	Next      string // the Cursor of the next page of a list; "" after the last

	Contents []Content // of ReadResource, of the type ResourceContent

	Prompts     []Prompt
	Description string          // of GetPrompt
	Messages    []PromptMessage // of GetPrompt

	Values []string // of Complete, the best first; clients get the first 100
	Total  int      // how many values there are; 0 if unknown
}

// Resource describes something that can be read by its URI.
type Resource struct {
	URI         string
	Name        string // for people, and for programs that select by it
	Title       string
	Description string
	MIMEType    string
	Size        int64 // in bytes; 0 if not known
}

// ResourceTemplate describes resources whose URIs have variables (RFC 6570).
type ResourceTemplate struct {
	URITemplate string
	Name        string
	Title       string
	Description string
	MIMEType    string
}

// Prompt describes messages that can be requested by name.
type Prompt struct {
	Name        string
	Title       string
	Description string
	Arguments   []PromptArgument
}

// PromptArgument describes an argument of a Prompt. Its value is a text.
type PromptArgument struct {
	Name        string
	Description string
	Required    bool
}

// PromptMessage is one message of a Prompt.
type PromptMessage struct {
	Role    string // user or assistant
	Content Content
}
