package responses_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	key  = "sk-proj-canary-5a1f"
	name = "gpt-5-mini"
)

var suite = providertest.Suite{
	New: responses.New, Model: name, Key: key,
	Answer: ok,
	Call: func(name string) string {
		return `{"status":"completed","output":[{"type":"function_call","id":"fc_1","call_id":"c","name":` + strconv.Quote(name) + `,"arguments":"{}"}]}`
	},
	StreamStart: events(`{"type":"response.output_text.delta","output_index":0,"delta":"Slowly"}`),
	ToolNames:   "tools.#.name",
	Reasoning: []string{
		`{"model":"` + name + `","parts":[{"kind":"raw","raw":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}},{"kind":"text","bytes":5}]}`,
		`{"model":"` + name + `","parts":[{"kind":"raw","raw":{"type":"message"}},{"kind":"call"},{"kind":"text","bytes":5,"sign":"commentary"}]}`,
		`[]`, `{`,
	},
	CheckRequest: checkRequest,
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAnswer(f *testing.F) {
	for _, stream := range []string{thoughtful, refused, text + incomplete("max_output_tokens"), text + incomplete("content_filter"), text + failed} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(thoughtfulWhole), false)
	f.Add([]byte(`{"error":{"code":"server_error","message":"m"}}`), false)
	f.Add([]byte("data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":-1e99,\"input_tokens_details\":{\"cached_tokens\":9}}}}"), true)
	f.Add([]byte("data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\",\"content\":[1],\"encrypted_content\":\"x\"}}\n\ndata: [DONE]\n\n"), true)
	suite.Fuzz(f)
}

// checkRequest returns why the provider would reject a request, or "".
func checkRequest(body string) string {
	if !gjson.Valid(body) {
		return "not JSON"
	}
	var open []string // ids of calls without a result yet
	seen := map[string]bool{}
	last := ""
	for i, it := range gjson.Get(body, "input").Array() {
		kind, id := it.Get("type").Str, it.Get("call_id").Str
		if kind == "message" {
			kind = it.Get("role").Str
		}
		switch {
		case !slices.Contains([]string{"user", "assistant", "reasoning", "function_call", "function_call_output"}, kind):
			return fmt.Sprintf("item %d is a %q", i, kind)
		case last == "reasoning" && kind != "assistant" && kind != "function_call" && kind != "reasoning":
			return "reasoning without an item after it"
		case kind == "reasoning" && (!it.Get("summary").IsArray() || !it.Get("encrypted_content").Exists() && !it.Get("content").Exists()):
			return "invalid reasoning: " + it.Raw
		case kind == "function_call" && (id == "" || len(id) > 64 || seen[id] || !gjson.Parse(it.Get("arguments").Str).IsObject()):
			return "invalid call: " + it.Raw
		case kind == "function_call":
			open, seen[id] = append(open, id), true
		case kind == "function_call_output" && (len(open) == 0 || id != open[0]):
			return fmt.Sprintf("item %d is not a result of %q", i, open)
		case kind == "function_call_output":
			open = open[1:]
		case kind == "user" && len(open) > 0:
			return fmt.Sprintf("%q have no result", open)
		}
		last = kind
	}
	if len(open) > 0 || last != "user" && last != "function_call_output" {
		return "the last item is a " + last
	}
	return ""
}

// events returns lines of JSON as a stream: each line is one event, named by its
// type.
func events(lines string) string {
	var stream strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var event struct{ Type string }
		json.Unmarshal([]byte(line), &event)
		stream.WriteString("event: " + event.Type + "\ndata: " + line + "\n\n")
	}
	return stream.String()
}
