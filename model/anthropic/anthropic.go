// Package anthropic is a client of the Messages API as Anthropic serves it:
// tools, pictures, prompt caching, thinking that is handed back, streamed or
// whole.
//
// A Model encodes chat.Turns and decodes one answer; package transport carries
// both, package steady asks again. Whatever an answer says is a proposal, and
// what it holds that this package does not know is passed over.
package anthropic

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/transport"
)

// What a Config that says nothing gets.
const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
	defaultWindow    = 200_000
)

// apiVersion is the version of the protocol that this package speaks.
const apiVersion = "2023-06-01"

// provider marks the reasoning that only this package reads.
const provider = "anthropic"

// Config says which model to ask, and how. Zero fields are the defaults.
type Config struct {
	Name        string // for messages; Model
	Model       string // by the provider's name, such as claude-sonnet-4-5
	BaseURL     string // with or without the /v1 at its end; Anthropic's own
	Key         string // sent in a header only, in no message
	Stream      bool
	MaxTokens   int           // of an answer, thinking too; 8192
	Temperature *float64      // nil leaves it to the provider
	Window      int           // tokens a request and its answer may have; 200,000
	Timeout     time.Duration // until an answer begins; as transport.Config.Begin
	Idle        time.Duration // between two pieces of it; as transport.Config.Idle
	Client      *http.Client  // nil is one of its own
}

// Model is a model.Language. Safe for concurrent use.
type Model struct {
	config   Config
	endpoint *transport.Endpoint
	tools    chat.Toolbox
}

// New makes a Model.
func New(c Config) *Model {
	c.Name = cmp.Or(c.Name, c.Model)
	c.MaxTokens = cmp.Or(c.MaxTokens, defaultMaxTokens)
	c.Window = cmp.Or(c.Window, defaultWindow)
	c.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, defaultURL), "/"), "/v1")
	header := map[string]string{"anthropic-version": apiVersion}
	if c.Key != "" {
		header["x-api-key"] = c.Key
	}
	return &Model{
		config: c,
		endpoint: transport.New(transport.Config{
			Name: c.Name, URL: c.BaseURL, Header: header, Key: c.Key,
			Begin: c.Timeout, Idle: c.Idle, Client: c.Client,
		}),
		tools: chat.Toolbox{Encode: encodeTool},
	}
}

// Window implements model.Language.
func (m *Model) Window() int { return m.config.Window }

// Generate implements model.Model.
//
// Errors: ctx's, or a *model.Trouble.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.ask(ctx, r, yield); err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// ask sends a request and passes its answer on. It gives nil when nobody
// listens any more.
func (m *Model) ask(ctx context.Context, r model.Request, yield func(model.Delta, error) bool) error {
	tools := m.tools.Of(r.ToolJSON)
	body, err := m.endpoint.Post(ctx, "/v1/messages", m.body(r, tools)...)
	if err != nil {
		return err
	}
	defer body.Close()
	msg := message{model: m, tools: tools}
	read := msg.whole
	if m.config.Stream {
		read = msg.stream
	}
	if listening, err := read(body, yield); err != nil || !listening {
		return err
	}
	answer, err := msg.answer(r.Items)
	if err != nil {
		return err
	}
	yield(model.Delta{Answer: answer}, nil)
	return nil
}

// whole reads a message that comes at once.
func (s *message) whole(body io.Reader, _ func(model.Delta, error) bool) (listening bool, err error) {
	data, err := transport.All(body)
	if err != nil {
		return false, err
	}
	return true, s.document(data)
}

// stream reads a message event by event, and passes on what can be shown.
func (s *message) stream(body io.Reader, yield func(model.Delta, error) bool) (listening bool, err error) {
	for event, err := range transport.Events(body) {
		if err != nil {
			return false, err
		}
		delta, err := s.event(event.Data)
		if err != nil {
			return false, err
		}
		if delta != (model.Delta{}) && !yield(delta, nil) {
			return false, nil
		}
		if s.done {
			return true, nil
		}
	}
	return false, s.model.broken("broke off in the middle of an answer")
}

// broken is the trouble of an answer that cannot be read; another may be whole.
func (m *Model) broken(what string) error {
	return model.Passing(errcode.LLMCallFailed, nil, "model %q %s", m.config.Name, what)
}
