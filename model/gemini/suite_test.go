package gemini_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	key  = "AIza-canary-5a1f"
	name = "gemini-3-pro-preview"
)

var suite = providertest.Suite{
	New: gemini.New, Model: name, Key: key,
	Answer: ok,
	Call: func(name string) string {
		return `{"candidates":[{"content":{"parts":[{"functionCall":{"name":` + strconv.Quote(name) + `,"args":{}}}]},"finishReason":"STOP"}]}`
	},
	StreamStart: events(`{"candidates":[{"content":{"parts":[{"text":"Slowly"}]}}]}`),
	ToolNames:   "tools.0.functionDeclarations.#.name",
	Reasoning: []string{
		`{"model":"` + name + `","parts":[{"kind":"raw","raw":{"text":"x","thought":true,"thoughtSignature":"y"}}]}`,
		`{"model":"` + name + `","parts":[{"kind":"call","sign":"z"},{"kind":"text","bytes":5,"sign":"y"}]}`,
		`[]`, `{`, `{"thinking":"hm"}`,
	},
	CheckRequest: checkRequest,
}

func TestSuite(t *testing.T) { suite.Run(t) }

func FuzzAnswer(f *testing.F) {
	for _, stream := range []string{parallel, signed, text + called + finish("SAFETY"), text + called + finish("MAX_TOKENS"), finish("MALFORMED_FUNCTION_CALL")} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(parallelWhole), false)
	f.Add([]byte(exhausted), false)
	f.Add([]byte(`{"promptFeedback":{"blockReason":"OTHER"}}`), false)
	f.Add([]byte("data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":-1e99}}"), true)
	f.Add([]byte(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"cachedContentTokenCount":9}}`), false)
	suite.Fuzz(f)
}

// checkRequest returns why the provider would reject a request, or "".
func checkRequest(body string) string {
	if !gjson.Valid(body) {
		return "not JSON"
	}
	contents := gjson.Get(body, "contents").Array()
	open := []string(nil) // ids and names of calls without a result yet
	seen := map[string]bool{}
	for i, c := range contents {
		if want := []string{"user", "model"}[i%2]; c.Get("role").Str != want {
			return fmt.Sprintf("content %d has role %s, want %s", i, c.Get("role").Str, want)
		}
		var calls, results []string
		parts := c.Get("parts").Array()
		if len(parts) == 0 {
			return "a content without parts"
		}
		for at, p := range parts {
			call, result := p.Get("functionCall"), p.Get("functionResponse")
			switch {
			case call.Exists():
				id := call.Get("id").Str
				if seen[id] || id == "" || !call.Get("args").IsObject() {
					return "invalid call: " + p.Raw
				}
				if len(calls) == 0 && p.Get("thoughtSignature").Str == "" {
					return "a first call without a signature"
				}
				seen[id] = true
				calls = append(calls, id+call.Get("name").Str)
			case result.Exists():
				if results = append(results, result.Get("id").Str+result.Get("name").Str); at != len(results)-1 || !result.Get("response").IsObject() {
					return "invalid result: " + p.Raw
				}
			case p.Get("text").Str == "" && !p.Get("thoughtSignature").Exists():
				return "an empty part"
			}
		}
		if got, want := fmt.Sprintf("%q", results), fmt.Sprintf("%q", open); got != want {
			return fmt.Sprintf("content %d has results %s for calls %s", i, got, want)
		}
		open = calls
	}
	if len(contents)%2 == 0 {
		return "the last content is not the user's"
	}
	return ""
}

// events returns lines of JSON as a stream: each line is one event.
func events(lines string) string {
	var stream strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			stream.WriteString("data: " + line + "\r\n\r\n")
		}
	}
	return stream.String()
}
