package anthropic

import (
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Limits returns what this package accepts of a provider.Config.
func Limits() provider.Limits {
	return provider.Limits{
		MaxTemperature: 1,
		Missing:        []string{"seed", "apiVersion"},
		Headers:        []string{"X-Api-Key", "Anthropic-Version"},
		Body: map[string]string{
			"model": "model", "messages": "", "system": "", "tools": "", "anthropic_version": "", "stream": "stream", "max_tokens": "maxTokens",
			"temperature": "temperature", "top_p": "topP", "tool_choice": "toolChoice", "thinking": "thinking", "output_config": "thinking",
		},
		Check: checkOptions,
	}
}

// minBudget is the smallest number of tokens to think with.
const minBudget = 1024

// checkOptions rejects combinations that the API rejects.
func checkOptions(c provider.Config) *provider.FieldError {
	o, mode, budget := c.Options, thinkingMode(c.Model), c.Options.Thinking.Budget()
	reject := func(field, message, hint string) *provider.FieldError {
		return &provider.FieldError{Field: field, Message: message, Hint: hint}
	}
	switch t := o.Thinking; {
	case o.TopP != nil && c.Temperature != nil:
		return reject("topP", "cannot be combined with temperature", "leave one out")
	case t.Level == provider.ThinkingNone && mode == thinksAlways:
		return reject("thinking", "cannot be none: this model always thinks", "write low")
	case !t.Enabled():
		return nil
	case t.Tokens > 0 && (mode == thinksAdaptive || mode == thinksAlways):
		return reject("thinking", "cannot be a number of tokens: this model takes a level only", "write low, medium or high")
	case t.Tokens > 0 && t.Tokens < minBudget:
		return reject("thinking", "must be at least 1024 tokens", "or none")
	case thinkingOf(c).budget() > 0 && c.MaxTokens > 0 && c.MaxTokens <= budget:
		return reject("maxTokens", "leaves no tokens for the answer: it covers the tokens to think with, too", "raise it, or lower thinking")
	case c.Temperature != nil && *c.Temperature != 1:
		return reject("temperature", "must be 1 for a model that thinks", "leave it out")
	case o.TopP != nil && *o.TopP < 0.95:
		return reject("topP", "must be at least 0.95 for a model that thinks", "leave it out")
	case o.ToolChoice == provider.ToolsRequired:
		return reject("toolChoice", "cannot be required for a model that thinks", "write auto, or thinking: none")
	}
	return nil
}

// mode is how a model is told to think.
type mode int

// Modes. A model that is not known takes both a level and a budget.
const (
	thinksEither   mode = iota
	thinksBudget        // takes a number of tokens only
	thinksAdaptive      // takes a level only
	thinksAlways        // takes a level only, and not none
)

// thinkingModes are the modes of models by a part of their names, which other hosts
// extend. The first that matches counts.
var thinkingModes = []struct {
	part string
	mode mode
}{
	{"claude-3", thinksBudget},
	{"claude-opus-4-6", thinksEither}, {"claude-sonnet-4-6", thinksEither},
	{"claude-opus-4-7", thinksAdaptive}, {"claude-opus-4-8", thinksAdaptive},
	{"claude-opus-4", thinksBudget}, {"claude-sonnet-4", thinksBudget}, {"claude-haiku-4", thinksBudget},
	{"claude-fable", thinksAlways}, {"claude-mythos", thinksAlways},
	{"claude-", thinksAdaptive},
}

// thinkingMode returns the mode of a model.
func thinkingMode(name string) mode {
	for _, m := range thinkingModes {
		if strings.Contains(name, m.part) {
			return m.mode
		}
	}
	return thinksEither
}

// optionFields are the optional fields of a request.
type optionFields struct {
	TopP         *float64  `json:"top_p,omitempty"`
	Thinking     *thinking `json:"thinking,omitempty"`
	OutputConfig *effort   `json:"output_config,omitempty"`
}

// thinking tells a model whether and how to think.
type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

// budget returns the most tokens to think with, which count as tokens of the answer; 0 if
// the model decides.
func (t *thinking) budget() int {
	if t == nil {
		return 0
	}
	return t.Budget
}

// effort is how much an adaptive model thinks and writes.
type effort struct {
	Level string `json:"effort"`
}

// thinkingOf returns the field thinking, or nil to leave it to the provider.
func thinkingOf(c provider.Config) *thinking {
	switch t := c.Options.Thinking; {
	case t.Level == provider.ThinkingNone:
		return &thinking{Type: "disabled"}
	case t.Tokens > 0 || t.Enabled() && thinkingMode(c.Model) == thinksBudget:
		return &thinking{Type: "enabled", Budget: t.Budget()}
	case t.Enabled():
		return &thinking{Type: "adaptive"}
	}
	return nil
}

// effortOf returns the level of a model that is told to think adaptively.
func effortOf(c provider.Config) *effort {
	if t := thinkingOf(c); t == nil || t.Type != "adaptive" {
		return nil
	}
	return &effort{c.Options.Thinking.Level}
}

// toolFields are the optional fields of a request that offers tools.
type toolFields struct {
	Choice *choice `json:"tool_choice,omitempty"`
}

// choice is whether an answer calls tools, and several at once.
type choice struct {
	Type       string `json:"type"`
	OneAtATime bool   `json:"disable_parallel_tool_use,omitempty"`
}

// choiceOf returns the field tool_choice, or nil to leave it to the provider.
func choiceOf(o provider.Options) *choice {
	single := o.ParallelTools != nil && !*o.ParallelTools
	switch {
	case o.ToolChoice == provider.ToolsNone:
		return &choice{Type: "none"}
	case o.ToolChoice == provider.ToolsRequired:
		return &choice{"any", single}
	case o.ToolChoice == provider.ToolsAuto || single:
		return &choice{"auto", single}
	}
	return nil
}
