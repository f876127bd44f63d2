// Package endpoint owns how a request gets to a provider's HTTP endpoint and
// its answer back: what its failures mean, and when to stop waiting.
//
// One Post is one attempt; package steady repeats. A key is sent in a header
// and stands in no error: what a provider answers is searched for it.
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

// Config says where a provider is and how long it may take. Zero times are
// the defaults.
type Config struct {
	Name             string            // of the model, for messages
	Model            string            // the provider's name for it, for messages
	URL              string            // that is posted to
	Header           map[string]string // sent with every request
	Key              string            // the secret in Header, which no message may hold
	FirstByteTimeout time.Duration     // until the answer begins; 5 minutes
	IdleTimeout      time.Duration     // between two pieces of an answer; 1 minute
	Client           *http.Client      // nil is one of its own; neither follows a redirect
}

// Endpoint sends requests to a provider. Safe for concurrent use.
type Endpoint struct {
	config Config
	header http.Header
	place  string // host and path of the URL, for messages
	secret *redact.Redactor
}

// New makes an Endpoint.
func New(config Config) *Endpoint {
	if config.FirstByteTimeout == 0 {
		config.FirstByteTimeout = 5 * time.Minute
	}
	if config.IdleTimeout == 0 {
		config.IdleTimeout = time.Minute
	}
	config.Client = client(config.Client)
	e := &Endpoint{config: config, header: http.Header{"Content-Type": {"application/json"}}, secret: redact.New(config.Key)}
	if u, err := url.Parse(config.URL); err == nil {
		e.place = e.short(u.Host + u.Path)
	}
	for name, value := range config.Header {
		e.header.Set(name, value)
	}
	return e
}

// client gives a client like c that follows no redirect: it would carry the
// conversation, and the key, elsewhere.
func client(c *http.Client) *http.Client {
	own := http.Client{Transport: newTransport()}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// newTransport keeps as many connections as agents may ask at once.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 256, 256
	t.DisableCompression = true // pieces come as they are made
	return t
}

// What ends an attempt before its answer.
var (
	errFirstByteTimeout = errors.New("the answer did not begin in time")
	errIdleTimeout      = errors.New("the answer stopped coming")
	errDone             = errors.New("read to its end")
)

// Post sends the parts of one JSON document and gives the body of a good
// answer, which the caller closes. It ends when ctx does, when the answer does
// not begin or stops coming.
//
// Errors: ctx's, or a *model.Error.
func (e *Endpoint) Post(ctx context.Context, parts ...[]byte) (io.ReadCloser, error) {
	return e.Send(ctx, &Document{Parts: parts})
}

// Send is Post for a document whose owner wants its bytes back. It is sent
// once.
func (e *Endpoint) Send(ctx context.Context, d *Document) (io.ReadCloser, error) {
	defer d.open()()
	ctx, cancel := context.WithCancelCause(ctx)
	b := &body{endpoint: e, ctx: ctx, left: e.config.FirstByteTimeout}
	b.watch = time.AfterFunc(e.config.FirstByteTimeout, func() {
		if b.begun.Load() {
			cancel(errIdleTimeout)
		}
		cancel(errFirstByteTimeout)
	})
	b.stop = func() {
		b.watch.Stop()
		cancel(errDone)
	}
	answer, err := e.do(ctx, d)
	if err != nil {
		b.stop()
		return nil, err
	}
	b.from = answer.Body
	if err = e.statusError(ctx, answer, b); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// do sends a request and gives its answer, whatever that says.
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
	return nil, e.connError(ctx, "cannot be reached at "+e.short(r.URL.Host)+": "+e.secret.Redact(reason(err)))
}

func (e *Endpoint) request(ctx context.Context, d *Document) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL, nil)
	if err != nil {
		return nil, model.Permanent(errcode.InvalidConfig, nil, "model %q: its baseURL is no address", e.config.Name)
	}
	if strings.ContainsFunc(e.config.Key, invalidHeaderByte) {
		return nil, model.Permanent(errcode.InvalidConfig, nil, "model %q: its apiKey holds a line break or another character that no key has", e.config.Name)
	}
	r.Header = e.header.Clone()
	r.ContentLength = d.size()
	r.GetBody = func() (io.ReadCloser, error) { return d.reader(), nil }
	r.Body = d.reader()
	return r, nil
}

// invalidHeaderByte says whether a character may not stand in a header.
func invalidHeaderByte(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// connError words an attempt that got no answer, or not all of it: what says
// which, for a cause that is not known here.
func (e *Endpoint) connError(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	switch {
	case cause == errFirstByteTimeout:
		return e.transient("did not begin to answer within %v", e.config.FirstByteTimeout)
	case cause == errIdleTimeout:
		return e.transient("stopped in the middle of an answer: nothing came for %v", e.config.IdleTimeout)
	case cause != nil && cause != errDone:
		return cause
	}
	return e.transient("%s", what)
}

// truncated is broken for an answer that had begun.
func (e *Endpoint) truncated(ctx context.Context, err error) error {
	return e.connError(ctx, "broke off in the middle of an answer: "+e.secret.Redact(reason(err)))
}

// transient is a trouble that may pass.
func (e *Endpoint) transient(format string, args ...any) *model.Error {
	return model.Transient(errcode.LLMCallFailed, nil, "model %q "+format, append([]any{e.config.Name}, args...)...)
}

// reason gives the last cause of a network error: it names no URL.
func reason(err error) string {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// body is an answer that may stop coming.
type body struct {
	endpoint *Endpoint
	from     io.ReadCloser
	ctx      context.Context
	begun    atomic.Bool   // something of it came
	watch    *time.Timer   // its function cancels ctx
	left     time.Duration // that may be waited until something comes
	lines    lines
	stop     func()
	ended    bool // nothing more can be read
}

// Read implements io.Reader; its errors are those of Post. An answer begins
// with its first piece: many a server says 200 and then reads the question.
// What only keeps the connection open is no piece.
func (b *body) Read(p []byte) (int, error) {
	began := time.Now()
	b.watch.Reset(b.left)
	n, err := b.from.Read(p)
	b.watch.Stop() // who reads may take its time
	if b.lines.say(p[:n]) {
		b.begun.Store(true)
		b.left = b.endpoint.config.IdleTimeout
	} else {
		b.left -= time.Since(began)
	}
	if err != nil {
		b.ended = true
	}
	if err != nil && err != io.EOF {
		err = b.endpoint.truncated(b.ctx, err)
	}
	return n, err
}

// lines tells what a body says from what only keeps its connection open:
// comments of a stream, and empty lines.
type lines struct{ inside, silent bool } // of the last line

// say takes in what came and says whether it says anything.
func (l *lines) say(p []byte) (something bool) {
	for len(p) > 0 {
		if !l.inside {
			l.silent = p[0] == ':' || p[0] == '\r' || p[0] == '\n'
		}
		something = something || !l.silent
		end := bytes.IndexByte(p, '\n')
		if l.inside = end < 0; l.inside {
			break
		}
		p = p[end+1:]
	}
	return something
}

// How much of an answer that nobody wants is read, and how long at most.
const (
	maxRest = 4 << 10
	restFor = 20 * time.Millisecond
)

// Close implements io.Closer. An answer may be complete before its body is:
// what little comes at once is read, so that the connection can be used again.
func (b *body) Close() error {
	if !b.ended && b.ctx.Err() == nil {
		b.watch.Reset(restFor)
		io.CopyN(io.Discard, b.from, maxRest)
	}
	b.stop()
	return b.from.Close()
}
