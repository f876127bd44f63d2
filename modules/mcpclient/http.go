package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of the conversation with a server over HTTP.
const (
	dialTimeout   = 10 * time.Second
	streamTimeout = 5 * time.Second // for the head of the answer to GET
	maxRefusal    = 64 << 10        // bytes of an answer that is none
	maxEvents     = 4 * maxRequests // lines of an event stream a second
)

// httpTransport is the http.RoundTripper of one connection to a server. It adds what
// the operator says to requests to the server's own address and to no other,
// caps answers, and ends with the connection.
type httpTransport struct {
	base    *http.Transport
	address *url.URL
	headers map[string]string
	ctx     context.Context // ends with the connection

	mu    sync.Mutex // guards fault
	fault error      // what the server did wrong first
}

func newWeb(ctx context.Context, address *url.URL, headers map[string]string) *httpTransport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &httpTransport{
		address: address, headers: headers, ctx: ctx,
		base: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxRefusal, IdleConnTimeout: time.Minute,
		},
	}
}

// client makes the client of the connection. A redirect within the server is
// followed if it keeps the method: one that leads elsewhere would carry
// arguments and secrets along.
func (w *httpTransport) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 3:
			return errors.New("the server redirects in circles")
		case !w.own(r.URL) || r.Method != via[0].Method:
			return w.failed(fmt.Errorf("the server redirects to %s; configure that address", r.URL.Redacted()))
		}
		return nil
	}}
}

func (w *httpTransport) own(u *url.URL) bool {
	return u.Scheme == w.address.Scheme && u.Host == w.address.Host
}

// RoundTrip implements http.RoundTripper.
func (w *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !w.own(r.URL) {
		return nil, fmt.Errorf("%s is another server", r.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	end := func() { stop(); cancel(nil) }
	r = r.Clone(ctx)
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	answer, err := w.send(r, cancel)
	if err != nil {
		end()
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, web: w, ctx: ctx, end: end, stream: isStream(answer), pace: newLimiter(maxEvents)}
	if answer.StatusCode >= 400 && r.Method == http.MethodPost {
		return w.refused(answer)
	}
	return answer, nil
}

// send sends a request. A stream that the server may offer or not, and whose
// head it does not send in time, is not offered.
func (w *httpTransport) send(r *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	if r.Method != http.MethodGet {
		setSent(r.Context(), true)
		answer, err := w.base.RoundTrip(r)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			setSent(r.Context(), false)
		}
		return answer, err
	}
	late := time.AfterFunc(streamTimeout, func() { cancel(errNoStream) })
	answer, err := w.base.RoundTrip(r)
	if late.Stop() || err == nil && context.Cause(r.Context()) == nil {
		return answer, err
	}
	if err == nil {
		_ = answer.Body.Close()
	}
	return &http.Response{
		Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r,
	}, nil
}

var errNoStream = errors.New("the server sent no head of its stream")

// refusal is an answer with a status that says no.
type refusal struct {
	status  int
	session bool // it has forgotten us
}

func (e *refusal) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
}

// unsent says whether a server that answers so has not begun to work.
func (e *refusal) unsent() bool { return e.status < http.StatusInternalServerError }

// refused reads an answer that says no. One in the protocol's words is
// answered as it is; of any other the status is all that counts.
func (w *httpTransport) refused(answer *http.Response) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	_ = answer.Body.Close()
	gone := sessionGone(answer)
	if err == nil && !gone && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && bytes.Contains(text, []byte(`"jsonrpc"`)) {
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, nil
	}
	return nil, &refusal{answer.StatusCode, gone}
}

// sessionGone says whether the server has forgotten us.
func sessionGone(answer *http.Response) bool {
	return answer.StatusCode == http.StatusNotFound && answer.Request.Header.Get("Mcp-Session-Id") != ""
}

// failed keeps the first fault.
func (w *httpTransport) failed(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = err
	}
	return err
}

// Fault gives what the server did wrong; nil when it did nothing.
func (w *httpTransport) Fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

func isStream(answer *http.Response) bool {
	return strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
}

// body caps an answer: a document as a whole; of a stream how fast it comes,
// for each event has its own cap.
type body struct {
	io.ReadCloser
	web    *httpTransport
	ctx    context.Context
	end    func()
	stream bool
	read   int
	pace   *rate.Limiter // of the lines of a stream
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.stream {
		for range bytes.Count(p[:n], []byte("\n")) {
			if late := b.pace.Wait(b.ctx); late != nil {
				return 0, late
			}
		}
		return n, err
	}
	if b.read += n; b.read > maxMessage {
		return 0, b.web.failed(errTooLong)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
