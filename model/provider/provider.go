// Package provider implements what the clients of all providers of language models
// share: configuration, sending a request, and reading the answer, streamed or
// whole.
//
// A client defines a Protocol, which encodes requests and decodes answers:
//
//	func New(c provider.Config) *provider.Model {
//		return provider.New(c, provider.Protocol{URL: …, Request: …, Decoder: …})
//	}
//
// Its Limits say what it accepts of a Config. Package endpoint sends the requests. This
// package does not retry; package retry does.
package provider

import (
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// Config selects a model and how to ask it. Zero fields have defaults, some of which
// the client defines.
type Config struct {
	Name        string            // for error messages; default Model
	Model       string            // the provider's name of the model
	BaseURL     string            // default: the URL of the provider
	Key         string            // API key, only ever sent in a header; "" sends none
	Region      string            // of AWS, for providers there
	Credentials Credentials       // of AWS, for providers there, to sign requests without Key
	APIVersion  string            // version of the API, for providers with several; "" is the default
	Header      map[string]string // further headers of requests; their values are secret
	Stream      bool              // ask for the answer as a stream
	NoImages    bool              // the model sees no images, so none is sent
	MaxTokens   int               // most tokens of an answer, with reasoning; 0 leaves it to the provider
	Temperature *float64          // nil leaves it to the provider
	Window      int               // most tokens of a request and its answer
	Timeout     time.Duration     // until an answer begins; see endpoint.Config.FirstByteTimeout
	IdleTimeout time.Duration     // between two parts of it; see endpoint.Config.IdleTimeout
	Client      *http.Client      // nil uses a new one
	Options     Options
}

// Credentials are credentials of AWS.
type Credentials struct {
	AccessKeyID, SecretKey string
	SessionToken           string // "" for credentials that do not expire
}

// Secrets returns the key, the credentials and the secrets in the headers.
func (c Config) Secrets() []string {
	return append(redact.HeaderSecrets(c.Header), c.Key, c.Credentials.AccessKeyID, c.Credentials.SecretKey, c.Credentials.SessionToken)
}

// ServerWindow is the context window that a server reports for a model. The zero
// ServerWindow is unknown.
type ServerWindow struct {
	Tokens int    `json:"tokens"`
	Source string `json:"source"`           // the request and the field of its answer
	AtMost bool   `json:"atMost,omitempty"` // the server may be set to less
}

// Base returns BaseURL, or preset if BaseURL is empty. It removes slashes at the end. It also
// removes a final version, such as "/v1", that the protocol has in its paths.
func (c Config) Base(preset, version string) string {
	return strings.TrimSuffix(strings.TrimRight(cmp.Or(c.BaseURL, preset), "/"), version)
}

// Protocol encodes requests and decodes answers of one kind of provider.
type Protocol struct {
	ProviderID string            // recorded with reasoning data, which only this client reads
	URL        string            // to which requests are posted
	Header     map[string]string // in addition to the key

	// Fields are further fields of requests. ToolFields are further fields of requests whose tools
	// may be called. Both are values that encoding/json writes as an object, or nil.
	Fields, ToolFields any

	// KeyHeader is the header of the key, KeyPrefix what precedes the key in it.
	KeyHeader, KeyPrefix string

	// Sign signs a request without a key. bodyHash is the SHA-256 of its body in
	// hexadecimal. It must be safe for concurrent use. Nil signs nothing.
	Sign func(r *http.Request, bodyHash string) error

	// Events returns the events of a streamed answer, whose data are JSON objects. Nil
	// reads server-sent events.
	Events func(io.Reader) iter.Seq2[endpoint.Event, error]

	// Tool returns a tool in the provider's format, as chat.ToolCache.Encode.
	Tool func(name, description string, parameters []byte) []byte

	// Request returns the document to send. Nil tools offer no tools.
	Request func(r model.Request, tools *chat.ToolList) *endpoint.Document

	// Decoder returns the decoder of one answer.
	Decoder func(*ResponseReader) Decoder
}

// Model is the model.LanguageModel of a Protocol. Safe for concurrent use.
type Model struct {
	config   Config
	protocol Protocol
	endpoint *endpoint.Endpoint
	tools    chat.ToolCache

	prefix, toolPrefix []byte // the beginning of requests without and with tools; see documentPrefix
}

// New returns a Model that speaks p.
func New(c Config, p Protocol) *Model {
	c.Name = cmp.Or(c.Name, c.Model)
	header := map[string]string{}
	for _, all := range []map[string]string{c.Header, p.Header} {
		for name, value := range all {
			header[http.CanonicalHeaderKey(name)] = value
		}
	}
	if c.Key != "" {
		header[http.CanonicalHeaderKey(p.KeyHeader)] = p.KeyPrefix + c.Key
	}
	return &Model{
		config: c, protocol: p, tools: chat.ToolCache{Encode: p.Tool},
		prefix: documentPrefix(c.Options.Body, p.Fields), toolPrefix: documentPrefix(c.Options.Body, p.Fields, p.ToolFields),
		endpoint: endpoint.New(endpoint.Config{
			Name: c.Name, Model: c.Model, URL: p.URL, Header: header, Key: c.Key, Secrets: c.Secrets(), Sign: p.Sign,
			Binary: p.Events != nil, FirstByteTimeout: c.Timeout, IdleTimeout: c.IdleTimeout, Client: c.Client,
		}),
	}
}

// Window implements model.LanguageModel.
func (m *Model) Window() int { return m.config.Window }

// Generate implements model.Model.
//
// Its error is the error of ctx or a *model.Error.
func (m *Model) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		response := &ResponseReader{model: m, items: r.Items, yield: yield, Tools: m.tools.EncodeTools(r.ToolJSON)}
		answer, err := m.ask(ctx, r, response)
		switch {
		case response.stopped:
		case err != nil:
			yield(model.AnswerDelta{}, err)
		default:
			yield(model.AnswerDelta{Answer: answer}, nil)
		}
	}
}

// ask sends a request and returns its answer, or nil if the caller stopped reading.
func (m *Model) ask(ctx context.Context, r model.Request, response *ResponseReader) (*model.Answer, error) {
	body, err := m.endpoint.SendDocument(ctx, m.document(r, response.Tools))
	if err != nil {
		return nil, err
	}
	defer body.Close()
	d := m.protocol.Decoder(response)
	if err := response.read(body, d); err != nil || response.stopped {
		return nil, err
	}
	answer, err := d.FinalAnswer()
	if err == nil {
		answer.Usage = answer.Usage.Clamp()
	}
	return answer, err
}

// document returns the request for r with the further fields.
func (m *Model) document(r model.Request, tools *chat.ToolList) *endpoint.Document {
	r.NoImages = r.NoImages || m.config.NoImages
	d, prefix := m.protocol.Request(r, tools), m.prefix
	if tools != nil && !r.NoCalls { // else Request writes that none may be called
		prefix = m.toolPrefix
	}
	if prefix != nil {
		rest := d.Parts[0][len("{"):]
		d.Parts = append([][]byte{prefix, rest}, d.Parts[1:]...)
	}
	return d
}
