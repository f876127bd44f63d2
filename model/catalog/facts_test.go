package catalog_test

import (
	"testing"
	"time"

	"github.com/rolecall/rolecall/model/catalog"
)

func TestFindFacts_NamesOfModels(t *testing.T) {
	if _, err := time.Parse(time.DateOnly, catalog.FactsDate); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		kind, name string
		window     int
	}{
		{"openai", "gpt-5", 272_000},
		{"openai", "gpt-4.1-2025-04-14", 1_047_576},
		{"openai-responses", "gpt-5", 272_000},
		{"anthropic", "claude-haiku-4-5-20251001", 200_000},
		{"gemini", "models/gemini-2.5-pro", 1_048_576},
		{"openai", "gpt-5-", 0},
		{"openai", "GPT-5", 0},
		{"openai", "gpt-5-20250807-20250807", 0},
		{"openai", "", 0},
		{"anthropic", "gpt-5", 0},
	} {
		f, ok := catalog.FindFacts(c.kind, c.name)
		if f.Window != c.window || ok != (c.window > 0) {
			t.Errorf("%s %q: got %+v, %v", c.kind, c.name, f, ok)
		}
		if ok && (f.InputPrice <= 0 || f.OutputPrice < f.InputPrice || f.CachedPrice > f.InputPrice || f.CachedPrice <= 0) {
			t.Errorf("%s: prices %+v", c.name, f)
		}
	}
}
