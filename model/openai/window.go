package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model/provider"
)

// Limits of what a server says about its models.
const (
	maxModelList    = 4 << 20 // bytes
	minServerWindow = 512     // a smaller one has no room for a conversation and is not believed
	maxServerWindow = 100_000_000
)

// FindWindow returns the context window that the server of c reports for its model. It
// looks in the list of models. Ollama reports it in /api/ps, which has the models in
// memory, or in /api/show. It returns the zero ServerWindow if the server does not say
// it, as with c.APIVersion.
func FindWindow(ctx context.Context, c provider.Config) (w provider.ServerWindow) {
	if c.APIVersion != "" {
		return w
	}
	base := c.Base(DefaultURL, "")
	if w := listedWindow(fetch(ctx, c, http.MethodGet, base+"/models", nil), c.Model); w.Tokens > 0 {
		return w
	}
	native := strings.TrimSuffix(base, "/v1")
	if w := loadedWindow(fetch(ctx, c, http.MethodGet, native+"/api/ps", nil), c.Model); w.Tokens > 0 {
		return w
	}
	body, _ := json.Marshal(map[string]string{"model": c.Model}) // a text always marshals
	return shownWindow(fetch(ctx, c, http.MethodPost, native+"/api/show", body))
}

// windowFields are the fields of a listed model that servers have for its window: vLLM,
// OpenRouter, Groq, and llama.cpp.
var windowFields = []string{"max_model_len", "context_length", "context_window", "meta.n_ctx"}

// modelFields are the fields for the window that the model was trained for. LM Studio and llama.cpp
// have them. The server may be set to less.
var modelFields = []string{"max_context_length", "meta.n_ctx_train"}

// listedWindow returns the window of a model in a list of models. A server with a list of one model
// serves no other model.
func listedWindow(list gjson.Result, name string) (w provider.ServerWindow) {
	models := list.Get("data").Array()
	for _, m := range models {
		if m.Get("id").Str != name && len(models) > 1 {
			continue
		}
		for i, field := range slices.Concat(windowFields, modelFields) {
			if n := windowSize(m.Get(field).Num); n > 0 {
				return provider.ServerWindow{Tokens: n, Source: "GET /models: " + field, AtMost: i >= len(windowFields)}
			}
		}
	}
	return w
}

// loadedWindow returns the window with which a model is in memory, in an answer of Ollama's
// /api/ps. A name without a tag means the tag latest.
func loadedWindow(doc gjson.Result, name string) (w provider.ServerWindow) {
	for _, m := range doc.Get("models").Array() {
		if n := windowSize(m.Get("context_length").Num); n > 0 && (m.Get("model").Str == name || m.Get("model").Str == name+":latest") {
			return provider.ServerWindow{Tokens: n, Source: "GET /api/ps: context_length"}
		}
	}
	return w
}

// shownWindow returns the window in an answer of Ollama's /api/show. It is the window that is set
// for the model, or else the window that it was trained for.
func shownWindow(doc gjson.Result) (w provider.ServerWindow) {
	for line := range strings.Lines(doc.Get("parameters").Str) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); name == "num_ctx" && err == nil && windowSize(n) > 0 {
			return provider.ServerWindow{Tokens: windowSize(n), Source: "POST /api/show: num_ctx"}
		}
	}
	doc.Get("model_info").ForEach(func(name, value gjson.Result) bool {
		if n := windowSize(value.Num); strings.HasSuffix(name.Str, ".context_length") && n > 0 {
			w = provider.ServerWindow{Tokens: n, Source: "POST /api/show: " + name.Str, AtMost: true}
		}
		return w.Tokens == 0
	})
	return w
}

// windowSize returns a number of tokens, or 0 if it is not plausible.
func windowSize(n float64) int {
	if n >= minServerWindow && n <= maxServerWindow {
		return int(n)
	}
	return 0
}

// fetch returns the JSON document at an address of the server, or an empty result. It
// follows no redirects, which could lead the key to another server.
func fetch(ctx context.Context, c provider.Config, method, url string, body []byte) (none gjson.Result) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return none
	}
	for name, value := range c.Header {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	client := http.Client{}
	if c.Client != nil {
		client = *c.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := client.Do(r)
	if err != nil {
		return none
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxModelList+1))
	if err != nil || answer.StatusCode != http.StatusOK || len(text) > maxModelList || !gjson.ValidBytes(text) {
		return none
	}
	return gjson.ParseBytes(text)
}
