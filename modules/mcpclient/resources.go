package mcpclient

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// maxListed is how many resources or prompts one call lists at most.
const maxListed = 1000

// resourceTool is a tool for the resources or prompts of a server. Its definition is ours,
// not the server's.
type resourceTool struct {
	name, description, input string                             // input is the schema that models read
	completes                bool                               // it also accepts the argument complete, with which clients complete values
	offered                  func(*sdk.ServerCapabilities) bool // whether the server supports it
	call                     func(ctx context.Context, s *sdk.ClientSession, name string, args json.RawMessage) (tool.Result, error)
}

// kindResource is the Kind of a ToolPin of a resourceTool. It is part of the stored digest.
const kindResource = "mcp"

// resourceTools returns all resource tools.
func resourceTools() []resourceTool {
	resources := func(c *sdk.ServerCapabilities) bool { return c.Resources != nil }
	prompts := func(c *sdk.ServerCapabilities) bool { return c.Prompts != nil }
	const acceptsComplete = true // values of completes
	const page = `{"type":"object","properties":{"cursor":{"type":"string","description":"next of the previous page"},` +
		`"offset":{"type":"integer","minimum":0,"description":"nextOffset of a truncated page, with the cursor of that page"}},"additionalProperties":false}`
	return []resourceTool{
		{"list_resources", "List the resources of this MCP server, a page at a time.", page, acceptsComplete, resources, listResources},
		{"read_resource", "Read a resource of this MCP server.",
			`{"type":"object","properties":{"uri":{"type":"string","minLength":1}},"required":["uri"],"additionalProperties":false}`, !acceptsComplete, resources, readResource},
		{"list_prompts", "List the prompts of this MCP server, a page at a time.", page, acceptsComplete, prompts, listPrompts},
		{"get_prompt", "Get a prompt of this MCP server, filled in with arguments.",
			`{"type":"object","properties":{"name":{"type":"string","minLength":1},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"],"additionalProperties":false}`, !acceptsComplete, prompts, getPrompt},
	}
}

// acceptedInput returns the schema of the arguments that the tool accepts. Clients complete values
// with complete; models are not shown it.
func (e resourceTool) acceptedInput() []byte {
	if !e.completes {
		return []byte(e.input)
	}
	const complete = `{"type":"object","properties":{"complete":{"type":"object","properties":{"prompt":{"type":"string"},"template":{"type":"string"},"argument":{"type":"string"},` +
		`"value":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["argument","value"],"additionalProperties":false},`
	return []byte(strings.Replace(e.input, `{"type":"object","properties":{`, complete, 1))
}

// completeArgs asks for the values of an argument of a prompt, or of a variable of a template.
type completeArgs struct {
	Prompt    string            `json:"prompt,omitempty"`
	Template  string            `json:"template,omitempty"`
	Argument  string            `json:"argument"`
	Value     string            `json:"value"`
	Arguments map[string]string `json:"arguments,omitempty"` // those that are known
}

// complete returns the values as the server completes them, at most 100.
func (in completeArgs) complete(ctx context.Context, s *sdk.ClientSession, name string) (tool.Result, error) {
	params := &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: in.Prompt}, Argument: sdk.CompleteParamsArgument{Name: in.Argument, Value: in.Value}}
	if in.Prompt == "" {
		params.Ref = &sdk.CompleteReference{Type: "ref/resource", URI: in.Template}
	}
	if len(in.Arguments) > 0 {
		params.Context = &sdk.CompleteContext{Arguments: in.Arguments}
	}
	r, err := s.Complete(ctx, params)
	if err != nil {
		return tool.Result{}, err
	}
	r.Completion.Values = r.Completion.Values[:min(len(r.Completion.Values), maxCompleted)]
	return structuredResult(name, r.Completion), nil
}

// maxCompleted is how many values a completion has at most.
const maxCompleted = 100

// findResourceTool returns the resource tool of this name, if there is one.
func findResourceTool(name string) (resourceTool, bool) {
	list := resourceTools()
	at := slices.IndexFunc(list, func(e resourceTool) bool { return e.name == name })
	if at < 0 {
		return resourceTool{}, false
	}
	return list[at], true
}

