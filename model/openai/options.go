package openai

import (
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model/provider"
)

// Limits returns what this package accepts of a provider.Config.
func Limits() provider.Limits {
	return provider.Limits{
		MaxTemperature: 2,
		Headers:        []string{"Authorization", "Api-Key"},
		Body: map[string]string{
			"model": "model", "messages": "", "tools": "", "functions": "", "function_call": "", "n": "",
			"stream": "stream", "stream_options": "", "max_tokens": "maxTokens", "max_completion_tokens": "maxTokens",
			"temperature": "temperature", "top_p": "topP", "seed": "seed", "reasoning_effort": "thinking",
			"tool_choice": "toolChoice", "parallel_tool_calls": "parallelToolCalls",
		},
		Check: CheckOptions,
	}
}

// CheckOptions rejects thinking that the API or the model does not have, and a version
// without the address of a resource.
func CheckOptions(c provider.Config) *provider.FieldError {
	switch {
	case c.Options.Thinking.Tokens > 0:
		return &provider.FieldError{Field: "thinking", Message: "cannot be a number of tokens with this provider", Hint: "write none, low, medium or high; a server with a field of its own has it in body"}
	case c.Options.Thinking.Level == provider.ThinkingNone && alwaysThinks().MatchString(c.Model):
		return &provider.FieldError{Field: "thinking", Message: "cannot be none: this model always thinks", Hint: "write low"}
	case c.APIVersion != "" && c.BaseURL == "":
		return &provider.FieldError{Field: "apiVersion", Message: "requires baseURL", Hint: "for example https://NAME.openai.azure.com"}
	case c.APIVersion != "" && strings.Contains(c.BaseURL, "/openai/"):
		return &provider.FieldError{Field: "baseURL", Message: "must be the endpoint of the resource only, with apiVersion", Hint: "for example https://NAME.openai.azure.com, and the deployment as model"}
	}
	return nil
}

// alwaysThinks are the names of OpenAI's models before gpt-5.1 that think.
var alwaysThinks = textutil.LazyPattern(`^(o[134]|gpt-5)(-|$)`)

// optionFields are the optional fields of a request.
type optionFields struct {
	TopP            *float64 `json:"top_p,omitempty"`
	Seed            *int     `json:"seed,omitempty"`
	ReasoningEffort string   `json:"reasoning_effort,omitempty"`
}

func fields(o provider.Options) optionFields { return optionFields{o.TopP, o.Seed, o.Thinking.Level} }

// ToolFields are the optional fields of a request that offers tools.
type ToolFields struct {
	Choice   string `json:"tool_choice,omitempty"`
	Parallel *bool  `json:"parallel_tool_calls,omitempty"`
}
