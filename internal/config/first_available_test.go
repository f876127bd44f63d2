package config_test

import (
	"fmt"
	"strings"
	"testing"
)

// The first model that has its key, or needs none, is used. Without one, the first is.
func TestChooseModel_FirstWithKey(t *testing.T) {
	const head = `{kind: model, name: gpt, type: openai, model: gpt-x}
---
{kind: model, name: claude, type: anthropic, model: claude-x, apiKey: "${MY_KEY}"}
---
{kind: model, name: gem, type: gemini, model: gemini-x}
---
{kind: model, name: local, type: openai, model: qwen, baseURL: "http://127.0.0.1:1/v1"}
---
{kind: model, name: cloud, type: first-available, models: [gpt, gem]}
---
{kind: model, name: any, type: first-available, models: [%s]}
---
{kind: organization, name: o, model: any}
`
	for models, want := range map[string]string{
		"gpt, claude, local": "claude",
		"gpt, local, claude": "local",
		"gem, gpt":           "gem",
		"cloud, local":       "local",
		"cloud, cloud":       "gpt",
		"cloud":              "gpt",
	} {
		cfg, err := read(t, fmt.Sprintf(head, models))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := cfg.ChooseModel("any")
		if got.Name != want || !ok {
			t.Errorf("%s: got %q, want %q", models, got.Name, want)
		}
		if used := cfg.UsedModels(); len(used) != 1 || used[0].Name != want {
			t.Errorf("%s: used are %+v, want %s", models, used, want)
		}
	}
	cfg, _ := read(t, fmt.Sprintf(head, "gpt"))
	for name, want := range map[string]string{"gem": "gem", "nobody": "", "": ""} {
		if got, ok := cfg.ChooseModel(name); got.Name != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v", name, got.Name, ok)
		}
	}
}

// Windows and prices of known models are used at the provider's own address, unless the
// document or a price in another currency says otherwise.
func TestReadFiles_KnownWindowsAndPrices(t *testing.T) {
	const usd, euro = "prices: {input: 1, currency: USD}", "prices: {input: 1, currency: EUR}"
	for _, c := range []struct {
		model, other  string
		window        int
		input, output int64
		currency      string
	}{
		{"type: openai, model: gpt-5", usd, 272_000, 1_250_000_000, 10_000_000_000, "USD"},
		{"type: openai, model: gpt-5-2025-08-07", usd, 272_000, 1_250_000_000, 10_000_000_000, "USD"},
		{"type: anthropic, model: claude-sonnet-4-5-20250929", usd, 200_000, 3_000_000_000, 15_000_000_000, "USD"},
		{"type: gemini, model: models/gemini-2.5-flash", usd, 1_048_576, 300_000_000, 2_500_000_000, "USD"},
		{"type: openai, model: gpt-5, contextWindow: 9000, prices: {input: 0}", usd, 9000, 0, 0, ""},
		{"type: openai, model: gpt-5", euro, 272_000, 0, 0, ""},
		{"type: openai, model: gpt-5", "prices: {input: 1}", 272_000, 0, 0, ""},
		{"type: openai, model: gpt-5", "prices: {input: 0}", 272_000, 1_250_000_000, 10_000_000_000, "USD"},
		{"type: openai, model: gpt-5, baseURL: 'http://127.0.0.1:1/v1'", usd, 0, 0, 0, ""},
		{"type: openai, model: gpt-50", usd, 0, 0, 0, ""},
		{"type: gemini, model: gpt-5", usd, 0, 0, 0, ""},
	} {
		cfg, err := read(t, "{kind: model, name: a, "+c.model+"}\n---\n{kind: model, name: b, type: openai, model: x, "+c.other+"}\n")
		if err != nil {
			t.Fatal(err)
		}
		m := cfg.Models[0]
		if got := m.ProviderConfig().Window; got != c.window || m.Prices.Input != c.input || m.Prices.Output != c.output || m.Prices.Currency != c.currency {
			t.Errorf("%s, %s: window %d, prices %+v", c.model, c.other, got, m.Prices)
		}
	}
}

// A budget needs no prices in the document for a model whose prices are known.
func TestReadFiles_BudgetWithKnownPrices(t *testing.T) {
	const org = "{kind: organization, name: o, model: a, budget: {cost: 1}}\n---\n{kind: model, name: a, type: openai, model: "
	if _, err := read(t, org+"gpt-5}"); err != nil {
		t.Error(err)
	}
	if _, err := read(t, org+"gpt-50}"); err == nil || !strings.Contains(err.Error(), "prices: are missing") {
		t.Errorf("got %v", err)
	}
}
