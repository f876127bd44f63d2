// Package gemini is a client of the Gemini API as Google serves it to
// developers: functions, pictures, thought signatures that are handed back,
// streamed or whole.
//
// A Model encodes chat.Turns and decodes one answer; package transport carries
// both, package steady asks again. Whatever an answer says is a proposal, and
// what it holds that this package does not know is passed over.
package gemini

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/transport"
)

// What a Config that says nothing gets.
const (
	defaultURL    = "https://generativelanguage.googleapis.com"
	defaultWindow = 1_000_000
)

// provider marks the reasoning that only this package reads.
const provider = "gemini"

// Config says which model to ask, and how. Zero fields are the defaults.
type Config struct {
	Name        string // for messages; Model
	Model       string // by the provider's name, such as gemini-2.5-flash
	BaseURL     string // with or without the /v1beta at its end; Google's own
	Key         string // sent in a header only, in no address and no message
	Stream      bool
	MaxTokens   int           // of an answer, thoughts too; 0 leaves it to the provider
	Temperature *float64      // nil leaves it to the provider
	Window      int           // tokens a request and its answer may have; 1,000,000
	Timeout     time.Duration // until an answer begins; as transport.Config.Begin
	Idle        time.Duration // between two pieces of it; as transport.Config.Idle
	Client      *http.Client  // nil is one of its own
}

// Model is a model.Language. Safe for concurrent use.
type Model struct {
	config   Config
	path     string
	endpoint *transport.Endpoint
	tools    chat.Toolbox
}

// New makes a Model.
func New(c Config) *Model {
	c.Name = cmp.Or(c.Name, c.Model)
	c.Window = cmp.Or(c.Window, defaultWindow)
	c.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, defaultURL), "/"), "/v1beta")
	header := map[string]string{}
	if c.Key != "" {
		header["x-goog-api-key"] = c.Key
	}
	return &Model{
		config: c,
		path:   path(c),
		endpoint: transport.New(transport.Config{
			Name: c.Name, URL: c.BaseURL, Header: header, Key: c.Key,
			Begin: c.Timeout, Idle: c.Idle, Client: c.Client,
		}),
		tools: chat.Toolbox{Encode: encodeTool},
	}
}

func path(c Config) string {
	name := "/v1beta/models/" + url.PathEscape(strings.TrimPrefix(c.Model, "models/"))
	if c.Stream {
		return name + ":streamGenerateContent?alt=sse"
	}
	return name + ":generateContent"
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
	body, err := m.endpoint.Post(ctx, m.path, m.body(r, tools)...)
	if err != nil {
		return err
	}
	defer body.Close()
	c := candidate{model: m, tools: tools}
	read := c.whole
	if m.config.Stream {
		read = c.stream
	}
	if listening, err := read(body, yield); err != nil || !listening {
		return err
	}
	answer, err := c.answer(r.Items)
	if err != nil {
		return err
	}
	yield(model.Delta{Answer: answer}, nil)
	return nil
}

// whole reads an answer that comes at once.
func (c *candidate) whole(body io.Reader, _ func(model.Delta, error) bool) (listening bool, err error) {
	data, err := transport.All(body)
	if err != nil {
		return false, err
	}
	_, err = c.take(data)
	return true, err
}

// stream reads an answer chunk by chunk to the end of the stream, which has no
// other mark, and passes on what can be shown.
func (c *candidate) stream(body io.Reader, yield func(model.Delta, error) bool) (listening bool, err error) {
	for event, err := range transport.Events(body) {
		if err != nil {
			return false, err
		}
		deltas, err := c.take(event.Data)
		if err != nil {
			return false, err
		}
		for _, delta := range deltas {
			if !yield(delta, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

// broken is the trouble of an answer that cannot be used; another may be.
func (m *Model) broken(what string) error {
	return model.Passing(errcode.LLMCallFailed, nil, "model %q %s", m.config.Name, what)
}
