// Package anthropic is a client of Anthropic's Messages API
// (https://docs.anthropic.com/en/api/messages), with tools, images, prompt caching
// and thinking, streamed or whole.
//
//	m := anthropic.New(provider.Config{Model: "claude-sonnet-4-5", Key: key, Stream: true})
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest.
// Parts of an answer that it does not know are ignored.
package anthropic

import (
	"cmp"

	"github.com/rolecall/rolecall/model/provider"
)

// Defaults of provider.Config.
const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
	defaultWindow    = 200_000
)

// apiVersion is the version of the API that this package uses.
const apiVersion = "2023-06-01"

// providerID marks reasoning data that only this package reads.
const providerID = "anthropic"

// client encodes requests and decodes answers.
type client struct{ config provider.Config }

// New returns a model. c.BaseURL may end in /v1 or not.
func New(c provider.Config) *provider.Model {
	thinking := thinkingOf(c)
	c.MaxTokens = cmp.Or(c.MaxTokens, thinking.budget()+defaultMaxTokens)
	c.Window = cmp.Or(c.Window, defaultWindow)
	own := &client{c}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: c.Base(defaultURL, "/v1") + "/v1/messages",
		Header: map[string]string{"anthropic-version": apiVersion}, KeyHeader: "x-api-key",
		Fields: optionFields{c.Options.TopP, thinking, effortOf(c)}, ToolFields: toolFields{choiceOf(c.Options)},
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	})
}
