package bedrock

import (
	"encoding/json"

	"github.com/rolecall/rolecall/model/provider"
)

// Limits returns what this package accepts of a provider.Config.
func Limits() provider.Limits {
	return provider.Limits{
		MaxTemperature: 1,
		AWS:            true,
		Missing:        []string{"seed", "parallelToolCalls", "apiVersion", "thinking"},
		Headers:        []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"},
		Body:           map[string]string{"messages": "", "system": "", "toolConfig": "toolChoice", "inferenceConfig": ""},
		Check:          checkOptions,
	}
}

// checkOptions rejects values that the API does not have.
func checkOptions(c provider.Config) *provider.FieldError {
	if c.Options.ToolChoice == provider.ToolsNone {
		return &provider.FieldError{Field: "toolChoice", Message: "cannot be none with this provider", Hint: "write auto or required"}
	}
	return nil
}

// inference returns the field inferenceConfig.
func inference(c provider.Config) []byte {
	doc, _ := json.Marshal(struct { // numbers always marshal
		MaxTokens   int      `json:"maxTokens,omitempty"`
		Temperature *float64 `json:"temperature,omitempty"`
		TopP        *float64 `json:"topP,omitempty"`
	}{c.MaxTokens, c.Temperature, c.Options.TopP})
	return doc
}

// choice returns the field toolChoice with a comma before it, or "" to leave it to the
// provider.
func choice(o provider.Options) string {
	switch o.ToolChoice {
	case provider.ToolsAuto:
		return `,"toolChoice":{"auto":{}}`
	case provider.ToolsRequired:
		return `,"toolChoice":{"any":{}}`
	}
	return ""
}
