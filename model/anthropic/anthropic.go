// Package anthropic is a client of Anthropic's Messages API
// (https://docs.anthropic.com/en/api/messages), with tools, images, prompt caching
// and thinking, streamed or whole.
//
//	m := anthropic.New(provider.Config{Model: "claude-sonnet-4-5", Key: key, Stream: true})
//
// A base URL that ends in /publishers/anthropic belongs to Vertex AI, which has the same
// API at other addresses.
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest.
// Parts of an answer that it does not know are ignored.
package anthropic

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Defaults of provider.Config.
const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
	defaultWindow    = 200_000
)

// Versions of the API that this package uses, of Anthropic and of Vertex AI.
const (
	apiVersion    = "2023-06-01"
	vertexVersion = "vertex-2023-10-16"
)

// providerID marks reasoning data that only this package reads.
const providerID = "anthropic"

// client encodes requests and decodes answers.
type client struct {
	config provider.Config
	vertex bool // the server is Vertex AI
}

// New returns a model. c.BaseURL may end in /v1 or not, or is the base URL of Vertex AI.
func New(c provider.Config) *provider.Model {
	thinking := thinkingOf(c)
	c.MaxTokens = cmp.Or(c.MaxTokens, thinking.budget()+defaultMaxTokens)
	c.Window = cmp.Or(c.Window, defaultWindow)
	base := c.Base(defaultURL, "/v1")
	own := &client{c, isVertex(base)}
	p := provider.Protocol{
		ProviderID: providerID,
		Fields:     optionFields{c.Options.TopP, thinking, effortOf(c)}, ToolFields: toolFields{choiceOf(c.Options)},
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	}
	if own.vertex {
		p.URL, p.KeyHeader, p.KeyPrefix = base+own.vertexPath(), "Authorization", "Bearer "
	} else {
		p.URL, p.KeyHeader = base+"/v1/messages", "x-api-key"
		p.Header = map[string]string{"anthropic-version": apiVersion}
	}
	return provider.New(c, p)
}

// isVertex reports whether a base URL leads to Anthropic's models on Vertex AI.
func isVertex(base string) bool { return strings.HasSuffix(base, "/publishers/anthropic") }

// vertexPath returns the path of requests to Vertex AI, which has the model in it.
func (c *client) vertexPath() string {
	name := "/models/" + url.PathEscape(c.config.Model)
	if c.config.Stream {
		return name + ":streamRawPredict"
	}
	return name + ":rawPredict"
}
