package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
)

// Options become the fields of each provider's requests. Those about tools are sent with
// tools only.
func TestOptions_FieldsOfRequests(t *testing.T) {
	half, seed, no := 0.5, 7, false
	all := provider.Options{TopP: &half, ToolChoice: "required", ParallelTools: &no, Body: json.RawMessage(`{"extra":{"a":[1]}}`)}
	seeded := all
	seeded.Seed, seeded.ParallelTools = &seed, nil
	thinks := func(level string, tokens int) provider.Options {
		return provider.Options{Thinking: provider.Thinking{Level: level, Tokens: tokens}}
	}
	for _, c := range []struct {
		kind, model string
		options     provider.Options
		want        string // of the fields below
	}{
		{"openai", "m", provider.Options{}, `{}`},
		{"openai", "m", all, `{"top_p":0.5,"extra":{"a":[1]},"tool_choice":"required","parallel_tool_calls":false}`},
		{"openai", "m", seeded, `{"top_p":0.5,"extra":{"a":[1]},"tool_choice":"required","seed":7}`},
		{"openai", "m", thinks("none", 0), `{"reasoning_effort":"none"}`},
		{"openai-responses", "gpt-4.1", provider.Options{}, `{"store":false}`},
		{"openai-responses", "gpt-4.1", all, `{"store":false,"top_p":0.5,"extra":{"a":[1]},"tool_choice":"required","parallel_tool_calls":false}`},
		{"openai-responses", "gpt-5", thinks("high", 0), `{"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"high"}}`},
		{"anthropic", "m", provider.Options{}, `{"max_tokens":8192}`},
		{"anthropic", "m", all, `{"max_tokens":8192,"top_p":0.5,"extra":{"a":[1]},"tool_choice":{"type":"any","disable_parallel_tool_use":true}}`},
		{"anthropic", "m", provider.Options{ParallelTools: &no}, `{"max_tokens":8192,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
		{"anthropic", "m", provider.Options{ToolChoice: "none"}, `{"max_tokens":8192,"tool_choice":{"type":"none"}}`},
		{"anthropic", "claude-sonnet-4-5", thinks("medium", 0), `{"max_tokens":16384,"thinking":{"type":"enabled","budget_tokens":8192}}`},
		{"anthropic", "claude-opus-4-6", thinks("", 3000), `{"max_tokens":11192,"thinking":{"type":"enabled","budget_tokens":3000}}`},
		{"anthropic", "claude-opus-4-6", thinks("high", 0), `{"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}`},
		{"anthropic", "claude-opus-4-7", thinks("low", 0), `{"max_tokens":8192,"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}`},
		{"anthropic", "claude-opus-4-7", thinks("none", 0), `{"max_tokens":8192,"thinking":{"type":"disabled"}}`},
		{"bedrock", "m", provider.Options{}, `{"inferenceConfig":{},"toolConfig":{}}`},
		{"bedrock", "m", provider.Options{TopP: &half, ToolChoice: "required", Body: all.Body}, `{"inferenceConfig":{"topP":0.5},"extra":{"a":[1]},"toolConfig":{"toolChoice":{"any":{}}}}`},
		{"bedrock", "m", provider.Options{ToolChoice: "auto"}, `{"inferenceConfig":{},"toolConfig":{"toolChoice":{"auto":{}}}}`},
		{"gemini", "m", provider.Options{}, `{"generationConfig":{}}`},
		{"gemini", "m", seeded, `{"extra":{"a":[1]},"generationConfig":{"topP":0.5,"seed":7},"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`},
		{"gemini", "gemini-2.5-flash", thinks("none", 0), `{"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
		{"gemini", "gemini-2.5-flash", thinks("low", 0), `{"generationConfig":{"thinkingConfig":{"thinkingBudget":1024}}}`},
		{"gemini", "gemini-3-pro-preview", thinks("high", 0), `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"high"}}}`},
	} {
		tools := providertest.HelloRequest()
		tools.ToolJSON = providertest.ToolsJSON(t, "read_file")
		for _, r := range []model.Request{tools, providertest.HelloRequest()} {
			got := sentFields(t, c.kind, provider.Config{Model: c.model, Options: c.options}, r)
			want := providertest.Decode(t, c.want).(map[string]any)
			if r.ToolJSON == nil {
				for _, name := range []string{"tool_choice", "parallel_tool_calls", "toolConfig"} {
					delete(want, name)
				}
			}
			text, _ := json.Marshal(want)
			providertest.EqualJSON(t, got, string(text))
		}
	}
}

// sentFields returns the request that a client sends, without what is in every request.
func sentFields(t *testing.T, kind string, c provider.Config, r model.Request) string {
	var sent string
	c.Client = providertest.Client(func(_, body string) string {
		sent = body
		return `{}`
	})
	p, _ := catalog.FindProvider(kind)
	providertest.Collect(t, p.New(c), r)
	fields := providertest.Decode(t, sent).(map[string]any)
	for _, name := range []string{"model", "messages", "contents", "input", "tools"} {
		delete(fields, name)
	}
	if config, ok := fields["toolConfig"].(map[string]any); ok {
		delete(config, "tools")
	}
	text, _ := json.Marshal(fields)
	return string(text)
}

// A secret in a header is sent, and is not in errors that quote the provider.
func TestHeaders_AreSentAndRedacted(t *testing.T) {
	const secret = "hdr-canary-1"
	for _, p := range catalog.ListProviders() {
		suite := providertest.Suite{New: p.New, Model: "m", Key: "sk-canary-1"}
		x := suite.Do(t, provider.Config{Header: map[string]string{"X-Tenant": secret}}, providertest.HelloRequest(), 400, `{"error":{"message":"tenant `+secret+`"}}`)
		if x.Header.Get("X-Tenant") != secret {
			t.Errorf("%s: sent %v", p.Type, x.Header)
		}
		if e := providertest.WantError(t, x.Err, "llm_call_failed", false, "tenant ***"); e == nil {
			t.Errorf("%s: %v", p.Type, x.Err)
		}
	}
}
