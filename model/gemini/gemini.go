// Package gemini is a client of the Gemini API as Google serves it to
// developers: functions, pictures, thought signatures that are handed back,
// streamed or whole.
//
// It encodes chat.Turns and decodes one answer; package provider does the
// rest. What an answer holds that this package does not know is passed over.
package gemini

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// What a provider.Config that says nothing gets.
const (
	defaultURL    = "https://generativelanguage.googleapis.com"
	defaultWindow = 1_000_000
)

// providerID marks the reasoning that only this package reads.
const providerID = "gemini"

// client is what requests and answers depend on.
type client struct{ config provider.Config }

// New makes a model. Its BaseURL may have the /v1beta at its end or not.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	own := &client{c}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: c.Base(defaultURL, "/v1beta") + path(c), KeyHeader: "x-goog-api-key",
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	})
}

func path(c provider.Config) string {
	name := "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(c.Model, "models/"))
	if c.Stream {
		return name + ":streamGenerateContent?alt=sse"
	}
	return name + ":generateContent"
}
