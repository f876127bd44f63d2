package mcpclient

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// catalog makes a resourceTool usable by clients that know resources and prompts. The URI of a
// resource is the server's with uriPrefix, so that it names its server. A server whose tools have
// no prefix has URIs without a prefix. It is asked for URIs that no other source has. The catalog
// has the templates and prompts that the operator has accepted. They are listed without asking
// the server.
type catalog struct {
	module *Module
	tool   string // name of the resourceTool
}

// prefixScheme begins the URIs of the resources of all servers with a prefix.
const prefixScheme = "mcp:"

// otherSchemes begin the URIs that no server without a prefix is asked for.
var otherSchemes = []string{"workspace:", "artifact:", prefixScheme}

// uriPrefix returns what the URIs of the server's resources begin with.
func (c catalog) uriPrefix() string {
	if *c.module.config.Prefix == "" {
		return ""
	}
	return prefixScheme + "//" + c.module.config.Name + "/"
}

// Source implements tool.Catalog. Servers without a prefix come after all other sources.
func (c catalog) Source() string {
	if *c.module.config.Prefix == "" {
		return "~mcp/" + c.module.config.Name
	}
	return "mcp/" + c.module.config.Name
}

// serverURI returns the URI by which the server knows a resource.
func (c catalog) serverURI(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, c.uriPrefix())
	isOther := func(scheme string) bool {
		return len(rest) >= len(scheme) && strings.EqualFold(rest[:len(scheme)], scheme)
	}
	if !ok || !isPlainURI(rest) || c.uriPrefix() == "" && slices.ContainsFunc(otherSchemes, isOther) {
		return "", false
	}
	return rest, true
}

// clientURI returns the URI of a resource of the server as clients know it. It is "" if the URI
// would belong to another source.
func (c catalog) clientURI(uri string) string {
	if _, ok := c.serverURI(c.uriPrefix() + uri); !ok {
		return ""
	}
	return c.uriPrefix() + uri
}

// Answers implements tool.Catalog.
func (c catalog) Answers(k tool.CatalogKind) bool {
	switch c.tool {
	case "list_resources":
		return k == tool.ListResources || k == tool.ListTemplates || k == tool.Complete
	case "read_resource":
		return k == tool.ReadResource
	case "list_prompts":
		return k == tool.ListPrompts || k == tool.Complete
	case "get_prompt":
		return k == tool.GetPrompt
	}
	return false
}

// Arguments implements tool.Catalog.
func (c catalog) Arguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	if !c.Answers(r.Kind) {
		return nil, false
	}
	switch r.Kind {
	case tool.ListResources:
		return pageArguments(r.Cursor)
	case tool.ReadResource:
		uri, ok := c.serverURI(r.URI)
		if !ok {
			return nil, false
		}
		args, _ := json.Marshal(map[string]string{"uri": uri}) // strings always marshal
		return args, true
	case tool.GetPrompt:
		return c.promptArguments(r)
	case tool.Complete:
		return c.completeArguments(r)
	}
	return nil, true
}

// completeArguments returns the arguments that complete a value of an accepted prompt, with
// list_prompts, or of an accepted template, with list_resources.
func (c catalog) completeArguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	in := completeArgs{Argument: r.Argument, Value: r.Value, Arguments: r.Arguments}
	var ok, known bool
	if r.Name != "" && c.tool == "list_prompts" {
		in.Prompt, ok = strings.CutPrefix(r.Name, *c.module.config.Prefix)
		known = c.module.isAccepted(kindPrompt, in.Prompt)
	} else if r.Name == "" && c.tool == "list_resources" {
		in.Template, ok = c.serverURI(r.URI)
		known = c.module.isAccepted(kindTemplate, in.Template)
	}
	args, _ := json.Marshal(map[string]completeArgs{"complete": in}) // texts always marshal
	return args, ok && known
}

// isAccepted reports whether a prompt or template of the server is accepted. It is asked for each
// item of a list. No name of a tool has a slash.
func (m *Module) isAccepted(kind, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.activeDigests[kind+"/"+name]
	return ok
}

// pageArguments returns the arguments that list the page of a cursor. A cursor of
// CatalogAnswer.Next is the JSON of pageArgs.
func pageArguments(cursor string) (json.RawMessage, bool) {
	if cursor == "" {
		return json.RawMessage(`{}`), true
	}
	in := pageArgs{}
	if json.Unmarshal([]byte(cursor), &in) != nil || in.Offset < 0 {
		return nil, false
	}
	args, _ := json.Marshal(map[string]any{"cursor": in.Cursor, "offset": in.Offset}) // they always marshal
	return args, true
}

// Answer implements tool.Catalog.
func (c catalog) Answer(r tool.CatalogRequest, result tool.Result) (tool.CatalogAnswer, error) {
	switch r.Kind {
	case tool.ListTemplates:
		return tool.CatalogAnswer{Templates: c.templates()}, nil
	case tool.ListResources:
		return c.resources(r, result)
	case tool.ListPrompts:
		return tool.CatalogAnswer{Prompts: c.prompts()}, nil
	case tool.GetPrompt:
		return c.messages(result)
	case tool.Complete:
		return c.values(result)
	}
	return c.contents(r, result)
}

