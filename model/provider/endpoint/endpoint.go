// Package endpoint sends requests to the HTTP endpoint of a provider. It maps HTTP
// failures to model errors and stops waiting for an answer that does not begin or
// stalls.
//
//	body, err := endpoint.New(config).Post(ctx, document)
//	for event, err := range endpoint.ReadEvents(body) { … }
//
// Each Post is one attempt; package retry repeats them. The key is only sent in a
// header and is removed from what a provider sends before that is quoted.
package endpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/model"
)

// Config is the address of a provider and the timeouts. Zero timeouts have the
// defaults given with them.
type Config struct {
	Name             string            // of the model, for error messages
	Model            string            // the provider's name of the model, for error messages
	URL              string            // to which requests are posted
	Header           map[string]string // sent with every request
	Key              string            // the key in Header; "" if there is none
	Secrets          []string          // the secrets in Header and of Sign in addition to Key; all are removed from messages
	Binary           bool              // answers are not lines of text
	FirstByteTimeout time.Duration     // until the answer begins; 5 minutes
	IdleTimeout      time.Duration     // between two parts of an answer; 1 minute
	Client           *http.Client      // nil uses a new one; redirects are never followed

	// Sign signs a complete request; nil signs nothing. bodyHash is the SHA-256 of its
	// body in hexadecimal.
	Sign func(r *http.Request, bodyHash string) error
}

// Endpoint sends requests to a provider. Safe for concurrent use.
type Endpoint struct {
	config  Config
	header  http.Header
	address string // host and path of the URL, for messages
	secret  *redact.Redactor
}

// New returns an Endpoint.
func New(config Config) *Endpoint {
	if config.FirstByteTimeout == 0 {
		config.FirstByteTimeout = 5 * time.Minute
	}
	if config.IdleTimeout == 0 {
		config.IdleTimeout = time.Minute
	}
	config.Client = withoutRedirects(config.Client)
	e := &Endpoint{config: config, header: http.Header{"Content-Type": {"application/json"}}, secret: redact.New(append(config.Secrets[:len(config.Secrets):len(config.Secrets)], config.Key)...)}
	if u, err := url.Parse(config.URL); err == nil {
		e.address = e.excerpt(u.Host + u.Path)
	}
	for name, value := range config.Header {
		e.header.Set(name, value)
	}
	return e
}

// withoutRedirects returns a copy of c that follows no redirects, which would send the
// conversation and the key to another server.
func withoutRedirects(c *http.Client) *http.Client {
	copied := http.Client{Transport: newTransport()}
	if c != nil {
		copied = *c
	}
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// newTransport returns a transport that keeps idle connections for many concurrent
// agents.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	t.DisableCompression = true // compression would delay the parts of a stream
	return t
}

// Causes with which the context of an attempt is cancelled.
var (
	errFirstByteTimeout = errors.New("the answer did not begin in time")
	errIdleTimeout      = errors.New("the answer stopped coming")
	errDone             = errors.New("the answer is read or closed")
)

// PostParts sends parts as one JSON document and returns the body of the answer, which the
// caller must close. Reading ends with an error when ctx is done, or when the answer
// does not begin or stalls.
//
// Its error is the cause of ctx or a *model.Error. So is an error of reading.
func (e *Endpoint) PostParts(ctx context.Context, parts ...[]byte) (io.ReadCloser, error) {
	return e.SendDocument(ctx, &Document{Parts: parts})
}

// SendDocument is Post for a Document, whose Done is called when its memory can be reused. A
// Document can be sent once.
func (e *Endpoint) SendDocument(ctx context.Context, d *Document) (io.ReadCloser, error) {
	defer d.retain()()
	ctx, cancel := context.WithCancelCause(ctx)
	b := &body{endpoint: e, ctx: ctx, remaining: e.config.FirstByteTimeout}
	b.timer = time.AfterFunc(e.config.FirstByteTimeout, func() {
		if b.begun.Load() {
			cancel(errIdleTimeout)
		}
		cancel(errFirstByteTimeout)
	})
	b.stop = func() {
		b.timer.Stop()
		cancel(errDone)
	}
	answer, err := e.do(ctx, d)
	if err != nil {
		b.stop()
		return nil, err
	}
	b.source = answer.Body
	if err = e.statusError(ctx, answer, b); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// do sends a request and returns its response, whatever its status.
func (e *Endpoint) do(ctx context.Context, d *Document) (*http.Response, error) {
	r, err := e.request(ctx, d)
	if err != nil {
		return nil, err
	}
	answer, err := e.config.Client.Do(r)
	switch {
	case err == nil:
		return answer, nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, e.connError(ctx, "closed the connection before it answered")
	}
	return nil, e.connError(ctx, "cannot be reached at "+e.excerpt(r.URL.Host)+": "+e.secret.RedactText(reason(err)))
}

func (e *Endpoint) request(ctx context.Context, d *Document) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL, nil)
	if err != nil {
		return nil, model.PermanentError(errcode.InvalidConfig, nil, "model %q: its baseURL is not a URL", e.config.Name)
	}
	if !IsHeaderValue(e.config.Key) {
		return nil, model.PermanentError(errcode.InvalidConfig, nil, "model %q: its apiKey contains a line break or another character that is invalid in a header", e.config.Name)
	}
	r.Header = e.header.Clone()
	r.ContentLength = d.size()
	r.GetBody = func() (io.ReadCloser, error) { return d.reader(), nil }
	if e.config.Sign != nil {
		if err := e.config.Sign(r, d.hash()); err != nil {
			return nil, model.PermanentError(errcode.InvalidConfig, nil, "model %q: its requests cannot be signed: %s", e.config.Name, e.excerpt(err.Error()))
		}
	}
	r.Body = d.reader()
	return r, nil
}

