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
	"slices"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Defaults of provider.Config, also of package responses.
const (
	DefaultURL    = "https://api.openai.com/v1"
	DefaultWindow = 128_000 // tokens
)

// providerID marks reasoning data that only this package reads.
const providerID = "openai"

// client encodes requests.
type client struct {
	config         provider.Config
	maxTokensField string // name of the field for MaxTokens
}

// New returns a model. c.BaseURL includes the version, such as /v1, if there is one. With
// c.APIVersion it is the endpoint of a resource of Azure OpenAI, and c.Model the name of a
// deployment.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, DefaultWindow)
	base := c.Base(DefaultURL, "")
	own := &client{c, maxTokensField(base)}
	p := provider.Protocol{
		ProviderID: providerID, URL: base + "/chat/completions", KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Fields: fields(c.Options), ToolFields: ToolFields{c.Options.ToolChoice, c.Options.ParallelTools},
		Request: own.request, Decoder: decoder,
	}
	if c.APIVersion != "" {
		p.URL = deploymentURL(c)
	}
	if c.APIVersion != "" && !isToken(c.Key) {
		p.KeyHeader, p.KeyPrefix = "Api-Key", ""
	}
	return provider.New(c, p)
}

// deploymentURL returns the address of a deployment of Azure OpenAI, for versions of its
// API that are dates.
func deploymentURL(c provider.Config) string {
	query := url.Values{"api-version": {c.APIVersion}}
	return c.Base("", "/openai") + "/openai/deployments/" + url.PathEscape(c.Model) + "/chat/completions?" + query.Encode()
}

// isToken reports whether a key of Azure is a token of Microsoft Entra ID, which is a JWT. A token
// has another header than the key of a resource.
func isToken(key string) bool { return strings.HasPrefix(key, "eyJ") && strings.Count(key, ".") == 2 }

// maxTokensField returns the name of the field that limits the length of an answer.
// OpenAI's newer models reject max_tokens. Most other servers know only max_tokens.
// They would ignore the new name, so that answers had no limit.
func maxTokensField(baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil {
		host := "." + u.Hostname()
		if slices.ContainsFunc(newFieldHosts, func(suffix string) bool { return strings.HasSuffix(host, suffix) }) {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

// newFieldHosts are the ends of the names of hosts that know max_completion_tokens: OpenAI
// and the endpoints of Azure OpenAI.
var newFieldHosts = []string{".api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"}
