// Package client calls the HTTP API of a gateway: over the socket of a data
// directory, over TCP, or in the same process.
//
//	c, err := client.Dial(dataDir)                              // the operator, on this machine
//	c, err := client.NewRemote("https://gw.example.com", token)    // the holder of a token
//	c := client.NewLocal(handler)                                  // a handler in this process
//
//	task, err := c.StartTask(ctx, client.TaskRequest{Text: "Write the report"}, "report-2026-01-31")
//	task, err = c.WaitTask(ctx, string(task.ID), time.Minute)
//	for agent, err := range c.ListAgents(ctx, task.ID, "") { … }
//
// A method is one request, or one for each page of a list. It ends with its context. Every
// error that the gateway returns is an *errcode.Error with a code, a message and details;
// errcode.CodeOf returns its code. Other errors are errors of the connection.
//
// The package neither retries nor caches, and it does not import the server. The commands of
// rolecall use it. docs/api.md describes the API.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/neterror"
	"github.com/rolecall/rolecall/org/hosts"
)

// ErrNotServed reports that no process serves the data directory.
var ErrNotServed = errors.New("no process serves the data directory")

// Client calls the API of a gateway over its socket, over TCP or in this
// process. Errors that the gateway returns are *errcode.Error, with code,
// message and details. All methods are safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string // URL before /api, without a slash at the end
	token string // bearer token; "" for none
}

// inProcessBaseURL is the base URL of clients whose transport ignores the host.
const inProcessBaseURL = "http://rolecall"

// newClient returns a client that sends requests with transport.
func newClient(transport http.RoundTripper) *Client {
	return &Client{http: &http.Client{Transport: transport, CheckRedirect: noRedirect}, base: inProcessBaseURL}
}

// noRedirect stops redirects. A gateway sends none, and a token must not be
// sent to another server.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Dial returns a client of the process that serves the data directory dir.
//
// Errors: ErrNotServed if there is no socket; otherwise the error of the connection. Requests
// fail with ErrNotServed, before they are sent, when the process has ended since.
func Dial(dir string) (*Client, error) {
	path := filepath.Join(dir, wire.SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
			err = ErrNotServed
		}
		return conn, err
	}
	if len(path) > wire.MaxSocketPath {
		return nil, ErrNotServed // Listen rejects such a path, too
	}
	conn, err := dial(context.Background(), "", "")
	switch {
	case errors.Is(err, ErrNotServed):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("connect to the process that serves %s: %w", dir, err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("connect to the process that serves %s: %w", dir, err)
	}
	return newClient(&http.Transport{DialContext: dial}), nil
}

// NewRemote returns a client of the gateway at base, an http or https URL,
// authenticated with token; "" sends no token. It does not connect yet. It
// rejects a token for plain http unless the host is a loopback address.
func NewRemote(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errcode.New(errcode.InvalidArguments, "invalid gateway address; want an http or https URL such as http://127.0.0.1:7464, without a token")
	}
	if token != "" && u.Scheme == "http" && !hosts.IsLoopback(u.Hostname()) {
		return nil, errcode.New(errcode.InvalidArguments, "a token is not sent to %s over http, because others could read it; use https", u.Host)
	}
	c := newClient(http.DefaultTransport.(*http.Transport).Clone())
	c.base = strings.TrimRight(u.String(), "/")
	return c.WithToken(token)
}

// WithToken returns a copy of the client that sends token; "" sends none. It
// returns an error if the text cannot be a token.
func (c *Client) WithToken(token string) (*Client, error) {
	if token != "" && !wire.ValidToken(token) {
		return nil, errcode.New(errcode.InvalidArguments, "the text is not a valid bearer token (RFC 6750)")
	}
	clone := *c
	clone.token = token
	return &clone, nil
}

// NewLocal returns a client of a handler in this process.
func NewLocal(handler http.Handler) *Client { return newClient(inProcessTransport{handler}) }

// IsLocal reports whether the client calls a handler in this process.
func (c *Client) IsLocal() bool {
	_, local := c.http.Transport.(inProcessTransport)
	return local
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// maxErrorBytes limits how much of an error response is read.
const maxErrorBytes = 1 << 20

// request is one request of a Client.
type request struct {
	method string
	path   string // built by apiPath
	query  url.Values
	header http.Header
	body   any // sent as JSON; nil for none
}

// apiPath joins segments to an API path. It also escapes dots, so that a role
// named ".." does not change the path.
func apiPath(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api/v1")
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E"))
	}
	return b.String()
}

// do sends a request and returns the response if it is a success; the caller
// must close its body. Other responses are returned as errors.
func (c *Client) do(ctx context.Context, req request) (*http.Response, error) {
	var body io.Reader
	if req.body != nil {
		text, err := json.Marshal(req.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", req.method, req.path, err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, req.method, c.base+req.path, body)
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = req.query.Encode()
	if req.header != nil {
		r.Header = req.header
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		return nil, responseError(answer)
	}
	return answer, nil
}

// explain returns the error of a request without an answer in plain words.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, ErrNotServed):
		return fmt.Errorf("%w any more: it has ended", ErrNotServed)
	case c.base == inProcessBaseURL:
		return neterror.ExplainHost(err, "the process that serves the data directory")
	}
	return neterror.Explain(err)
}

// responseError reads the error in a response.
func responseError(answer *http.Response) error {
	var body wire.ErrorBody
	err := json.NewDecoder(io.LimitReader(answer.Body, maxErrorBytes)).Decode(&body)
	if err != nil || body.Error.Code == "" {
		return errcode.New(errcode.Internal, "%s %s: unexpected response with status %d; the server is not a rolecall gateway", answer.Request.Method, answer.Request.URL.Path, answer.StatusCode)
	}
	return &errcode.Error{Code: body.Error.Code, Message: cmp.Or(body.Error.Message, "the server does not say why"), Details: body.Error.Details}
}

// doJSON sends a request and decodes the response.
func doJSON[T any](ctx context.Context, c *Client, req request) (T, error) {
	var v T
	answer, err := c.do(ctx, req)
	if err != nil {
		return v, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		return v, fmt.Errorf("%s %s: decode response: %w", req.method, req.path, err)
	}
	return v, nil
}

// listAll yields the items of all pages of a list. Empty query parameters are
// not sent.
func listAll[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		req := request{method: http.MethodGet, path: path, query: url.Values{"limit": {fmt.Sprint(wire.MaxPageItems)}}}
		for name, values := range query {
			if values[0] != "" {
				req.query[name] = values
			}
		}
		for {
			page, err := doJSON[wire.Page[T]](ctx, c, req)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range page.Items {
				if !yield(v, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			req.query.Set("cursor", page.Next)
		}
	}
}
