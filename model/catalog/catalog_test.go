package catalog_test

import (
	"testing"

	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/provider"
)

func TestListProviders_EntriesAreComplete(t *testing.T) {
	for _, p := range catalog.ListProviders() {
		if found, ok := catalog.FindProvider(p.Type); !ok || found.KeyVariable != p.KeyVariable || p.KeyVariable == "" || p.Limits.MaxTemperature <= 0 {
			t.Errorf("%s: got %+v, %v", p.Type, found, ok)
		}
		if m := p.New(provider.Config{Model: "m"}); m == nil {
			t.Errorf("%s: New returned no client", p.Type)
		}
	}
}

func TestFindProvider_UnknownTypeIsNoProvider(t *testing.T) {
	for _, name := range []string{"", "OpenAI", "script", "openai "} {
		if p, ok := catalog.FindProvider(name); ok || p.New != nil {
			t.Errorf("%q: got %+v", name, p)
		}
	}
}
