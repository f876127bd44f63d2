package openai_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/providertest"
)

var suite = providertest.Suite{
	New: openai.New, Model: "test-1", Key: secret,
	Answer: `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}`,
	Call: func(name string) string {
		return `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":` + strconv.Quote(name) + `,"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	},
	StreamStart:  piece,
	ToolNames:    "tools.#.function.name",
	Reasoning:    []string{`{"reasoning_content":"x","role":"system"}`, `{"reasoning_details":[{"type":"reasoning.text","text":"x"}]}`, `[]`, `{`, `{"thinking":"hm"}`},
	CheckRequest: checkRequest,
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAnswer(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		f.Fatal("no testdata")
	}
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(section(archive, "response")), true)
	}
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"id":1,"index":-1e99,"function":{"arguments":[1]}}],"reasoning_details":[1,{"text":null},{"type":{},"text":"a","":1}]}}],"usage":{"prompt_tokens":-5,"completion_tokens":1e300}}`), false)
	suite.Fuzz(f)
}

// checkRequest returns why the provider would reject a request, or "".
func checkRequest(body string) string {
	if !gjson.Valid(body) {
		return "not JSON"
	}
	var open []string // ids of calls without a result yet
	seen := map[string]bool{}
	role := ""
	for i, m := range gjson.Get(body, "messages").Array() {
		role = m.Get("role").Str
		if role == "tool" {
			if len(open) == 0 || m.Get("tool_call_id").Str != open[0] {
				return fmt.Sprintf("message %d is not a result of %q", i, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 || !slices.Contains([]string{"user", "assistant", "system"}, role) || role == "system" && i > 0 {
			return fmt.Sprintf("message %d has role %q while %q have no result", i, role, open)
		}
		for _, c := range m.Get("tool_calls").Array() {
			id := c.Get("id").Str
			if id == "" || seen[id] || c.Get("function.arguments").Type != gjson.String {
				return "invalid call: " + c.Raw
			}
			seen[id] = true
			open = append(open, id)
		}
	}
	if role != "user" && role != "tool" || len(open) > 0 {
		return "the last message has role " + role
	}
	return ""
}
