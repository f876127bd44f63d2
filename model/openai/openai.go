// Package openai is a client of OpenAI's Chat Completions API
// (https://platform.openai.com/docs/api-reference/chat), which Ollama, vLLM,
// llama.cpp, LM Studio, OpenRouter, DeepSeek and others serve too.
//
//	m := openai.New(provider.Config{Model: "qwen3:8b", BaseURL: "http://localhost:11434/v1", Stream: true})
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest. It
// accepts the known deviations of these servers and ignores fields it does not know.
package openai

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Defaults of provider.Config.
const (
	defaultURL    = "https://api.openai.com/v1"
	defaultWindow = 128_000
)

// providerID marks reasoning data that only this package reads.
const providerID = "openai"

// client encodes requests.
type client struct {
	config         provider.Config
	maxTokensField string // name of the field for MaxTokens
}

// New returns a model. c.BaseURL includes the version, such as /v1, if there is one.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	base := c.Base(defaultURL, "")
	own := &client{c, maxTokensField(base)}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: base + "/chat/completions", KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Fields: fields(c.Options), ToolFields: toolFields{c.Options.ToolChoice, c.Options.ParallelTools},
		Request: own.request, Decoder: decoder,
	})
}

// maxTokensField returns the name of the field that limits the length of an answer.
// OpenAI's newer models reject max_tokens. Most other servers know only that one and
// would ignore the new name, so that answers had no limit.
func maxTokensField(baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil {
		host := "." + u.Hostname()
		if strings.HasSuffix(host, ".api.openai.com") || strings.HasSuffix(host, ".openai.azure.com") {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}
