// Package openai owns the wire protocol of OpenAI's chat completions, as it is
// spoken by OpenAI itself and by Ollama, vLLM, llama.cpp, LM Studio,
// OpenRouter, DeepSeek and whoever else serves it at another address.
//
// A Model sends one request and reads one answer, whole or in pieces. It
// repeats nothing (package steady does) and runs no tool. What a server sends
// is data: of all its dialects only what is understood is taken.
package openai

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/transport"
)

// Config says which model is asked, and where. Zero fields are the defaults.
type Config struct {
	Name        string // of the model, for messages
	Model       string // the provider's name for it
	BaseURL     string // "" is https://api.openai.com/v1
	Key         string // "" sends none
	Stream      bool
	MaxTokens   int           // of an answer; 0 leaves it to the provider
	Temperature *float64      // nil leaves it to the provider
	Window      int           // in tokens; 128,000
	Timeout     time.Duration // until an answer begins; transport's default
	Idle        time.Duration // between two pieces of it; transport's default
	Client      *http.Client  // nil is one of its own
}

// What a Config is by default.
const (
	defaultURL    = "https://api.openai.com/v1"
	defaultWindow = 128_000
)

// provider names what Answer.Reasoning belongs to.
const provider = "openai"

// Model is a model.Language. Safe for concurrent use.
type Model struct {
	config   Config
	endpoint *transport.Endpoint
	tools    chat.Toolbox
	maxField string // what the length of an answer is called there
}

// New makes a Model.
func New(c Config) *Model {
	c.BaseURL = strings.TrimRight(cmp.Or(c.BaseURL, defaultURL), "/")
	c.Window = cmp.Or(c.Window, defaultWindow)
	header := map[string]string{}
	if c.Key != "" {
		header["Authorization"] = "Bearer " + c.Key
	}
	return &Model{config: c, maxField: maxField(c.BaseURL), endpoint: transport.New(transport.Config{
		Name: c.Name, URL: c.BaseURL, Header: header, Key: c.Key, Begin: c.Timeout, Idle: c.Idle, Client: c.Client,
	})}
}

// maxField gives the name of the field for an answer's length. OpenAI's newer
// models refuse max_tokens; most other servers know nothing else, and would
// ignore the new name, so that answers had no bound.
func maxField(baseURL string) string {
	if u, err := url.Parse(baseURL); err == nil {
		host := "." + u.Hostname()
		if strings.HasSuffix(host, ".api.openai.com") || strings.HasSuffix(host, ".openai.azure.com") {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

// Window implements model.Language.
func (m *Model) Window() int { return m.config.Window }

// Generate implements model.Model.
//
// Errors: ctx's, or a *model.Trouble.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		tools := m.tools.Of(r.ToolJSON)
		body, err := m.endpoint.Send(ctx, "/chat/completions", m.request(r, tools))
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		defer body.Close()
		a := &answer{model: m, yield: yield, tools: tools}
		err = a.read(body)
		switch {
		case a.deaf:
		case err != nil:
			yield(model.Delta{}, err)
		default:
			yield(model.Delta{Answer: a.whole(r.Items)}, nil)
		}
	}
}

// read takes in an answer: pieces when they were asked for, one document when
// they were not or the server does not know how.
func (a *answer) read(body io.Reader) error {
	if !a.model.config.Stream {
		return a.document(body)
	}
	document, body, err := isDocument(body)
	if err != nil {
		return err
	}
	if document {
		return a.document(body)
	}
	return a.stream(body)
}
