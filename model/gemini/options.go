package gemini

import (
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Limits returns what this package accepts of a provider.Config.
func Limits() provider.Limits {
	return provider.Limits{
		MaxTemperature: 2,
		Missing:        []string{"parallelToolCalls", "apiVersion"},
		Headers:        []string{"X-Goog-Api-Key"},
		Body:           map[string]string{"contents": "", "systemInstruction": "", "tools": "", "toolConfig": "toolChoice", "generationConfig": ""},
		Check:          checkThinking,
	}
}

// takesBudget reports whether a model thinks with a number of tokens. Newer models have levels.
func takesBudget(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "models/"), "gemini-2")
}

// checkThinking rejects thinking that the model does not offer.
func checkThinking(c provider.Config) *provider.FieldError {
	t := c.Options.Thinking
	reject := func(message, hint string) *provider.FieldError {
		return &provider.FieldError{Field: "thinking", Message: message, Hint: hint}
	}
	switch budget := takesBudget(c.Model); {
	case t.Level == provider.ThinkingNone && (!budget || strings.Contains(c.Model, "-pro")):
		return reject("cannot be none: this model always thinks", "write low")
	case t.Tokens > 0 && !budget:
		return reject("cannot be a number of tokens: this model takes a level only", "write low, medium or high")
	case t.Budget() > 0 && budget && c.MaxTokens > 0 && c.MaxTokens <= t.Budget():
		return &provider.FieldError{Field: "maxTokens", Message: "leaves no tokens for the answer: it covers the tokens to think with, too", Hint: "raise it, or lower thinking"}
	}
	return nil
}

// thinkingConfig is how much a model thinks. It has one of the fields.
type thinkingConfig struct {
	Budget *int   `json:"thinkingBudget,omitempty"`
	Level  string `json:"thinkingLevel,omitempty"`
}

// generation returns the field generationConfig.
func generation(c provider.Config) []byte {
	doc, _ := json.Marshal(struct { // numbers and texts always marshal
		MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
		Temperature     *float64        `json:"temperature,omitempty"`
		TopP            *float64        `json:"topP,omitempty"`
		Seed            *int            `json:"seed,omitempty"`
		ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitempty"`
	}{c.MaxTokens, c.Temperature, c.Options.TopP, c.Options.Seed, thinkingOf(c)})
	return doc
}

// thinkingOf returns the field thinkingConfig, or nil to leave it to the provider.
func thinkingOf(c provider.Config) *thinkingConfig {
	t := c.Options.Thinking
	if t == (provider.Thinking{}) {
		return nil
	}
	if budget := t.Budget(); takesBudget(c.Model) {
		return &thinkingConfig{Budget: &budget}
	}
	return &thinkingConfig{Level: t.Level}
}

// toolFields returns the optional fields of a request that offers tools.
func toolFields(o provider.Options) any {
	mode := map[string]string{provider.ToolsAuto: "AUTO", provider.ToolsRequired: "ANY", provider.ToolsNone: "NONE"}[o.ToolChoice]
	if mode == "" {
		return nil
	}
	return map[string]any{"toolConfig": map[string]any{"functionCallingConfig": map[string]string{"mode": mode}}}
}
