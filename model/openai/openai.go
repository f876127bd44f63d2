// Package openai owns the wire protocol of OpenAI's chat completions, as it is
// spoken by OpenAI itself and by Ollama, vLLM, llama.cpp, LM Studio,
// OpenRouter, DeepSeek and whoever else serves it at another address.
//
// It encodes chat.Turns and decodes one answer; package provider does the
// rest. What a server sends is data: of all its dialects only what is
// understood is taken.
package openai

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// What a provider.Config that says nothing gets.
const (
	defaultURL    = "https://api.openai.com/v1"
	defaultWindow = 128_000
)

// providerID marks the reasoning that only this package reads.
const providerID = "openai"

// client is what requests depend on.
type client struct {
	config   provider.Config
	maxTokensField string // what the length of an answer is called there
}

// New makes a model.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	base := c.Base(defaultURL, "")
	own := &client{c, maxTokensField(base)}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: base + "/chat/completions", KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Request: own.request, Decoder: decoder,
	})
}

// maxTokensField gives the name of the field for an answer's length. OpenAI's newer
// models refuse max_tokens; most other servers know nothing else, and would
// ignore the new name, so that answers had no bound.
func maxTokensField(baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil {
		host := "." + u.Hostname()
		if strings.HasSuffix(host, ".api.openai.com") || strings.HasSuffix(host, ".openai.azure.com") {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}
