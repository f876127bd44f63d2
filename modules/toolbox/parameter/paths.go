package parameter

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// EncodeTexts converts arguments that are all strings to the JSON object that
// ParseArguments accepts. The arguments of MCP prompts are such strings. For a parameter of
// another type than string, the text is the JSON of its value. Text that is not JSON
// becomes a string, which ParseArguments rejects. Unknown names are left out.
func (s *Set) EncodeTexts(texts map[string]string) json.RawMessage {
	out := []byte{'{'}
	for _, p := range s.list {
		text, ok := texts[p.name]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(gjson.AppendJSONString(out, p.name), ':')
		if p.spec.kind != TypeString && json.Valid([]byte(text)) {
			out = append(out, text...)
		} else {
			out = gjson.AppendJSONString(out, text)
		}
	}
	return append(out, '}')
}
