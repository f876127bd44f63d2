// Package provider owns what the clients of all providers do alike: how a
// model behind an address is configured, asked, and its answer taken in, whole
// or in pieces.
//
// A client is a Protocol: it writes requests and decodes answers. Package
// transport carries both, package steady asks again. Whatever an answer says
// is a proposal.
package provider

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// Config says which model is asked, where, and how. Zero fields are the
// defaults, which a client may know better.
type Config struct {
	Name        string // for messages; Model
	Model       string // the provider's name for it
	BaseURL     string // the provider's own
	Key         string // sent in a header only, in no address and no message; "" sends none
	Stream      bool
	MaxTokens   int           // of an answer, thinking too; 0 leaves it to the provider
	Temperature *float64      // nil leaves it to the provider
	Window      int           // tokens a request and its answer may have
	Timeout     time.Duration // until an answer begins; as transport.Config.FirstByteTimeout
	IdleTimeout time.Duration // between two pieces of it; as transport.Config.IdleTimeout
	Client      *http.Client  // nil is one of its own
}

// Base gives the address without a slash at its end; preset for none. The
// version that a protocol has in its own paths may stand there too.
func (c Config) Base(preset, version string) string {
	return strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, preset), "/"), version)
}

// Protocol is how one kind of provider is spoken to.
type Protocol struct {
	ProviderID string            // marks the reasoning that only this client reads
	URL        string            // that requests are posted to
	Header     map[string]string // beside the key

	// KeyHeader is the header a key is sent in, KeyPrefix what stands before it.
	KeyHeader, KeyPrefix string

	// Tool gives the wire form of a tool, as chat.ToolCache.Encode.
	Tool func(name, description string, parameters []byte) []byte

	// Request gives the document to send. Nil tools offer none.
	Request func(r model.Request, tools *chat.Tools) *endpoint.Document

	// Decoder gives what decodes one answer into a Reply.
	Decoder func(*ResponseReader) Decoder
}

// Model is a model.LanguageModel. Safe for concurrent use.
type Model struct {
	config   Config
	protocol Protocol
	endpoint *endpoint.Endpoint
	tools    chat.ToolCache
}

// New makes a Model.
func New(c Config, p Protocol) *Model {
	c.Name = cmp.Or(c.Name, c.Model)
	header := map[string]string{}
	for name, value := range p.Header {
		header[name] = value
	}
	if c.Key != "" {
		header[p.KeyHeader] = p.KeyPrefix + c.Key
	}
	return &Model{config: c, protocol: p, tools: chat.ToolCache{Encode: p.Tool}, endpoint: endpoint.New(endpoint.Config{
		Name: c.Name, Model: c.Model, URL: p.URL, Header: header, Key: c.Key, FirstByteTimeout: c.Timeout, IdleTimeout: c.IdleTimeout, Client: c.Client,
	})}
}

// Window implements model.LanguageModel.
func (m *Model) Window() int { return m.config.Window }

// Generate implements model.Model.
//
// Errors: ctx's, or a *model.Error.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		reply := &ResponseReader{model: m, items: r.Items, yield: yield, Tools: m.tools.Get(r.ToolJSON)}
		answer, err := m.ask(ctx, r, reply)
		switch {
		case reply.stopped:
		case err != nil:
			yield(model.Delta{}, err)
		default:
			yield(model.Delta{Answer: answer}, nil)
		}
	}
}

// ask sends a request and gives its answer, unless nobody listens any more.
func (m *Model) ask(ctx context.Context, r model.Request, reply *ResponseReader) (*model.Answer, error) {
	body, err := m.endpoint.Send(ctx, m.protocol.Request(r, reply.Tools))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	d := m.protocol.Decoder(reply)
	if err := reply.read(body, d); err != nil || reply.stopped {
		return nil, err
	}
	answer, err := d.Answer()
	if err == nil {
		answer.Usage = answer.Usage.Clamp()
	}
	return answer, err
}
