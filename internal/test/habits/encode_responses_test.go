package habits_test

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// responses returns a reply of OpenAI's Responses API. Each call is an item of its own.
func (r reply) responses(stream bool) string {
	end := `"status":"completed"`
	switch r.stop {
	case model.Length:
		end = `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`
	case model.ContentFilter:
		end = `"status":"incomplete","incomplete_details":{"reason":"content_filter"}`
	}
	if r.usage != "" {
		end += fmt.Sprintf(`,"usage":{"input_tokens":%[1]s,"output_tokens":%[1]s}`, r.usage)
	}
	part, field := "output_text", "text"
	if r.stop == model.Refusal {
		part, field = "refusal", "refusal"
	}
	if !stream {
		items := []string{fmt.Sprintf(`{"type":"message","content":[{"type":%q,%q:%s}]}`, part, field, quote(r.text))}
		for _, c := range r.calls {
			items = append(items, fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, c.id, c.name, quote(c.args)))
		}
		return `{"model":"test-1","output":[` + strings.Join(items, ",") + `],` + end + `}`
	}
	list := []string{fmt.Sprintf(`{"type":"response.%s.delta","output_index":0,"delta":%s}`, part, quote(r.text))}
	for i, c := range r.calls {
		list = append(list, fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%q,"name":%q,"arguments":""}}`, i+1, c.id, c.name))
	}
	r.argumentParts(func(i int, part string) {
		list = append(list, fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%s}`, i+1, quote(part)))
	})
	return r.events(append(list, `{"type":"response.completed","response":{"model":"$MODEL",`+end+`}}`)...)
}
