// Package gemini is a client of Google's Gemini API (https://ai.google.dev/api), with
// functions, images and thought signatures, streamed or whole.
//
//	m := gemini.New(provider.Config{Model: "gemini-3-pro-preview", Key: key, Stream: true})
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
}

// New returns a model. c.BaseURL may end in /v1beta or not.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	own := &client{c, generation(c)}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: c.Base(defaultURL, "/v1beta") + path(c), KeyHeader: "x-goog-api-key",
		ToolFields: toolFields(c.Options),
		Tool:       encodeTool, Request: own.request, Decoder: own.decoder,
	})
}

// path returns the path and query of requests.
func path(c provider.Config) string {
	name := "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(c.Model, "models/"))
	if c.Stream {
		return name + ":streamGenerateContent?alt=sse"
	}
	return name + ":generateContent"
}
