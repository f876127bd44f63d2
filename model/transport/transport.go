// Package transport owns how a request gets to a provider's HTTP endpoint and
// its answer back: what its failures mean, and when to stop waiting.
//
// One Post is one attempt; package steady repeats. A key is sent in a header
// and stands in no error: what a provider answers is searched for it.
package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// Config says where a provider is and how long it may take. Zero times are
// the defaults.
type Config struct {
	Name   string            // of the model, for messages
	URL    string            // without a slash at its end
	Header map[string]string // sent with every request
	Key    string            // the secret in Header, which no message may hold
	Begin  time.Duration     // until the answer begins; 5 minutes
	Idle   time.Duration     // between two pieces of an answer; 1 minute
	Client *http.Client      // nil is one of its own; neither follows a redirect
}

// Endpoint sends requests to a provider. Safe for concurrent use.
type Endpoint struct {
	config Config
	header http.Header
}

// New makes an Endpoint.
func New(config Config) *Endpoint {
	if config.Begin == 0 {
		config.Begin = 5 * time.Minute
	}
	if config.Idle == 0 {
		config.Idle = time.Minute
	}
	config.Client = client(config.Client)
	e := &Endpoint{config, http.Header{"Content-Type": {"application/json"}}}
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
	errBegin = errors.New("the answer did not begin in time")
	errIdle  = errors.New("the answer stopped coming")
	errDone  = errors.New("read to its end")
)

// Post sends the parts of one JSON document to a path and gives the body of a
// good answer, which the caller closes. It ends when ctx does, when the answer
// does not begin or stops coming.
//
// Errors: ctx's, or a *model.Trouble.
func (e *Endpoint) Post(ctx context.Context, path string, parts ...[]byte) (io.ReadCloser, error) {
	return e.Send(ctx, path, &Document{Parts: parts})
}

// Send is Post for a document whose owner wants its bytes back. It is sent
// once.
func (e *Endpoint) Send(ctx context.Context, path string, d *Document) (io.ReadCloser, error) {
	defer d.open()()
	ctx, cancel := context.WithCancelCause(ctx)
	var begun atomic.Bool
	watch := time.AfterFunc(e.config.Begin, func() {
		if begun.Load() {
			cancel(errIdle)
		}
		cancel(errBegin)
	})
	stop := func() {
		watch.Stop()
		cancel(errDone)
	}
	r, err := e.request(ctx, path, d)
	if err != nil {
		stop()
		return nil, err
	}
	answer, err := e.config.Client.Do(r)
	if err != nil {
		defer stop()
		return nil, e.broken(ctx, "cannot be reached at "+r.URL.Host, err)
	}
	body := &body{endpoint: e, from: answer.Body, ctx: ctx, begun: &begun, watch: watch, stop: stop}
	if answer.StatusCode/100 == 2 {
		return body, nil
	}
	defer body.Close()
	return nil, e.refused(ctx, answer, body)
}

func (e *Endpoint) request(ctx context.Context, path string, d *Document) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL+path, nil)
	if err != nil {
		return nil, model.Lasting(errcode.InvalidConfig, nil, "model %q: its baseURL is no address", e.config.Name)
	}
	r.Header = e.header.Clone()
	r.ContentLength = d.size()
	r.GetBody = func() (io.ReadCloser, error) { return d.reader(), nil }
	r.Body = d.reader()
	return r, nil
}

// broken words an attempt that got no answer, or not all of it: what says
// which, for a cause that is not known here.
func (e *Endpoint) broken(ctx context.Context, what string, err error) error {
	cause := context.Cause(ctx)
	switch {
	case cause == errBegin:
		return e.passing("did not begin to answer within %v", e.config.Begin)
	case cause == errIdle:
		return e.passing("stopped in the middle of an answer: nothing came for %v", e.config.Idle)
	case cause != nil && cause != errDone:
		return cause
	}
	return e.passing("%s: %s", what, e.clean(reason(err)))
}

// passing is a trouble that may pass.
func (e *Endpoint) passing(format string, args ...any) *model.Trouble {
	return model.Passing(errcode.LLMCallFailed, nil, "model %q "+format, append([]any{e.config.Name}, args...)...)
}

// reason gives the last cause of a network error: it names no URL.
func reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op + " " + op.Err.Error()
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err.Error()
}

// clean takes the key out of a text.
func (e *Endpoint) clean(text string) string {
	if e.config.Key == "" {
		return text
	}
	return strings.ReplaceAll(text, e.config.Key, "***")
}

// body is an answer that may stop coming.
type body struct {
	endpoint *Endpoint
	from     io.ReadCloser
	ctx      context.Context
	begun    *atomic.Bool // something of it came
	watch    *time.Timer  // its function cancels ctx
	stop     func()
	ended    bool // nothing more can be read
}

// Read implements io.Reader; its errors are those of Post. An answer begins
// with its first piece: many a server says 200 and then reads the question.
func (b *body) Read(p []byte) (int, error) {
	wait := b.endpoint.config.Idle
	if !b.begun.Load() {
		wait = b.endpoint.config.Begin
	}
	b.watch.Reset(wait)
	n, err := b.from.Read(p)
	b.watch.Stop() // who reads may take its time
	if n > 0 {
		b.begun.Store(true)
	}
	if err != nil {
		b.ended = true
	}
	if err != nil && err != io.EOF {
		err = b.endpoint.broken(b.ctx, "broke off in the middle of an answer", err)
	}
	return n, err
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
