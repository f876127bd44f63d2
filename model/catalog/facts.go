package catalog

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
)

// FactsDate is the day on which the facts of FindFacts were copied.
const FactsDate = "2026-07-02"

// FactsCurrency is the currency of their prices.
const FactsCurrency = "USD"

// ModelFacts are what a provider publishes about a model. Configurations use them where a document
// has no facts. Some providers charge more for long requests; these prices do not.
type ModelFacts struct {
	ProviderType string
	Name         string // the provider's name for the model
	Window       int    // context window in tokens: of a request, or of request and answer if only that is known

	InputPrice, OutputPrice, CachedPrice float64 // of a million tokens
}

// listFacts returns the facts about common models, from the lists of
// https://models.dev (MIT licence).
func listFacts() []ModelFacts {
	return []ModelFacts{
		{"openai", "gpt-4.1", 1_047_576, 2, 8, 0.5},
		{"openai", "gpt-4.1-mini", 1_047_576, 0.4, 1.6, 0.1},
		{"openai", "gpt-4.1-nano", 1_047_576, 0.1, 0.4, 0.025},
		{"openai", "gpt-4o", 128_000, 2.5, 10, 1.25},
		{"openai", "gpt-4o-mini", 128_000, 0.15, 0.6, 0.075},
		{"openai", "gpt-5", 272_000, 1.25, 10, 0.125},
		{"openai", "gpt-5-mini", 272_000, 0.25, 2, 0.025},
		{"openai", "gpt-5-nano", 272_000, 0.05, 0.4, 0.005},
		{"openai", "gpt-5.1", 272_000, 1.25, 10, 0.125},
		{"openai", "gpt-5.2", 272_000, 1.75, 14, 0.175},
		{"openai", "gpt-5.4", 922_000, 2.5, 15, 0.25},
		{"openai", "gpt-5.4-mini", 272_000, 0.75, 4.5, 0.075},
		{"openai", "gpt-5.4-nano", 272_000, 0.2, 1.25, 0.02},
		{"openai", "gpt-5.5", 922_000, 5, 30, 0.5},
		{"openai", "o1", 200_000, 15, 60, 7.5},
		{"openai", "o3", 200_000, 2, 8, 0.5},
		{"openai", "o3-mini", 200_000, 1.1, 4.4, 0.55},
		{"openai", "o4-mini", 200_000, 1.1, 4.4, 0.275},
		{"anthropic", "claude-fable-5", 1_000_000, 10, 50, 1},
		{"anthropic", "claude-haiku-4-5", 200_000, 1, 5, 0.1},
		{"anthropic", "claude-opus-4-0", 200_000, 15, 75, 1.5},
		{"anthropic", "claude-opus-4-1", 200_000, 15, 75, 1.5},
		{"anthropic", "claude-opus-4-5", 200_000, 5, 25, 0.5},
		{"anthropic", "claude-opus-4-6", 1_000_000, 5, 25, 0.5},
		{"anthropic", "claude-opus-4-7", 1_000_000, 5, 25, 0.5},
		{"anthropic", "claude-opus-4-8", 1_000_000, 5, 25, 0.5},
		{"anthropic", "claude-sonnet-4-0", 200_000, 3, 15, 0.3},
		{"anthropic", "claude-sonnet-4-5", 200_000, 3, 15, 0.3},
		{"anthropic", "claude-sonnet-4-6", 1_000_000, 3, 15, 0.3},
		{"anthropic", "claude-sonnet-5", 1_000_000, 2, 10, 0.2},
		{"gemini", "gemini-2.5-flash", 1_048_576, 0.3, 2.5, 0.03},
		{"gemini", "gemini-2.5-flash-lite", 1_048_576, 0.1, 0.4, 0.01},
		{"gemini", "gemini-2.5-pro", 1_048_576, 1.25, 10, 0.125},
		{"gemini", "gemini-3-flash-preview", 1_048_576, 0.5, 3, 0.05},
		{"gemini", "gemini-3.1-flash-lite", 1_048_576, 0.25, 1.5, 0.025},
		{"gemini", "gemini-3.1-pro-preview", 1_048_576, 2, 12, 0.2},
		{"gemini", "gemini-3.1-pro-preview-customtools", 1_048_576, 2, 12, 0.2},
		{"gemini", "gemini-3.5-flash", 1_048_576, 1.5, 9, 0.15},
	}
}

// dateSuffix matches the date at the end of the name of a model's version.
var dateSuffix = textutil.LazyPattern(`-(\d{8}|\d{4}-\d{2}-\d{2})$`)

// FindFacts returns the facts about a model of a provider, or of a dated version of it. It
// reports false if they are not known.
func FindFacts(providerType, name string) (ModelFacts, bool) {
	name = dateSuffix().ReplaceAllString(strings.TrimPrefix(name, "models/"), "")
	if providerType == "openai-responses" { // the same models through another API
		providerType = "openai"
	}
	all := listFacts()
	i := slices.IndexFunc(all, func(f ModelFacts) bool { return f.ProviderType == providerType && f.Name == name })
	if i < 0 {
		return ModelFacts{}, false
	}
	return all[i], true
}
