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

// The limits of a connection over HTTP.
const (
	dialTimeout   = 10 * time.Second
	streamTimeout = 5 * time.Second // for the headers of the response to GET
	maxErrorBody  = 64 << 10        // bytes of the body of an error response
	maxEvents     = 4 * maxRequests // lines of an event stream per second
)

// httpTransport is the http.RoundTripper of one connection to a server. It sends requests
// to the server's own address only and adds the configured headers to them. It limits
// responses, and ends with the connection.
type httpTransport struct {
	base    *http.Transport
	address *url.URL
	headers map[string]string
	secrets *connSecrets
	ctx     context.Context // ends with the connection

	streamTime time.Duration // streamTimeout, but in tests

	mu    sync.Mutex // guards fault
	fault error      // the first violation by the server
}

func newHTTPTransport(ctx context.Context, address *url.URL, headers map[string]string, secrets *connSecrets) *httpTransport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &httpTransport{
		address: address, headers: headers, secrets: secrets, ctx: ctx, streamTime: streamTimeout,
		base: &http.Transport{
			Proxy: nil, DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxErrorBody, IdleConnTimeout: time.Minute,
		},
	}
}

// client returns the HTTP client of the connection. It follows redirects within the server
// that keep the method. A redirect to another server would send arguments and secrets
// there.
func (w *httpTransport) client() *http.Client {
	return &http.Client{Transport: w, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 3:
			return errors.New("the server redirects in circles")
		case !w.isServer(r.URL) || r.Method != via[0].Method:
			return w.setFault(fmt.Errorf("the server redirects to %s; configure that address", r.URL.Redacted()))
		}
		return nil
	}}
}

// isServer reports whether u is an address of the server.
func (w *httpTransport) isServer(u *url.URL) bool {
	return u.Scheme == w.address.Scheme && u.Host == w.address.Host
}

// RoundTrip implements http.RoundTripper.
func (w *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !w.isServer(r.URL) {
		return nil, fmt.Errorf("%s is another server", r.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) })
	end := func() { stop(); cancel(nil) }
	r = r.Clone(ctx)
	for name, value := range w.headers {
		r.Header.Set(name, value)
	}
	response, err := w.send(r, cancel)
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &limitedBody{ReadCloser: response.Body, transport: w, ctx: ctx, end: end, stream: isStream(response), values: valueCounter{events: isStream(response)}, limiter: newLimiter(maxEvents)}
	response.Body = w.redactBody(response)
	if response.StatusCode >= 400 && r.Method == http.MethodPost && !w.isChallenge(response) {
		return w.readError(response)
	}
	return response, nil
}

// send sends a request. The stream for GET is optional. If its headers do not arrive in
// time, send answers 405, as a server without that stream does. The stream of a call that
// is resumed is not optional. A server may send its headers with the next event, and the
// call limits the time.
func (w *httpTransport) send(r *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	if r.Method != http.MethodGet {
		setSent(r.Context(), maySent)
		response, err := w.base.RoundTrip(r)
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
			setSent(r.Context(), notSent)
		}
		return response, err
	}
	if r.Header.Get("Last-Event-Id") != "" {
		return w.base.RoundTrip(r)
	}
	timer := time.AfterFunc(w.streamTime, func() { cancel(errNoStream) })
	response, err := w.base.RoundTrip(r)
	if timer.Stop() || err == nil && context.Cause(r.Context()) == nil {
		return response, err
	}
	if err == nil {
		_ = response.Body.Close()
	}
	return &http.Response{
		Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r,
	}, nil
}

// isChallenge reports whether the library handles a response, because it asks for authorization.
// For one call that happens once: the request is sent again with another token.
func (w *httpTransport) isChallenge(response *http.Response) bool {
	if w.secrets.auth == nil {
		return false
	}
	asks := response.StatusCode == http.StatusUnauthorized ||
		response.StatusCode == http.StatusForbidden && strings.Contains(response.Header.Get("WWW-Authenticate"), "insufficient_scope")
	if asks {
		w.secrets.challenged.Store(true)
	}
	return asks && firstChallenge(response.Request.Context())
}

var errNoStream = errors.New("the server sent no headers of its stream")

// statusError is a response with an error status.
type statusError struct {
	status      int
	sessionLost bool // the server does not know the session any more
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
}

// notProcessed reports whether the status means that the server has not acted on the
// request.
func (e *statusError) notProcessed() bool { return e.status < http.StatusInternalServerError }

// readError reads a response with an error status. A JSON-RPC message is returned as it
// is; any other response becomes a statusError.
func (w *httpTransport) readError(response *http.Response) (*http.Response, error) {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	_ = response.Body.Close()
	lost := isSessionLost(response)
	if err == nil && !lost && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) && bytes.Contains(text, []byte(`"jsonrpc"`)) {
		response.Body = io.NopCloser(bytes.NewReader(text))
		return response, nil
	}
	return nil, &statusError{response.StatusCode, lost}
}

// isSessionLost reports whether the server does not know the session any more.
func isSessionLost(response *http.Response) bool {
	return response.StatusCode == http.StatusNotFound && response.Request.Header.Get("Mcp-Session-Id") != ""
}

// setFault records err if it is the first violation, and returns it.
func (w *httpTransport) setFault(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = err
	}
	return err
}

// Fault returns the first violation of the protocol or its limits, nil if there is none.
func (w *httpTransport) Fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

func isStream(response *http.Response) bool {
	return strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
}

// limitedBody limits the size of a document, the rate of an event stream, and the values of each
// message. The library limits the size of each event.
type limitedBody struct {
	io.ReadCloser
	transport *httpTransport
	ctx       context.Context
	end       func()
	stream    bool
	read      int // bytes so far
	values    valueCounter
	limiter   *rate.Limiter // of the lines of a stream
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.values.add(p[:n]) {
		return 0, b.transport.setFault(errTooManyValues)
	}
	if b.stream {
		for range bytes.Count(p[:n], []byte("\n")) {
			if err := b.limiter.Wait(b.ctx); err != nil {
				return 0, err
			}
		}
		return n, err
	}
	if b.read += n; b.read > maxMessage {
		return 0, b.transport.setFault(errMessageTooLong)
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}
