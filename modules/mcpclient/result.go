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

// maxInline is how many bytes of an image, a sound or a file a result holds;
// a larger one is only described.
const maxInline = 1 << 20

// part is one piece of a result that is more than text.
type part struct {
	Type     string `json:"type"` // text, image, audio, resource, resource_link
	Text     string `json:"text,omitempty"`
	URI      string `json:"uri,omitempty"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
	Size     int64  `json:"size,omitempty"` // bytes
	Data     string `json:"data,omitempty"` // base64
	Omitted  bool   `json:"omitted,omitempty"`
}

// resultOf translates what a server answered to a call of the tool name.
//
// Text alone is the Text. An object as structured content is the Structured,
// if the text says the same or nothing. Everything else is
// {"content": parts, "structuredContent": …}.
func resultOf(name string, r *sdk.CallToolResult) tool.Result {
	parts := partsOf(r.Content)
	if r.IsError {
		return failure(name, parts)
	}
	text, plain := textOf(parts)
	if same := structuredOf(r.StructuredContent, text); plain && same != nil {
		return tool.Result{Structured: same}
	}
	if plain && r.StructuredContent == nil {
		return tool.Result{Text: text}
	}
	body := map[string]any{"content": parts}
	if r.StructuredContent != nil {
		body["structuredContent"] = r.StructuredContent
	}
	return structured(name, body)
}

func failure(name string, parts []part) tool.Result {
	text, plain := textOf(parts)
	if text == "" {
		text = "the tool failed and did not say why"
	}
	err := errcode.New(errcode.ToolExecutionFailed, "%s", text)
	if !plain {
		err = err.With("content", parts)
	}
	return tool.Failure(name, err)
}

// structured makes a result of a value.
func structured(name string, v any) tool.Result {
	text, err := json.Marshal(v)
	if err != nil {
		return tool.Failure(name, errcode.New(errcode.ToolExecutionFailed, "the answer is no JSON: %v", err))
	}
	return tool.Result{Structured: text}
}

// structuredOf gives an object that says all that the text says; nil for
// anything else. Where the text is the object, it keeps digits that the decoded
// one has lost.
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
	if strings.TrimSpace(text) != "" && !textSays(object, text) {
		return nil
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	return raw
}

// textSays whether a text is one of the values within v.
func textSays(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return textSays(item, text) })
	case map[string]any:
		for _, item := range v {
			if textSays(item, text) {
				return true
			}
		}
	}
	return false
}

// textOf joins parts that are all text; else it gives those that are, and
// false.
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
		return blob(part{Type: "image", MIMEType: c.MIMEType}, c.Data)
	case *sdk.AudioContent:
		return blob(part{Type: "audio", MIMEType: c.MIMEType}, c.Data)
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
		return blob(p, r.Blob)
	}
	p.Text, p.Size = r.Text, int64(len(r.Text))
	return p
}

// blob puts data into a part, unless it is too large.
func blob(p part, data []byte) part {
	p.Size = int64(len(data))
	if p.Omitted = len(data) > maxInline; !p.Omitted {
		p.Data = base64.StdEncoding.EncodeToString(data)
	}
	return p
}
