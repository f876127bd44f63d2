package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/catalog"
)

// A type without a client is an error. It does not become another provider's model.
func TestNewModel_RejectsUnknownType(t *testing.T) {
	a := new(App)
	for _, name := range []string{"", "OpenAI", "cohere"} {
		if m, err := a.newModel(config.Model{Name: "m", Type: name, Model: "m"}); m != nil || errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("type %q: got %v, %v, want invalid_config", name, m, err)
		}
	}
	for _, p := range catalog.ListProviders() {
		if m, err := a.newModel(config.Model{Name: "m", Type: p.Type, Model: "m"}); m == nil || err != nil {
			t.Errorf("type %s: got %v, %v", p.Type, m, err)
		}
	}
}

// A secret of a header is redacted from answers and recordings, like a key.
func TestNewModel_RedactsHeaders(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"tenant ` + r.Header.Get("X-Tenant") + `"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(server.Close)
	d := config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: server.URL, Headers: map[string]yamldoc.Secret{"X-Tenant": "hdr-canary-1"}}
	m, err := f.newModel(d)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := ask(t, m); text != "tenant ***" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if list := modelSecrets(&config.Config{Models: []config.Model{d}}); !slices.Contains(list, "hdr-canary-1") {
		t.Error("recordings may contain the header")
	}
}

// A model of type first-available answers with the first of its models that has its key, and
// with that model's fallbacks. Without a key it says which variables to set.
func TestNewModelSet_FirstAvailable(t *testing.T) {
	server := newKeyServer(t, "")
	models := []config.Model{
		{Name: "gpt", Type: "openai", Model: "gpt", KeyFrom: "GPT_KEY"},
		{Name: "local", Type: "openai", Model: "qwen", BaseURL: server.URL},
		{Name: "any", Type: config.ModelFirstAvailable, Models: []string{"gpt", "local"}},
		{Name: "none", Type: config.ModelFirstAvailable, Models: []string{"gpt"}},
		{Name: "chain", Type: "openai", Model: "m", KeyFrom: "GPT_KEY", Fallback: []string{"any", "local"}},
	}
	set, faults := newFixture(t).newModelSet(&config.Config{Models: models})
	if faults != nil {
		t.Fatal(faults)
	}
	for _, name := range []string{"any", "chain"} {
		m, err := set.find(name)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := ask(t, m); text != "hello, " || err != nil {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
	chain, err := set.find("chain")
	if err != nil {
		t.Fatal(err)
	}
	server.accept("another")
	server.takeSent()
	if _, err := ask(t, chain); err == nil || server.takeSent() != "" { // one request, without a key
		t.Errorf("the model is asked twice: %v", err)
	}
	if _, err := set.find("none"); err == nil || !strings.Contains(err.Error(), "the variable GPT_KEY is not set") {
		t.Errorf("got %v", err)
	}
}
