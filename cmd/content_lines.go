package cmd

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
)

// contentLines describes a result that has pictures, sounds, resources or links, each content on a
// line of its own. It returns nil for any other result.
func contentLines(result []byte) (lines []string) {
	contents := gjson.GetBytes(result, "content")
	if !contents.IsArray() {
		return nil
	}
	for _, c := range contents.Array() {
		line, ok := contentLine(c)
		if !ok {
			return nil
		}
		lines = append(lines, line)
	}
	if structured := gjson.GetBytes(result, "structuredContent"); structured.Exists() {
		lines = append(lines, structured.Raw)
	}
	return lines
}

// contentLine describes one content: its text, or its type, media type, size, place and note.
func contentLine(c gjson.Result) (line string, ok bool) {
	switch kind := tool.ContentType(c.Get("type").Str); kind {
	case tool.TextContent:
		return c.Get("text").Str, true
	case tool.ImageContent, tool.AudioContent, tool.ResourceContent, tool.LinkContent:
		words := []string{string(kind)}
		for _, field := range []string{"mimeType", "name", "uri", "artifactRef", "note", "text"} {
			if value := c.Get(field).Str; value != "" {
				words = append(words, value)
			}
		}
		if size := c.Get("size").Int(); size > 0 {
			words = append(words, fmt.Sprintf("%d bytes", size))
		}
		return strings.Join(words, ", "), true
	}
	return "", false
}
