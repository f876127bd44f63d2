package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/provider"
)

// Each case is a Config that the provider rejects, and the field and words of the error; an
// accepted one has no field.
func TestLimits_CheckConfig(t *testing.T) {
	third, one, two, low, seed := 1.0/3, 1.0, 2.0, 0.5, 7
	options := func(o provider.Options) provider.Config { return provider.Config{Options: o} }
	thinks := func(level string, tokens int) provider.Options {
		return provider.Options{Thinking: provider.Thinking{Level: level, Tokens: tokens}}
	}
	body := func(text string) provider.Config { return options(provider.Options{Body: json.RawMessage(text)}) }
	header := func(name, value string) provider.Config {
		return provider.Config{Header: map[string]string{name: value}}
	}
	for _, c := range []struct {
		kind, model string
		config      provider.Config
		want        string
	}{
		{"openai", "", options(provider.Options{TopP: &third, Seed: &seed, ToolChoice: "required", ParallelTools: new(bool)}), ""},
		{"anthropic", "", options(provider.Options{TopP: &third, ToolChoice: "required", ParallelTools: new(bool)}), ""},
		{"gemini", "", options(provider.Options{TopP: &third, Seed: &seed, ToolChoice: "required"}), ""},
		{"anthropic", "", options(provider.Options{Seed: &seed}), "seed: is not in the API of this provider"},
		{"gemini", "", options(provider.Options{ParallelTools: new(bool)}), "parallelToolCalls: is not in the API of this provider"},

		{"openai-responses", "", options(provider.Options{Seed: &seed}), "seed: is not in the API of this provider"},

		{"openai", "", provider.Config{Temperature: &two}, ""},
		{"anthropic", "", provider.Config{Temperature: &two}, "temperature: must be a number from 0 to 1"},

		{"openai", "", header("X-Title", "a"), ""},
		{"openai", "", header("X-Title", "a\tb"), ""},
		{"openai", "", header("X-Title", "a\nHost: b"), "headers.X-Title: has a line break or another control character"},
		{"gemini", "", header("X-Title", "a\x00"), "headers.X-Title: has a line break or another control character"},
		{"openai", "", header("host", "b"), "headers.host: is set with every request"},
		{"openai", "", header("CONTENT-LENGTH", "1"), "headers.CONTENT-LENGTH: is set with every request"},
		{"openai", "", header("Transfer-Encoding", "chunked"), "headers.Transfer-Encoding: is set with every request"},
		{"openai", "", header("Authorization", "Bearer x"), "headers.Authorization: is set with every request"},
		{"anthropic", "", header("x-api-key", "x"), "headers.x-api-key: is set with every request"},
		{"anthropic", "", header("anthropic-version", "x"), "headers.anthropic-version: is set with every request"},
		{"gemini", "", header("x-goog-api-key", "x"), "headers.x-goog-api-key: is set with every request"},

		{"openai", "", body(`{"service_tier": "flex", "reasoning": {"max_tokens": 5}}`), ""},
		{"openai", "", body(`{"messages": []}`), "body.messages: is set with every request"},
		{"openai", "", body(`{"Messages": []}`), "body.Messages: is set with every request"},
		{"openai", "", body(`{"stream": true}`), "body.stream: is set with every request"},
		{"openai", "", body(`{"maxTokens": 5}`), "body.maxTokens: is set with every request"},
		{"openai", "", body(`[]`), "body: is not a JSON object"},
		{"openai", "", body(`{"reasoning_effort": "xhigh"}`), ""},
		{"openai", "", options(provider.Options{Thinking: provider.Thinking{Level: "low"}, Body: json.RawMessage(`{"reasoning_effort": "xhigh"}`)}), "body.reasoning_effort: is set with every request"},
		{"anthropic", "", body(`{"output_config": {"effort": "max"}}`), ""},
		{"openai-responses", "", body(`{"service_tier": "flex"}`), ""},
		{"openai-responses", "", body(`{"store": true}`), "body.store: is set with every request"},
		{"openai-responses", "", body(`{"previousResponseID": "x"}`), "body.previousResponseID: is set with every request"},
		{"anthropic", "", body(`{"system": "x"}`), "body.system: is set with every request"},
		{"gemini", "", body(`{"generation_config": {}}`), "body.generation_config: is set with every request"},
		{"gemini", "", body(`{"safetySettings": []}`), ""},

		{"bedrock", "", body(`{"additionalModelRequestFields": {}}`), ""},
		{"bedrock", "", body(`{"toolConfig": {}}`), "body.toolConfig: is set with every request"},
		{"bedrock", "", header("X-Amz-Date", "1"), "headers.X-Amz-Date: is set with every request"},
		{"bedrock", "", options(provider.Options{ToolChoice: "none"}), "toolChoice: cannot be none with this provider"},
		{"bedrock", "", options(thinks("low", 0)), "thinking: is not in the API of this provider"},

		{"openai", "", provider.Config{APIVersion: "2024-10-21", BaseURL: "https://x.openai.azure.com"}, ""},
		{"openai", "", provider.Config{APIVersion: "2024-10-21"}, "apiVersion: requires baseURL"},
		{"openai", "", provider.Config{APIVersion: "2024-10-21", BaseURL: "https://x.openai.azure.com/openai/v1"}, "baseURL: must be the endpoint of the resource only, with apiVersion"},
		{"openai", "", header("api-key", "x"), "headers.api-key: is set with every request"},
		{"gemini", "", provider.Config{APIVersion: "v1"}, "apiVersion: is not in the API of this provider"},

		{"openai", "gpt-5.1", options(thinks("none", 0)), ""},
		{"openai", "gpt-5-mini", options(thinks("none", 0)), "thinking: cannot be none: this model always thinks"},
		{"openai", "o3", options(thinks("none", 0)), "thinking: cannot be none: this model always thinks"},
		{"openai", "openai/gpt-5", options(thinks("none", 0)), ""},
		{"openai", "gpt-5", options(thinks("low", 0)), ""},
		{"openai", "gpt-5", options(thinks("", 2000)), "thinking: cannot be a number of tokens with this provider"},
		{"openai-responses", "gpt-5", options(thinks("low", 0)), ""},
		{"openai-responses", "gpt-5", options(thinks("", 2000)), "thinking: cannot be a number of tokens with this provider"},
		{"anthropic", "claude-sonnet-4-5", options(thinks("", 2000)), ""},
		{"anthropic", "claude-sonnet-4-5", options(thinks("", 1000)), "thinking: must be at least 1024 tokens"},
		{"anthropic", "claude-opus-4-6", options(thinks("", 2000)), ""},
		{"anthropic", "claude-opus-4-7", options(thinks("", 2000)), "thinking: cannot be a number of tokens: this model takes a level only"},
		{"anthropic", "claude-opus-4-7", options(thinks("none", 0)), ""},
		{"anthropic", "claude-fable-5", options(thinks("none", 0)), "thinking: cannot be none: this model always thinks"},
		{"anthropic", "claude-sonnet-4-5", provider.Config{MaxTokens: 8192, Options: thinks("medium", 0)}, "maxTokens: leaves no tokens for the answer: it covers the tokens to think with, too"},
		{"anthropic", "claude-sonnet-4-5", provider.Config{MaxTokens: 8193, Options: thinks("medium", 0)}, ""},
		{"anthropic", "claude-opus-4-7", provider.Config{MaxTokens: 1000, Options: thinks("medium", 0)}, ""},
		{"anthropic", "claude-opus-4-7", provider.Config{Temperature: &low, Options: thinks("low", 0)}, "temperature: must be 1 for a model that thinks"},
		{"anthropic", "claude-opus-4-7", provider.Config{Temperature: &one, Options: thinks("low", 0)}, ""},
		{"anthropic", "claude-opus-4-7", provider.Config{Temperature: &low, Options: thinks("none", 0)}, ""},
		{"anthropic", "claude-opus-4-7", options(provider.Options{TopP: &low, Thinking: provider.Thinking{Level: "low"}}), "topP: must be at least 0.95 for a model that thinks"},
		{"anthropic", "claude-opus-4-7", options(provider.Options{ToolChoice: "required", Thinking: provider.Thinking{Level: "low"}}), "toolChoice: cannot be required for a model that thinks"},
		{"anthropic", "", provider.Config{Temperature: &low, Options: provider.Options{TopP: &one}}, "topP: cannot be combined with temperature"},
		{"gemini", "gemini-2.5-flash", options(thinks("none", 0)), ""},
		{"gemini", "gemini-2.5-pro", options(thinks("none", 0)), "thinking: cannot be none: this model always thinks"},
		{"gemini", "gemini-2.5-pro", options(thinks("", 2000)), ""},
		{"gemini", "gemini-2.5-pro", provider.Config{MaxTokens: 2000, Options: thinks("", 2000)}, "maxTokens: leaves no tokens for the answer: it covers the tokens to think with, too"},
		{"gemini", "gemini-3-pro-preview", options(thinks("", 2000)), "thinking: cannot be a number of tokens: this model takes a level only"},
		{"gemini", "gemini-3-flash-preview", options(thinks("none", 0)), "thinking: cannot be none: this model always thinks"},
		{"gemini", "gemini-3-pro-preview", options(thinks("high", 0)), ""},
	} {
		c.config.Model = c.model
		p, _ := catalog.FindProvider(c.kind)
		got := ""
		if e := p.Limits.CheckConfig(c.config); e != nil {
			got = e.Error()
		}
		if got != c.want {
			t.Errorf("%s %+v: got %q, want %q", c.kind, c.config, got, c.want)
		}
	}
}
