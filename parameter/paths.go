package parameter

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Texts gives arguments that came as texts alone, as those of prompts do over
// MCP, as the object that Given reads. The text of a parameter that is no string
// is its value as JSON; one that is no JSON stays a text, which Given refuses.
// Names that are no parameters are left out.
func (s *Set) Texts(texts map[string]string) json.RawMessage {
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
		if p.form.kind != TypeString && json.Valid([]byte(text)) {
			out = append(out, text...)
		} else {
			out = gjson.AppendJSONString(out, text)
		}
	}
	return append(out, '}')
}
