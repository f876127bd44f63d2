// Package bedrock is a client of the Converse API of Amazon Bedrock
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html),
// with tools, images, prompt caching and reasoning, streamed or whole.
//
//	m := bedrock.New(provider.Config{Model: "eu.amazon.nova-lite-v1:0", Region: "eu-central-1", Key: key, Stream: true})
//
// Requests carry an API key of Bedrock, or are signed with credentials of AWS. Nothing is
// read from the environment, from files of AWS or from the metadata service of a machine.
//
// It encodes chat.BuildTurns and decodes one answer; package provider does the rest.
// Parts of an answer that it does not know are ignored.
package bedrock

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/rolecall/rolecall/model/provider"
)

// defaultWindow is the default of provider.Config.Window, in tokens.
const defaultWindow = 200_000

// providerID marks reasoning data that only this package reads.
const providerID = "bedrock"

// client encodes requests and decodes answers.
type client struct{ config provider.Config }

// New returns a model. c.BaseURL is the address of a runtime endpoint. By default it is
// the endpoint of c.Region. c.Model is the id or the ARN of a model or an inference
// profile. Without c.Key, requests are signed with c.Credentials for c.Region.
func New(c provider.Config) *provider.Model {
	c.Window = cmp.Or(c.Window, defaultWindow)
	own := &client{c}
	p := provider.Protocol{
		ProviderID: providerID, URL: c.Base("https://bedrock-runtime."+c.Region+".amazonaws.com", "") + own.path(),
		KeyHeader: "Authorization", KeyPrefix: "Bearer ", Events: readEvents,
		Tool: encodeTool, Request: own.request, Decoder: own.decoder,
	}
	if c.Key == "" && c.Credentials != (provider.Credentials{}) {
		p.Sign = newSigner(c)
	}
	return provider.New(c, p)
}

// path returns the path of requests. The model is escaped as AWS's own clients do it.
func (c *client) path() string {
	name := "/model/" + strings.ReplaceAll(url.PathEscape(c.config.Model), ":", "%3A")
	if c.config.Stream {
		return name + "/converse-stream"
	}
	return name + "/converse"
}
