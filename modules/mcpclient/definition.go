package mcpclient

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// The limits of a server's tool definitions.
const (
	maxTools       = 1000
	maxDescription = 8 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
	maxDefinitions = 4 << 20  // bytes, of all tools
)

// PinOf converts a server's tool definition to a pin that can be accepted and shown. It
// removes invisible characters from the description. Any other defect is an error, and the
// tool is left out. prefix is put before the tool's name.
func PinOf(prefix string, t *sdk.Tool) (modules.ToolPin, error) {
	if t == nil {
		return modules.ToolPin{}, fmt.Errorf("the definition is null")
	}
	if err := tool.CheckName(prefix + t.Name); err != nil {
		return modules.ToolPin{}, err
	}
	p := modules.ToolPin{Tool: t.Name, Description: textutil.RemoveInvisible(t.Description)}
	if n := len(p.Description); n > maxDescription {
		return modules.ToolPin{}, fmt.Errorf("its description has %d bytes, more than %d", n, maxDescription)
	}
	var err error
	if p.Input, err = inputSchema(t); err != nil {
		return modules.ToolPin{}, err
	}
	p.Listing = listingOf(t)
	if t.Annotations != nil {
		hints := *t.Annotations
		hints.Title = visibleLine(hints.Title, 256)
		if p.Annotations, err = json.Marshal(hints); err != nil {
			return modules.ToolPin{}, fmt.Errorf("its annotations: %w", err)
		}
	}
	return p, nil
}

// inputSchema returns the input schema of a tool if the gate can compile it.
func inputSchema(t *sdk.Tool) (json.RawMessage, error) {
	input, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if len(input) > maxSchema {
		return nil, fmt.Errorf("its input schema has %d bytes, more than %d", len(input), maxSchema)
	}
	if r, ok := firstInvisible(allStrings(t.InputSchema)); ok {
		return nil, fmt.Errorf("its input schema contains invisible characters, such as %U", r)
	}
	if _, err := argschema.Compile(input); err != nil {
		return nil, err
	}
	return input, nil
}

// allStrings joins all strings and keys of a decoded document, without carriage returns,
// which are not invisible characters in line breaks.
func allStrings(v any) string {
	var b strings.Builder
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			b.WriteString(v + "\n")
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, item := range v {
				b.WriteString(key + "\n")
				walk(item)
			}
		}
	}
	walk(v)
	return strings.ReplaceAll(b.String(), "\r", "")
}

// firstInvisible returns the first invisible character of text, if there is one.
func firstInvisible(text string) (rune, bool) {
	for _, r := range text {
		if textutil.IsInvisible(r) {
			return r, true
		}
	}
	return 0, false
}

// effectOf returns the effect that the annotations of a trusted server declare. A missing
// hint means Mutating, the protocol's default, and so do the hints of any other server.
func effectOf(trusted bool, annotations json.RawMessage) tool.Effect {
	var hints sdk.ToolAnnotations
	if !trusted || len(annotations) == 0 || json.Unmarshal(annotations, &hints) != nil {
		return tool.Mutating
	}
	switch {
	case hints.ReadOnlyHint:
		return tool.ReadOnly
	case hints.IdempotentHint:
		return tool.Idempotent
	}
	return tool.Mutating
}
