// Package responses is a client of OpenAI's Responses API
// (https://platform.openai.com/docs/api-reference/responses), which other servers
// serve too.
//
//	m := responses.New(provider.Config{Model: "gpt-5-mini", Key: key, Stream: true})
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest.
// Requests ask the server to store nothing: the reasoning of a model comes encrypted,
// and is sent back with the conversation. Items and events that the package does not
// know are ignored.
package responses

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

// providerID marks reasoning data that only this package reads.
const providerID = "openai-responses"

// client encodes requests and decodes answers.
type client struct{ config provider.Config }

// New returns a model. c.BaseURL includes the version, such as /v1, if there is one.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, openai.DefaultWindow)
	own := &client{c}
	return provider.New(c, provider.Protocol{
		ProviderID: providerID, URL: c.Base(openai.DefaultURL, "") + "/responses", KeyHeader: "Authorization", KeyPrefix: "Bearer ",
		Fields: fields(c.Options), ToolFields: openai.ToolFields{Choice: c.Options.ToolChoice, Parallel: c.Options.ParallelTools},
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	})
}

// asksForReasoning reports whether a request asks for encrypted reasoning. OpenAI rejects
// that for its models that do not reason; other servers ignore it. A field include in
// c.Options.Body decides about models whose name does not say what they are.
func asksForReasoning(c provider.Config) bool {
	if gjson.GetBytes(c.Options.Body, "include").Exists() {
		return false
	}
	name := strings.TrimPrefix(strings.ToLower(c.Model), "ft:")
	for _, plain := range [...]string{"gpt-3", "gpt-4", "chatgpt-"} {
		if strings.HasPrefix(name, plain) {
			return false
		}
	}
	return !strings.Contains(name, "-chat")
}
