package bedrock_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/bedrock"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

const (
	key  = "bedrock-canary-5a1f"
	name = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
)

var suite = providertest.Suite{
	New: bedrock.New, Model: name, Key: key,
	Answer: ok,
	Call: func(name string) string {
		return `{"stopReason":"tool_use","output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":` + strconv.Quote(name) + `,"input":{}}}]}}}`
	},
	StreamStart: events(`messageStart {"role":"assistant"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"Slowly"}}`),
	ToolNames: "toolConfig.tools.#.toolSpec.name",
	Reasoning: []string{
		`{"model":"` + name + `","parts":[{"kind":"raw","raw":{"reasoningContent":{"reasoningText":{"text":"x","signature":"y"}}}},{"kind":"text","bytes":5}]}`,
		`{"model":"` + name + `","parts":[{"kind":"call"},{"kind":"raw","raw":{"reasoningContent":{"redactedContent":"eA=="}}},{"kind":"text","bytes":5}]}`,
		`[]`, `{`,
	},
	CheckRequest: checkRequest,
}

func TestSuite(t *testing.T) { suite.Run(t) }

// signedSuite is suite for requests that are signed with the key as a secret.
func signedSuite() providertest.Suite {
	s := suite
	s.New = func(c provider.Config) *provider.Model {
		c.Region, c.Credentials, c.Key = "eu-central-1", provider.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretKey: c.Key, SessionToken: "session-" + c.Key}, ""
		return bedrock.New(c)
	}
	return s
}

func TestSuite_WithSignatures(t *testing.T) { signedSuite().Run(t) }

func FuzzAnswer(f *testing.F) {
	for _, stream := range []string{thoughtful, text + stop("guardrail_intervened"), text + called + stop("max_tokens"), stop("model_context_window_exceeded")} {
		f.Add([]byte(events(stream)), true)
	}
	f.Add([]byte(thoughtfulWhole), false)
	f.Add([]byte(exception("throttlingException", `{"message":"m"}`)), true)
	f.Add([]byte(events(`metadata {"usage":{"inputTokens":-1e99,"cacheReadInputTokens":9}}`)), true)
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
			call, result := b.Get("toolUse"), b.Get("toolResult")
			switch {
			case b.Get("text").Exists() && strings.TrimSpace(b.Get("text").Str) == "":
				return "a blank text"
			case call.Exists():
				id := call.Get("toolUseId").Str
				if calls = append(calls, id); seen[id] || !isValidID(id) || !call.Get("input").IsObject() {
					return "invalid call: " + b.Raw
				}
				seen[id] = true
			case result.Exists():
				if results = append(results, result.Get("toolUseId").Str); at != len(results)-1 {
					return "a result after another block"
				}
			case len(b.Map()) != 1:
				return "not one field: " + b.Raw
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
	if n := strings.Count(body, `"cachePoint"`); n < 1 || n > 4 {
		return strconv.Itoa(n) + " cache points"
	}
	if len(seen) > 0 && !gjson.Get(body, "toolConfig.tools.0").Exists() {
		return "calls without tools"
	}
	return ""
}

func isValidID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// events returns lines as a stream: each is the type of an event and its payload.
func events(lines string) string {
	var stream strings.Builder
	for line := range strings.Lines(lines) {
		if kind, payload, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			stream.WriteString(message(payload, ":event-type", kind, ":content-type", "application/json", ":message-type", "event"))
		}
	}
	return stream.String()
}

// exception returns a message that ends a stream with an error.
func exception(kind, payload string) string {
	return message(payload, ":exception-type", kind, ":content-type", "application/json", ":message-type", "exception")
}

// message returns a message with headers, which are names and values.
func message(payload string, headers ...string) string {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(err)
	}
	return b.String()
}
