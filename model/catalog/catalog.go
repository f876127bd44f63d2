// Package catalog lists the providers of language models that a configuration can name:
//
//	if p, ok := catalog.FindProvider("gemini"); ok {
//		client := p.New(provider.Config{Model: "gemini-2.5-flash", Key: key})
//		…
//	}
//
// A new protocol is a package next to model/gemini and an entry in ListProviders.
package catalog

import (
	"context"
	"slices"

	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/bedrock"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/provider"
)

// Provider is a type of language model.
type Provider struct {
	Type        string                                // type of the documents of kind model
	KeyVariable string                                // environment variable with the API key, unless a document names another
	Limits      provider.Limits                       // what the provider accepts of a provider.Config
	New         func(provider.Config) *provider.Model // constructs a client; see the provider's package

	// FindWindow asks the server for the context window of the model. It is nil if the
	// protocol has no such request.
	FindWindow func(context.Context, provider.Config) provider.ServerWindow
}

// ListProviders returns all providers in the order in which errors list them. The program has
// no other list of them.
func ListProviders() []Provider {
	return []Provider{
		{"openai", "OPENAI_API_KEY", openai.Limits(), openai.New, openai.FindWindow},
		{"openai-responses", "OPENAI_API_KEY", responses.Limits(), responses.New, openai.FindWindow},
		{"anthropic", "ANTHROPIC_API_KEY", anthropic.Limits(), anthropic.New, nil},
		{"gemini", "GEMINI_API_KEY", gemini.Limits(), gemini.New, nil},
		{"bedrock", "AWS_BEARER_TOKEN_BEDROCK", bedrock.Limits(), bedrock.New, nil},
	}
}

// FindProvider returns the provider with this type. It reports false if there is none.
func FindProvider(name string) (Provider, bool) {
	all := ListProviders()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Type == name })
	if i < 0 {
		return Provider{}, false
	}
	return all[i], true
}