// IsHeaderValue reports whether text can be the value of a header: it has no line
// breaks or other control characters.
func IsHeaderValue(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// connError returns the error of an attempt without a complete answer. message
// describes it unless the context was cancelled, whose cause is used then.
func (e *Endpoint) connError(ctx context.Context, message string) error {
	cause := context.Cause(ctx)
	switch {
	case cause == errFirstByteTimeout:
		return e.transientError("did not begin to answer within %v", e.config.FirstByteTimeout)
	case cause == errIdleTimeout:
		return e.transientError("stopped in the middle of its answer: no data for %v", e.config.IdleTimeout)
	case cause != nil && cause != errDone:
		return cause
	}
	return e.transientError("%s", message)
}

// truncatedError is connError for an answer that had begun.
func (e *Endpoint) truncatedError(ctx context.Context, err error) error {
	return e.connError(ctx, "stopped in the middle of its answer: "+e.secret.RedactText(reason(err)))
}

// transientError returns a retryable model.Error that names the model.
func (e *Endpoint) transientError(format string, args ...any) *model.Error {
	return model.TransientError(errcode.LLMCallFailed, nil, "model %q "+format, append([]any{e.config.Name}, args...)...)
}

// reason returns the innermost error of a network error, which does not contain the
// URL.
func reason(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// body is the body of an answer, with timeouts.
type body struct {
	endpoint  *Endpoint
	source    io.ReadCloser
	ctx       context.Context
	begun     atomic.Bool   // content has arrived
	timer     *time.Timer   // cancels ctx
	remaining time.Duration // how long to wait for the next content
	lines     contentScanner
	stop      func()
	ended     bool // source has ended or failed
}

// Read implements io.Reader. It returns the same errors as Post. An answer begins
// with its first content: many servers send status 200 before they process the
// request. Comments and empty lines, which only keep the connection open, are not
// content.
func (b *body) Read(p []byte) (int, error) {
	began := time.Now()
	b.timer.Reset(b.remaining)
	n, err := b.source.Read(p)
	b.timer.Stop() // the time between two Reads does not count
	if n > 0 && b.endpoint.config.Binary || b.lines.hasContent(p[:n]) {
		b.begun.Store(true)
		b.remaining = b.endpoint.config.IdleTimeout
	} else {
		b.remaining -= time.Since(began)
	}
	if err != nil {
		b.ended = true
	}
	if err != nil && err != io.EOF {
		err = b.endpoint.truncatedError(b.ctx, err)
	}
	return n, err
}

// contentScanner distinguishes content from the lines that only keep a connection
// open: comments of a stream, and empty lines.
type contentScanner struct {
	inside  bool // the last line is not complete
	ignored bool // the last line is a comment or empty
}

// hasContent reports whether p, the next part of the body, has content.
func (s *contentScanner) hasContent(p []byte) (found bool) {
	for len(p) > 0 {
		if !s.inside {
			s.ignored = p[0] == ':' || p[0] == '\r' || p[0] == '\n'
		}
		found = found || !s.ignored
		end := bytes.IndexByte(p, '\n')
		if s.inside = end < 0; s.inside {
			break
		}
		p = p[end+1:]
	}
	return found
}

// Limits for draining the rest of an answer.
const (
	maxDrain     = 4 << 10
	drainTimeout = 20 * time.Millisecond
)

// Close implements io.Closer. The answer may be complete before its body has ended:
// Close reads a small rest, so that the connection can be reused.
func (b *body) Close() error {
	if !b.ended && b.ctx.Err() == nil {
		b.timer.Reset(drainTimeout)
		io.CopyN(io.Discard, b.source, maxDrain)
	}
	b.stop()
	return b.source.Close()
}
