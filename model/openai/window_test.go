package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

// A window is found in the list of models, or in Ollama's /api/show.
func TestFindWindow_ReadsServers(t *testing.T) {
	for _, test := range []struct {
		name, list, show string
		want             provider.ServerWindow
		ps               string
	}{
		{"vLLM", `{"data":[{"id":"other","max_model_len":1},{"id":"m","max_model_len":32768}]}`, "", provider.ServerWindow{Tokens: 32768, Source: "GET /models: max_model_len"}, ""},
		{"OpenRouter", `{"data":[{"id":"m","context_length":200000},{"id":"n"}]}`, "", provider.ServerWindow{Tokens: 200000, Source: "GET /models: context_length"}, ""},
		{"one model of another name", `{"data":[{"id":"/models/m.gguf","meta":{"n_ctx_train":40960}}]}`, "", provider.ServerWindow{Tokens: 40960, Source: "GET /models: meta.n_ctx_train", AtMost: true}, ""},
		{"Ollama", `{"data":[{"id":"m"}]}`, `{"parameters":"stop x","model_info":{"general.x":5,"qwen3.context_length":40960}}`, provider.ServerWindow{Tokens: 40960, Source: "POST /api/show: qwen3.context_length", AtMost: true}, ""},
		{"Ollama with num_ctx", `{"data":[{"id":"m"}]}`, `{"parameters":"stop \"x\"\nnum_ctx                        8192\n","model_info":{"qwen3.context_length":40960}}`, provider.ServerWindow{Tokens: 8192, Source: "POST /api/show: num_ctx"}, ""},
		{name: "Ollama, loaded", list: `{"data":[{"id":"m"}]}`, show: `{"model_info":{"qwen3.context_length":40960}}`, ps: `{"models":[{"model":"other","context_length":999},{"model":"m:latest","context_length":4096}]}`,
			want: provider.ServerWindow{Tokens: 4096, Source: "GET /api/ps: context_length"}},
		{name: "Ollama, loaded without a window", list: `{"data":[{"id":"m"}]}`, show: `{"parameters":"num_ctx 8192"}`, ps: `{"models":[{"model":"m","context_length":-1},{"model":"n","context_length":4096}]}`,
			want: provider.ServerWindow{Tokens: 8192, Source: "POST /api/show: num_ctx"}},
		{"no window", `{"data":[{"id":"m"}]}`, `{}`, provider.ServerWindow{}, ""},
		{"nothing", "", "", provider.ServerWindow{}, ""},
		{"nonsense", `{"data":[{"id":"m","max_model_len":-5,"context_length":1e300,"context_window":"9"}]}`, `{"parameters":"num_ctx x","model_info":{"a.context_length":0}}`, provider.ServerWindow{}, ""},
		{"too small", `{"data":[{"id":"m","max_model_len":1,"context_length":511}]}`, `{"model_info":{"a.context_length":3}}`, provider.ServerWindow{}, ""},
		{"no JSON", `<html>`, `{"model_info":[1]}`, provider.ServerWindow{}, ""},
		{"too much", `{"data":[{"id":"m","max_model_len":5}],"x":"` + strings.Repeat("x", 5<<20) + `"}`, "", provider.ServerWindow{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
				text := map[string]string{"/v1/models": test.list, "/api/show": test.show, "/api/ps": test.ps}[r.URL.Path]
				if text == "" {
					w.WriteHeader(http.StatusNotFound)
				}
				fmt.Fprint(w, text)
			}))
			defer server.Close()
			got := openai.FindWindow(t.Context(), provider.Config{Model: "m", BaseURL: server.URL + "/v1", Key: "k"})
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if asked[0] != "GET /v1/models Bearer k" || len(asked) > 3 || len(asked) > 1 && asked[1] != "GET /api/ps Bearer k" || len(asked) == 3 && asked[2] != "POST /api/show Bearer k" {
				t.Errorf("requests %q", asked)
			}
		})
	}
}

// A redirect is not followed: it could lead the key to another server.
func TestFindWindow_FollowsNoRedirect(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	if got := openai.FindWindow(t.Context(), provider.Config{Model: "m", BaseURL: server.URL, Key: "k"}); got != (provider.ServerWindow{}) || reached {
		t.Errorf("got %+v, reached %v", got, reached)
	}
}

// The headers of the model are sent with the question. A deployment of Azure is not asked:
// its server lists no windows.
func TestFindWindow_HeadersAndVersions(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("X-Tenant"))
		fmt.Fprint(w, `{"data":[{"id":"m","max_model_len":9000}]}`)
	}))
	defer server.Close()
	c := provider.Config{Model: "m", BaseURL: server.URL, Header: map[string]string{"X-Tenant": "mine"}}
	if got := openai.FindWindow(t.Context(), c); got.Tokens != 9000 || len(asked) != 1 || asked[0] != "mine" {
		t.Errorf("got %+v after %q", got, asked)
	}
	c.APIVersion = "2024-10-21"
	if got := openai.FindWindow(t.Context(), c); got != (provider.ServerWindow{}) || len(asked) != 1 {
		t.Errorf("got %+v after %q", got, asked)
	}
}
