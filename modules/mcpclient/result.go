package mcpclient

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// maxInline is how many bytes of an image, a sound or a file a result contains at most. Of a
// larger one it contains the description only.
const maxInline = 1 << 20

// part is one content block of a result.
type part struct {
	Type     string `json:"type"` // text, image, audio, resource, resource_link
	Text     string `json:"text,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	Size     int64  `json:"size,omitempty"`    // bytes
	Data     string `json:"data,omitempty"`    // base64
	Omitted  bool   `json:"omitted,omitempty"` // the content was left out; then the result is truncated
}

// resultOf converts a server's result of a call of the tool name.
//
// Content that is only text becomes Text. Structured content that is an object becomes
// Structured, if the text adds nothing to it. Everything else becomes Structured with
// {"content": parts, "structuredContent": …, "truncated": whether a part was left out}.
func resultOf(name string, r *sdk.CallToolResult) tool.Result {
	parts := partsOf(r.Content)
	if r.IsError {
		return failureResult(name, parts)
	}
	text, plain := textOf(parts)
	if object := structuredOf(r.StructuredContent, text); plain && object != nil {
		return tool.Result{Structured: object}
	}
	if plain && r.StructuredContent == nil {
		return tool.Result{Text: text}
	}
	body := map[string]any{"content": parts}
	if r.StructuredContent != nil {
		body["structuredContent"] = r.StructuredContent
	}
	return partsResult(name, body, parts)
}

// partsResult returns a result with body as JSON, marked as truncated if one of the
// parts in it was left out.
func partsResult(name string, body map[string]any, parts []part) tool.Result {
	if anyOmitted(parts) {
		body["truncated"] = true
	}
	return structuredResult(name, body)
}

// anyOmitted reports whether the content of a part was left out.
func anyOmitted(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.Omitted })
}

// failureResult returns the result of a call that failed at the server.
func failureResult(name string, parts []part) tool.Result {
	text, plain := textOf(parts)
	if text == "" {
		text = "the tool failed without a message"
	}
	err := errcode.New(errcode.ToolExecutionFailed, "%s", text)
	if !plain {
		err = err.With("content", parts)
	}
	if anyOmitted(parts) {
		err = err.With("truncated", true)
	}
	return tool.Failure(name, err)
}

// structuredResult returns a result with v as JSON.
func structuredResult(name string, v any) tool.Result {
	text, err := json.Marshal(v)
	if err != nil {
		return tool.Failure(name, errcode.New(errcode.ToolExecutionFailed, "encode the answer as JSON: %v", err))
	}
	return tool.Result{Structured: text}
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

// textOf joins the text parts, and reports whether there are no others.
func textOf(parts []part) (text string, plain bool) {
	plain = true
	var lines []string
	for _, p := range parts {
		if p.Type != "text" {
			plain = false
			continue
		}
		lines = append(lines, p.Text)
	}
	return strings.Join(lines, "\n"), plain
}

func partsOf(content []sdk.Content) []part {
	parts := make([]part, 0, len(content))
	for _, c := range content {
		parts = append(parts, partOf(c))
	}
	return parts
}

func partOf(c sdk.Content) part {
	switch c := c.(type) {
	case *sdk.TextContent:
		return part{Type: "text", Text: c.Text}
	case *sdk.ImageContent:
		return withData(part{Type: "image", MIMEType: c.MIMEType}, c.Data)
	case *sdk.AudioContent:
		return withData(part{Type: "audio", MIMEType: c.MIMEType}, c.Data)
	case *sdk.EmbeddedResource:
		return resourcePart(c.Resource)
	case *sdk.ResourceLink:
		p := part{Type: "resource_link", URI: c.URI, Name: c.Name, MIMEType: c.MIMEType}
		if c.Size != nil {
			p.Size = *c.Size
		}
		return p
	}
	return part{Type: "unknown", Omitted: true}
}

func resourcePart(r *sdk.ResourceContents) part {
	if r == nil {
		return part{Type: "resource", Omitted: true}
	}
	p := part{Type: "resource", URI: r.URI, MIMEType: r.MIMEType}
	if r.Blob != nil {
		return withData(p, r.Blob)
	}
	p.Text, p.Size = r.Text, int64(len(r.Text))
	return p
}

// withData adds data to a part unless it is larger than maxInline.
func withData(p part, data []byte) part {
	p.Size = int64(len(data))
	if p.Omitted = len(data) > maxInline; !p.Omitted {
		p.Data = base64.StdEncoding.EncodeToString(data)
	}
	return p
}
