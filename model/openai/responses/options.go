package responses

import (
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

// Limits returns what this package accepts of a provider.Config.
func Limits() provider.Limits {
	return provider.Limits{
		MaxTemperature: 2,
		Missing:        []string{"seed", "apiVersion"},
		Headers:        []string{"Authorization"},
		Body: map[string]string{
			"model": "model", "input": "", "instructions": "", "tools": "", "previous_response_id": "", "conversation": "", "background": "",
			"store": "", "stream": "stream", "stream_options": "", "max_output_tokens": "maxTokens",
			"temperature": "temperature", "top_p": "topP", "reasoning": "thinking",
			"tool_choice": "toolChoice", "parallel_tool_calls": "parallelToolCalls",
		},
		Check: openai.CheckOptions,
	}
}

// optionFields are the optional fields of a request.
type optionFields struct {
	TopP      *float64   `json:"top_p,omitempty"`
	Reasoning *reasoning `json:"reasoning,omitempty"`
}

// reasoning tells a model how much to think.
type reasoning struct {
	Effort string `json:"effort"`
}

func fields(o provider.Options) optionFields {
	if o.Thinking.Level == "" {
		return optionFields{TopP: o.TopP}
	}
	return optionFields{o.TopP, &reasoning{o.Thinking.Level}}
}
