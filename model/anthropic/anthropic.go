// Package anthropic is a client of the Messages API as Anthropic serves it:
// tools, pictures, prompt caching, thinking that is handed back, streamed or
// whole.
//
// It encodes chat.Turns and decodes one answer; package provider does the
// rest. What an answer holds that this package does not know is passed over.
package anthropic

import (
	"cmp"

	"github.com/rolecall/rolecall/model/provider"
)

// What a provider.Config that says nothing gets.
const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
	defaultWindow    = 200_000
)

// apiVersion is the version of the protocol that this package speaks.
const apiVersion = "2023-06-01"

// providerID marks the reasoning that only this package reads.
const providerID = "anthropic"

// client is what requests and answers depend on.
type client struct{ config provider.Config }

// New makes a model. Its BaseURL may have the /v1 at its end or not.
func New(c provider.Config) *provider.Model {
	c.MaxTokens = cmp.Or(c.MaxTokens, defaultMaxTokens)
	c.Window = cmp.Or(c.Window, defaultWindow)
	own := &client{c}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: c.Base(defaultURL, "/v1") + "/v1/messages",
		Header: map[string]string{"anthropic-version": apiVersion}, KeyHeader: "x-api-key",
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	})
}