// templates returns the accepted templates of the server, by URI template.
func (c catalog) templates() (list []tool.ResourceTemplate) {
	for _, p := range c.module.acceptedPins(kindTemplate) {
		var d templateDefinition
		if json.Unmarshal(p.Input, &d) == nil && c.clientURI(d.URITemplate) != "" {
			list = append(list, tool.ResourceTemplate{URITemplate: c.clientURI(d.URITemplate), Name: d.Name, Title: d.Title, Description: d.Description, MIMEType: d.MIMEType})
		}
	}
	return list
}

// acceptedPins returns the accepted pins of a kind, sorted by name.
func (m *Module) acceptedPins(kind string) (list []modules.ToolPin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.active {
		if p.Kind == kind {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b modules.ToolPin) int { return strings.Compare(a.Tool, b.Tool) })
	return list
}

// resources returns a page of list_resources. Items without a plain URI are left out.
func (c catalog) resources(r tool.CatalogRequest, result tool.Result) (a tool.CatalogAnswer, err error) {
	var page struct {
		Items []struct {
			URI, Name, Title, Description, MIMEType string
			Size                                    int64
		}
		Next       string
		NextOffset int
	}
	if err := json.Unmarshal(result.Structured, &page); err != nil {
		return a, errcode.Wrap(errcode.ToolExecutionFailed, err, "the list of resources of the MCP server %q is not as expected", c.module.config.Name)
	}
	for _, item := range page.Items {
		uri := c.clientURI(item.URI)
		if uri == "" {
			continue
		}
		a.Resources = append(a.Resources, tool.Resource{
			URI: uri, Name: visibleLine(item.Name, 256), Title: visibleLine(item.Title, 256),
			Description: visibleLine(item.Description, 1024), MIMEType: visibleLine(item.MIMEType, 128), Size: max(0, item.Size),
		})
	}
	next := pageArgs{Cursor: page.Next}
	if page.NextOffset > 0 {
		var at pageArgs
		_ = json.Unmarshal([]byte(r.Cursor), &at) // Arguments has accepted it, or it is empty
		next = pageArgs{Cursor: at.Cursor, Offset: page.NextOffset}
	}
	if next != (pageArgs{}) {
		text, _ := json.Marshal(next) // a string and a number always marshal
		a.Next = string(text)
	}
	return a, nil
}

// contents returns the contents that read_resource has returned. One that poses as a resource of
// another source has the URI that was read.
func (c catalog) contents(r tool.CatalogRequest, result tool.Result) (a tool.CatalogAnswer, _ error) {
	for _, part := range result.Content {
		if part.Type != tool.ResourceContent {
			continue
		}
		if part.Data == nil && part.Note != "" {
			return a, errcode.New(errcode.ToolExecutionFailed, "the resource of %d bytes was %s", part.Size, part.Note)
		}
		part.URI = cmp.Or(c.clientURI(part.URI), r.URI)
		a.Contents = append(a.Contents, part)
	}
	return a, nil
}

// prompts returns the accepted prompts of the server, by name. A name has the prefix of the
// server's tools.
func (c catalog) prompts() (list []tool.Prompt) {
	for _, p := range c.module.acceptedPins(kindPrompt) {
		var d promptDefinition
		if json.Unmarshal(p.Input, &d) != nil {
			continue
		}
		described := tool.Prompt{Name: *c.module.config.Prefix + d.Name, Title: d.Title, Description: d.Description}
		for _, a := range d.Arguments {
			described.Arguments = append(described.Arguments, tool.PromptArgument(a))
		}
		list = append(list, described)
	}
	return list
}

// promptArguments returns the arguments that get an accepted prompt.
func (c catalog) promptArguments(r tool.CatalogRequest) (json.RawMessage, bool) {
	name, ok := strings.CutPrefix(r.Name, *c.module.config.Prefix)
	if !ok || !c.module.isAccepted(kindPrompt, name) {
		return nil, false
	}
	in := map[string]any{"name": name}
	if len(r.Arguments) > 0 {
		in["arguments"] = r.Arguments
	}
	args, _ := json.Marshal(in) // texts always marshal
	return args, true
}

// messages returns the messages that get_prompt has returned.
func (c catalog) messages(result tool.Result) (a tool.CatalogAnswer, _ error) {
	var got struct {
		Description string
		Messages    []message
	}
	if err := json.Unmarshal(result.Structured, &got); err != nil {
		return a, errcode.Wrap(errcode.ToolExecutionFailed, err, "the prompt that the MCP server %q returned is not as expected", c.module.config.Name)
	}
	a.Description = visibleLine(got.Description, 1024)
	data := result.Content
	for _, m := range got.Messages {
		if len(data) > 0 && m.Content.Type != tool.TextContent && m.Content.Type == data[0].Type && m.Content.URI == data[0].URI {
			m.Content, data = data[0], data[1:]
		}
		if m.Content.URI != "" {
			m.Content.URI = c.clientURI(m.Content.URI)
		}
		if m.Role != "assistant" {
			m.Role = "user"
		}
		a.Messages = append(a.Messages, tool.PromptMessage(m))
	}
	return a, nil
}

// values returns the values that a completion has returned.
func (c catalog) values(result tool.Result) (a tool.CatalogAnswer, _ error) {
	var got sdk.CompletionResultDetails
	if err := json.Unmarshal(result.Structured, &got); err != nil {
		return a, errcode.Wrap(errcode.ToolExecutionFailed, err, "the values that the MCP server %q returned are not as expected", c.module.config.Name)
	}
	for _, v := range got.Values {
		a.Values = append(a.Values, visibleLine(v, maxTemplate))
	}
	a.Total = max(got.Total, len(got.Values))
	return a, nil
}
