package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	key  = "sk-ant-canary-5a1f"
	name = "claude-sonnet-4-5"
)

var suite = providertest.Suite{
	New: anthropic.New, Model: name, Key: key,
	Answer: ok,
	Call: func(name string) string {
		return `{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"t","name":` + strconv.Quote(name) + `,"input":{}}]}`
	},
	StreamStart: events(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Slowly"}}`),
	ToolNames: "tools.#.name",
	Reasoning: []string{
		`{"model":"` + name + `","blocks":[{"type":"thinking","thinking":"x","signature":"y"}]}`,
		`{"model":"` + name + `","blocks":[{"type":"tool_use"},{"type":"thinking","thinking":"x"},{"type":"text","bytes":5}]}`,
		`[]`, `{`, `{"thinking":"hm"}`,
	},
	CheckRequest: checkRequest,
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAnswer(f *testing.F) {
	for _, stream := range []string{parallel, thoughtful, text + called + stop("refusal"), text + called + stop("max_tokens"), text + stop("model_context_window_exceeded")} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(parallelWhole), false)
	f.Add([]byte(`{"stop_reason":"tool_use","content":`+inOrder+`}`), false)
	f.Add([]byte("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"), true)
	f.Add([]byte("data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":-1e99}}\ndata:\n\ndata: {\"type\":\"message_stop\"}"), true)
	suite.Fuzz(f)
}

// checkRequest returns why the provider would reject a request, or "".
func checkRequest(body string) string {
	if !gjson.Valid(body) {
		return "not JSON"
	}
	messages := gjson.Get(body, "messages").Array()
	open := []string(nil) // ids of calls without a result yet
	seen := map[string]bool{}
	for i, m := range messages {
		if want := []string{"user", "assistant"}[i%2]; m.Get("role").Str != want {
			return fmt.Sprintf("message %d has role %s, want %s", i, m.Get("role").Str, want)
		}
		var calls, results []string
		blocks := m.Get("content").Array()
		if len(blocks) == 0 {
			return "a message without content"
		}
		for at, b := range blocks {
			switch b.Get("type").Str {
			case "text":
				if strings.TrimSpace(b.Get("text").Str) == "" {
					return "a blank text"
				}
			case "tool_use":
				id := b.Get("id").Str
				if calls = append(calls, id); seen[id] || !isValidID(id) || !b.Get("input").IsObject() {
					return "invalid call: " + b.Raw
				}
				seen[id] = true
			case "tool_result":
				if results = append(results, b.Get("tool_use_id").Str); at != len(results)-1 {
					return "a result after another block"
				}
			}
		}
		if got, want := fmt.Sprintf("%q", results), fmt.Sprintf("%q", open); got != want {
			return fmt.Sprintf("message %d has results %s for calls %s", i, got, want)
		}
		open = calls
	}
	if len(messages)%2 == 0 {
		return "the last message is not the user's"
	}
	if n := strings.Count(body, `"cache_control"`); n < 1 || n > 4 {
		return strconv.Itoa(n) + " cache marks"
	}
	if len(seen) > 0 && !gjson.Get(body, "tools.0").Exists() {
		return "calls without tools"
	}
	return ""
}

func isValidID(id string) bool {
	return id != "" && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
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