// withResourceTools appends the resource tools that the server supports. It leaves out
// those with the name of a tool of the server.
func withResourceTools(pins []modules.ToolPin, prefix string, has *sdk.ServerCapabilities) []modules.ToolPin {
	for _, e := range resourceTools() {
		taken := slices.ContainsFunc(pins, func(p modules.ToolPin) bool { return p.Tool == e.name })
		if e.offered(has) && !taken && tool.CheckName(prefix+e.name) == nil {
			pins = append(pins, modules.ToolPin{Tool: e.name, Kind: kindResource, Description: e.description})
		}
	}
	return pins
}

// arguments decodes arguments, which the gate has checked against the schema.
func arguments[T any](args json.RawMessage) (v T, err error) {
	if err := json.Unmarshal(args, &v); err != nil {
		return v, errcode.New(errcode.InvalidArguments, "arguments do not fit the tool: %v", err)
	}
	return v, nil
}

// pageArgs are the arguments of the listing tools.
type pageArgs struct {
	Cursor   string
	Offset   int           // of the first item in the server's page
	Complete *completeArgs `json:",omitempty"` // instead of a page
}

// listPage is one page of resources or prompts, or a part of a server's page that has more
// than maxListed.
type listPage struct {
	Items      any    `json:"items"`
	Next       string `json:"next,omitempty"`       // the cursor of the next page
	Truncated  bool   `json:"truncated,omitempty"`  // the server's page has more items
	NextOffset int    `json:"nextOffset,omitempty"` // where they begin
}

// newPage returns the part of a server's page from an offset on.
func newPage[T any](items []T, offset int, next string) listPage {
	from := min(offset, len(items))
	to := min(from+maxListed, len(items))
	if to < len(items) {
		return listPage{Items: items[from:to], Truncated: true, NextOffset: to}
	}
	return listPage{Items: items[from:], Next: next}
}

func listResources(ctx context.Context, s *sdk.ClientSession, name string, args json.RawMessage) (tool.Result, error) {
	in, err := arguments[pageArgs](args)
	if err != nil {
		return tool.Failure(name, err), nil
	}
	if in.Complete != nil {
		return in.Complete.complete(ctx, s, name)
	}
	page, err := s.ListResources(ctx, &sdk.ListResourcesParams{Cursor: in.Cursor})
	if err != nil {
		return tool.Result{}, err
	}
	return structuredResult(name, newPage(page.Resources, in.Offset, page.NextCursor)), nil
}

func readResource(ctx context.Context, s *sdk.ClientSession, name string, args json.RawMessage) (tool.Result, error) {
	in, err := arguments[struct{ URI string }](args)
	if err != nil {
		return tool.Failure(name, err), nil
	}
	r, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
	if err != nil {
		return tool.Result{}, err
	}
	contents := make([]tool.Content, 0, len(r.Contents))
	for _, c := range r.Contents {
		contents = append(contents, resourceOf(c))
	}
	return tool.Result{Content: contents}, nil
}

func listPrompts(ctx context.Context, s *sdk.ClientSession, name string, args json.RawMessage) (tool.Result, error) {
	in, err := arguments[pageArgs](args)
	if err != nil {
		return tool.Failure(name, err), nil
	}
	if in.Complete != nil {
		return in.Complete.complete(ctx, s, name)
	}
	page, err := s.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: in.Cursor})
	if err != nil {
		return tool.Result{}, err
	}
	return structuredResult(name, newPage(page.Prompts, in.Offset, page.NextCursor)), nil
}

// message is one message of a prompt. A content that is not a text is described here, and its
// data is a content of the result.
type message struct {
	Role    string       `json:"role"`
	Content tool.Content `json:"content"`
}

func getPrompt(ctx context.Context, s *sdk.ClientSession, name string, args json.RawMessage) (tool.Result, error) {
	in, err := arguments[struct {
		Name      string
		Arguments map[string]string
	}](args)
	if err != nil {
		return tool.Failure(name, err), nil
	}
	r, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: in.Name, Arguments: in.Arguments})
	if err != nil {
		return tool.Result{}, err
	}
	messages := make([]message, 0, len(r.Messages))
	var contents []tool.Content
	for _, m := range r.Messages {
		if m == nil {
			continue
		}
		c := contentOf(m.Content)
		messages = append(messages, message{string(m.Role), c})
		if c.Data != nil {
			contents = append(contents, c)
		}
	}
	body := map[string]any{"messages": messages}
	if r.Description != "" {
		body["description"] = r.Description
	}
	result := structuredResult(name, body)
	result.Content = contents
	return result, nil
}
