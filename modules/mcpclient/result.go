package mcpclient

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// resultOf converts a server's result of a call of the tool name.
//
// Content that is only text becomes Text. Structured content that is an object becomes
// Structured, if the text adds nothing to it. Everything else becomes Content, with
// Structured.
func resultOf(name string, r *sdk.CallToolResult) tool.Result {
	contents := contentsOf(r.Content)
	if r.IsError {
		return failureResult(name, contents)
	}
	text, plain := textOf(contents)
	if object := structuredOf(r.StructuredContent, text); plain && object != nil {
		return tool.Result{Structured: textutil.RemoveInvisibleJSON(object)}
	}
	if r.StructuredContent == nil {
		if plain {
			return tool.Result{Text: text}
		}
		return tool.Result{Content: contents}
	}
	result := structuredResult(name, r.StructuredContent)
	if !result.IsError {
		result.Content = contents
	}
	return result
}

// failureResult returns the result of a call that failed at the server.
func failureResult(name string, contents []tool.Content) tool.Result {
	text, _ := textOf(contents)
	result := tool.Failure(name, errcode.New(errcode.ToolExecutionFailed, "%s", cmp.Or(text, "the tool failed without a message")))
	result.Content = slices.DeleteFunc(contents, func(c tool.Content) bool { return c.Type == tool.TextContent })
	return result
}

// structuredResult returns a result with v as JSON.
func structuredResult(name string, v any) tool.Result {
	text, err := json.Marshal(v)
	if err != nil {
		return tool.Failure(name, errcode.New(errcode.ToolExecutionFailed, "encode the answer as JSON: %v", err))
	}
	return tool.Result{Structured: textutil.RemoveInvisibleJSON(text)}
}

// structuredOf returns v as JSON if it is an object to which the text adds nothing, else
// nil. If the text is the object as JSON, structuredOf returns the text: it has the digits
// of numbers that decoding has lost.
func structuredOf(v any, text string) json.RawMessage {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var repeated any
	var compact bytes.Buffer
	if json.Unmarshal([]byte(text), &repeated) == nil && reflect.DeepEqual(repeated, v) && json.Compact(&compact, []byte(text)) == nil {
		return compact.Bytes()
	}
	if strings.TrimSpace(text) != "" && !containsText(object, text) {
		return nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return raw
}

// containsText reports whether text is one of the strings in v.
func containsText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return containsText(item, text) })
	case map[string]any:
		for _, item := range v {
			if containsText(item, text) {
				return true
			}
		}
	}
	return false
}

// textOf joins the texts, and reports whether there is nothing else.
func textOf(contents []tool.Content) (text string, plain bool) {
	plain = true
	var lines []string
	for _, c := range contents {
		if c.Type != tool.TextContent {
			plain = false
			continue
		}
		lines = append(lines, c.Text)
	}
	return strings.Join(lines, "\n"), plain
}

// contentsOf converts the contents of a result.
func contentsOf(list []sdk.Content) []tool.Content {
	contents := make([]tool.Content, 0, len(list))
	for _, c := range list {
		contents = append(contents, contentOf(c))
	}
	return contents
}

// contentOf converts one content. The gate checks what it says about itself.
func contentOf(c sdk.Content) tool.Content {
	switch c := c.(type) {
	case *sdk.TextContent:
		return tool.Content{Type: tool.TextContent, Text: textutil.RemoveInvisible(c.Text)}
	case *sdk.ImageContent:
		return tool.Content{Type: tool.ImageContent, MIMEType: c.MIMEType, Data: c.Data}
	case *sdk.AudioContent:
		return tool.Content{Type: tool.AudioContent, MIMEType: c.MIMEType, Data: c.Data}
	case *sdk.EmbeddedResource:
		return resourceOf(c.Resource)
	case *sdk.ResourceLink:
		link := tool.Content{Type: tool.LinkContent, URI: c.URI, Name: c.Name, Title: c.Title, Description: c.Description, MIMEType: c.MIMEType}
		if c.Size != nil {
			link.Size = *c.Size
		}
		return link
	}
	return tool.Content{Type: "unknown"}
}

// resourceOf converts the contents of a resource.
func resourceOf(r *sdk.ResourceContents) tool.Content {
	if r == nil {
		return tool.Content{Type: tool.ResourceContent}
	}
	return tool.Content{
		Type: tool.ResourceContent, URI: r.URI, MIMEType: r.MIMEType, Text: textutil.RemoveInvisible(r.Text), Data: r.Blob,
	}
}
