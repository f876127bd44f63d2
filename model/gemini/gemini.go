// Package gemini is a client of Google's Gemini API (https://ai.google.dev/api), with
// functions, images and thought signatures, streamed or whole.
//
//	m := gemini.New(provider.Config{Model: "gemini-3-pro-preview", Key: key, Stream: true})
//
// A base URL that ends in /publishers/google belongs to Vertex AI, which has the same API.
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest.
// Parts of an answer that it does not know are ignored.
package gemini

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// Defaults of provider.Config.
const (
	defaultURL    = "https://generativelanguage.googleapis.com"
	defaultWindow = 1_000_000
)

// providerID marks reasoning data that only this package reads.
const providerID = "gemini"

// client encodes requests and decodes answers.
type client struct {
	config     provider.Config
	generation []byte // the field generationConfig
	vertex     bool   // the server is Vertex AI
}

// New returns a model. c.BaseURL may end in /v1beta or not, or is the base URL of Vertex AI.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	base := c.Base(defaultURL, "/v1beta")
	own := &client{c, generation(c), isVertex(base)}
	p := provider.Protocol{
		ProviderID: providerID, URL: base + own.path(), KeyHeader: "x-goog-api-key",
		ToolFields: toolFields(c.Options),
		Tool:       encodeTool, Request: own.request, Decoder: own.decoder,
	}
	if own.vertex && strings.Contains(base, "/projects/") { // else the key is one of Vertex AI's express mode
		p.KeyHeader, p.KeyPrefix = "Authorization", "Bearer "
	}
	return provider.New(c, p)
}

// isVertex reports whether a base URL leads to Google's models on Vertex AI.
func isVertex(base string) bool { return strings.HasSuffix(base, "/publishers/google") }

// path returns the path and query of requests.
func (c *client) path() string {
	name := "/models/" + url.PathEscape(strings.TrimPrefix(c.config.Model, "models/"))
	if !c.vertex {
		name = "/v1beta" + name
	}
	if c.config.Stream {
		return name + ":streamGenerateContent?alt=sse"
	}
	return name + ":generateContent"
}
