package mcpserver

import (
	"cmp"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
)

// appendContent appends a content as JSON.
func appendContent(b []byte, c tool.Content) []byte {
	if c.Type == tool.TextContent {
		b = append(b, `{"type":"text","text":`...)
		return append(gjson.AppendJSONString(b, c.Text), '}')
	}
	return append(b, marshal(sdkContent(c))...)
}

// sdkContents converts contents to the SDK's type.
func sdkContents(contents []tool.Content) []sdk.Content {
	list := make([]sdk.Content, 0, len(contents))
	for _, c := range contents {
		list = append(list, sdkContent(c))
	}
	return list
}

// sdkContent converts a content to the SDK's type. One that is not shown as what its type says,
// or lacks what its type requires, becomes a text: its description as JSON.
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
