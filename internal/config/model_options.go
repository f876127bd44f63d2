package config

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/provider"
)

// ProviderConfig returns the configuration of the client of a provider's model.
func (m Model) ProviderConfig() provider.Config {
	headers := make(map[string]string, len(m.Headers))
	for name, value := range m.Headers {
		headers[name] = string(value)
	}
	return provider.Config{
		Name: m.Name, Model: m.Model, BaseURL: m.BaseURL, APIVersion: m.Version, Key: string(m.Key), Region: m.AWS.Region, Credentials: m.AWS.credentials(), Header: headers, Stream: m.Stream, NoImages: m.Images != nil && !*m.Images,
		MaxTokens: m.MaxTokens, Temperature: m.Temperature, Window: m.window(), Timeout: m.Timeout, Options: m.Options,
	}
}

// Limits of the options of a model.
const (
	maxRequestBody = 64 << 10 // bytes of JSON
	maxThinking    = 1_000_000
)

// optionFields returns the fields that not every provider has.
func optionFields(m *Model) yamldoc.Fields {
	return yamldoc.Fields{
		"headers":           yamldoc.HeaderMap(&m.Headers),
		"body":              bodyField(&m.Options.Body),
		"thinking":          thinkingField(&m.Options.Thinking),
		"topP":              numberField(&m.Options.TopP, 1),
		"seed":              seedField(&m.Options.Seed),
		"toolChoice":        yamldoc.OneOfField(&m.Options.ToolChoice, provider.ToolsAuto, provider.ToolsRequired, provider.ToolsNone),
		"parallelToolCalls": yamldoc.OptionalBool(&m.Options.ParallelTools),
	}
}

// numberField reads a number from 0 to most into a pointer, which is nil without the field.
func numberField(to **float64, most float64) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if f, ok := v.ReadNumber(most); ok {
			*to = &f
		}
	}
}

// seedField reads a whole number into a pointer, which is nil without the field.
func seedField(to **int) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if n, ok := v.ReadInteger(0, math.MaxInt32); ok {
			seed := int(n)
			*to = &seed
		}
	}
}

// bodyField reads further fields of requests as JSON.
func bodyField(to *json.RawMessage) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		body := v.ReadObject()
		if len(body) > maxRequestBody {
			v.AddError("has more than "+strconv.Itoa(maxRequestBody)+" bytes as JSON", "")
			return
		}
		*to = body
	}
}

// thinkingField reads a level or a number of tokens.
func thinkingField(to *provider.Thinking) func(yamldoc.Value) {
	levels := []string{provider.ThinkingNone, provider.ThinkingLow, provider.ThinkingMedium, provider.ThinkingHigh}
	return func(v yamldoc.Value) {
		text, ok := v.ReadScalar()
		if !ok {
			return
		}
		n, err := strconv.Atoi(text)
		switch {
		case slices.Contains(levels, text):
			to.Level = text
		case err == nil && n >= 1 && n <= maxThinking:
			to.Tokens = n
		default:
			v.AddTypeError("none, low, medium, high or a number of tokens up to "+strconv.Itoa(maxThinking), "")
		}
	}
}

// versionField reads the version of an API: letters, digits, points and hyphens.
func versionField(to *string) func(yamldoc.Value) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
	return func(v yamldoc.Value) {
		switch text, ok := v.ReadNonEmpty(); {
		case !ok:
		case len(text) > 64 || strings.Trim(text, letters) != "":
			v.AddError("is not the version of an API", "for example 2024-10-21")
		default:
			*to = text
		}
	}
}
