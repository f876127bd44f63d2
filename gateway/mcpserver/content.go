package mcpserver

import (
	"cmp"
	"encoding/base64"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
)

// appendContent appends a content as JSON. It does not copy the data.
func appendContent(b []byte, c tool.Content) []byte {
	switch shown := sdkContent(c).(type) {
	case *sdk.TextContent:
		b = append(b, `{"type":"text","text":`...)
		return append(gjson.AppendJSONString(b, shown.Text), '}')
	case *sdk.ImageContent:
		return appendData(append(b, `{"type":"image","mimeType":`...), shown.MIMEType, shown.Data)
	case *sdk.AudioContent:
		return appendData(append(b, `{"type":"audio","mimeType":`...), shown.MIMEType, shown.Data)
	default:
		return append(b, marshal(shown)...)
	}
}

// appendData appends the media type and the data of a content, and ends it.
func appendData(b []byte, mimeType string, data []byte) []byte {
	b = append(gjson.AppendJSONString(b, mimeType), `,"data":"`...)
	return append(base64.StdEncoding.AppendEncode(b, data), `"}`...)
}

// sdkContents converts contents to the SDK's type.
func sdkContents(contents []tool.Content) []sdk.Content {
	list := make([]sdk.Content, 0, len(contents))
	for _, c := range contents {
		list = append(list, sdkContent(c))
	}
	return list
}

// sdkContent converts a content to the SDK's type. A content that cannot be shown as its type says,
// or that lacks a field of its type, becomes a text. The text is its description as JSON.
func sdkContent(c tool.Content) sdk.Content {
	switch {
	case c.Type == tool.TextContent:
		return &sdk.TextContent{Text: c.Text}
	case c.Type == tool.LinkContent && c.URI != "":
		return resourceLink(c)
	case c.Note != "": // its data is missing, or something else
	case c.Type == tool.ImageContent && c.IsPicture():
		return &sdk.ImageContent{MIMEType: c.MIMEType, Data: c.Data}
	case c.Type == tool.AudioContent && len(c.Data) > 0:
		return &sdk.AudioContent{MIMEType: c.MIMEType, Data: c.Data}
	case c.Type == tool.ResourceContent && c.URI != "":
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: c.URI, MIMEType: c.MIMEType, Text: c.Text, Blob: c.Data}}
	}
	return &sdk.TextContent{Text: string(marshal(c))}
}

// resourceLink converts a link.
func resourceLink(c tool.Content) *sdk.ResourceLink {
	link := &sdk.ResourceLink{
		URI: c.URI, Name: cmp.Or(c.Name, c.URI), Title: c.Title, Description: c.Description, MIMEType: c.MIMEType,
	}
	if c.Size > 0 {
		link.Size = &c.Size
	}
	return link
}
