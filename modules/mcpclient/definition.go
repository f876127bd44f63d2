package mcpclient

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// What a server may say of its tools.
const (
	maxTools       = 1000
	maxDescription = 8 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
	maxDefinitions = 4 << 20  // bytes, of all tools
)

// PinOf makes of what a server says of a tool what can be accepted and shown.
// The description loses characters that are not seen; anything else that is
// wrong leaves the tool out, and the error says why.
func PinOf(prefix string, t *sdk.Tool) (modules.Pin, error) {
	if t == nil {
		return modules.Pin{}, fmt.Errorf("there is no definition")
	}
	if err := tool.CheckName(prefix + t.Name); err != nil {
		return modules.Pin{}, err
	}
	p := modules.Pin{Tool: t.Name, Description: visible(t.Description)}
	if n := len(p.Description); n > maxDescription {
		return modules.Pin{}, fmt.Errorf("its description has %d bytes, more than %d", n, maxDescription)
	}
	var err error
	if p.Input, err = inputOf(t); err != nil {
		return modules.Pin{}, err
	}
	if t.Annotations != nil {
		hints := *t.Annotations
		hints.Title = oneLine(hints.Title, 256)
		if p.Annotations, err = json.Marshal(hints); err != nil {
			return modules.Pin{}, fmt.Errorf("its annotations: %w", err)
		}
	}
	return p, nil
}

// inputOf gives the input schema of a tool, as the gate will compile it.
func inputOf(t *sdk.Tool) (json.RawMessage, error) {
	input, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if len(input) > maxSchema {
		return nil, fmt.Errorf("its input schema has %d bytes, more than %d", len(input), maxSchema)
	}
	if at := strings.IndexFunc(texts(t.InputSchema), hidden); at >= 0 {
		return nil, fmt.Errorf("its input schema has characters that are not seen, among them %U", firstInvisible(texts(t.InputSchema)))
	}
	if _, err := tool.Compile(input); err != nil {
		return nil, err
	}
	return input, nil
}

// texts joins all strings of a decoded document, keys too.
func texts(v any) string {
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

func firstInvisible(text string) rune {
	for _, r := range text {
		if hidden(r) {
			return r
		}
	}
	return 0
}

// effectOf reads the hints of a server that the operator trusts; of any other
// they mean nothing. What is not said is the worst, as the protocol wants.
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
