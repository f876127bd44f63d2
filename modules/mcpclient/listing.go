package mcpclient

import (
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/tool"
)

// The limits of what a server says about a tool to clients.
const (
	maxTitle = 256      // bytes
	maxIcons = 8        // of one tool
	maxMeta  = 16 << 10 // bytes, of the icons and of _meta
)

// listingOf returns what clients are told of a tool. A part that they could misread is left out. It
// exceeds a limit, contains invisible characters, or does not follow the protocol.
func listingOf(t *sdk.Tool) tool.Listing {
	l := tool.Listing{Title: t.Title}
	if l.Title == "" && t.Annotations != nil {
		l.Title = t.Annotations.Title
	}
	l.Title = visibleLine(l.Title, maxTitle)
	if output, ok := visibleJSON(t.OutputSchema, maxSchema); ok && isObjectSchema(output) {
		l.Output = output
	}
	if icons, ok := visibleJSON(t.Icons, maxMeta); ok && len(t.Icons) > 0 && validIcons(t.Icons) {
		l.Icons = icons
	}
	if meta, ok := visibleJSON(t.Meta, maxMeta); ok && len(t.Meta) > 0 {
		l.Meta = meta
	}
	return l
}

// visibleJSON returns v as JSON. It reports false for more than limit bytes, and for invisible
// characters.
func visibleJSON(v any, limit int) (json.RawMessage, bool) {
	text, err := json.Marshal(v)
	if err != nil || len(text) > limit {
		return nil, false
	}
	var decoded any
	if json.Unmarshal(text, &decoded) != nil {
		return nil, false
	}
	_, invisible := firstInvisible(allStrings(decoded))
	return text, !invisible
}

// isObjectSchema reports whether a document is a valid JSON schema of objects.
func isObjectSchema(schema json.RawMessage) bool {
	var root struct{ Type string }
	if json.Unmarshal(schema, &root) != nil || root.Type != "object" {
		return false
	}
	_, err := argschema.Compile(schema)
	return err == nil
}

// validIcons reports whether clients can show the icons: pictures in a data URL, or addresses
// of https.
func validIcons(icons []sdk.Icon) bool {
	for _, icon := range icons {
		if !strings.HasPrefix(icon.Source, "https://") && !strings.HasPrefix(icon.Source, "data:image/") {
			return false
		}
	}
	return len(icons) <= maxIcons
}
