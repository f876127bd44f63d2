package gateway

import (
	"bytes"
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
)

// ErrNotServed: no process serves the data directory.
var ErrNotServed = errors.New("no process serves the data directory")

// Client asks a gateway, over its socket or in this process. Errors that the
// gateway answers with are *errcode.Error, with code, message and details.
// All methods are safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string // the URL before /api; no slash at its end
	token string // sent as a bearer token unless ""
}

// inProcessBaseURL is the base of clients whose transport knows where to go.
const inProcessBaseURL = "http://rolecall"

// newClient makes a client that goes where transport leads.
func newClient(transport http.RoundTripper) *Client {
	return &Client{http: &http.Client{Transport: transport, CheckRedirect: noRedirect}, base: inProcessBaseURL}
}

// noRedirect follows no redirect: a gateway sends none, and a token is not for others.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Dial makes a client of the process that serves the data directory dir.
//
// Errors: ErrNotServed when there is none; otherwise what keeps the caller
// from the socket.
func Dial(dir string) (*Client, error) {
	path := filepath.Join(dir, SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	if len(path) > maxSocketPath {
		return nil, ErrNotServed // nobody can: Listen refuses
	}
	conn, err := dial(context.Background(), "", "")
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR):
		return nil, ErrNotServed
	case err != nil:
		return nil, fmt.Errorf("reach the process that serves %s: %w", dir, err)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("reach the process that serves %s: %w", dir, err)
	}
	return newClient(&http.Transport{DialContext: dial}), nil
}

// Remote makes a client of the gateway at base, an http or https URL, which
// acts as the holder of token; "" is nobody. Nothing is connected yet. A token
// is not sent over plain http but to this host.
func Remote(base, token string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errcode.New(errcode.InvalidArguments, "the address of a gateway is http or https, host and perhaps a path, as http://127.0.0.1:7464; a token is not part of it")
	}
	if token != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, errcode.New(errcode.InvalidArguments, "a token is not sent to %s over http, where others read it; use https", u.Host)
	}
	c := newClient(http.DefaultTransport.(*http.Transport).Clone())
	c.base = strings.TrimRight(u.String(), "/")
	return c.WithToken(token)
}

// WithToken gives the same client as the holder of a token; "" is who it is
// without one. The error says that the text can be no token.
func (c *Client) WithToken(token string) (*Client, error) {
	if token != "" && !isBearer(token) {
		return nil, errcode.New(errcode.InvalidArguments, "the token has characters that no token has, or none")
	}
	held := *c
	held.token = token
	return &held, nil
}

// Local makes a client of a handler in this process.
func Local(handler http.Handler) *Client { return newClient(inProcessTransport{handler}) }

// Close lets go of idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// call is one request.
type call struct {
	method string
	path   string // of segments that path made
	query  url.Values
	header http.Header
	body   any // sent as JSON unless nil
}

// path joins segments to an API path. Dots are escaped too: a role named ".."
// is no way up.
func path(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api/v1")
	for _, s := range segments {
		b.WriteString("/" + strings.ReplaceAll(url.PathEscape(s), ".", "%2E"))
	}
	return b.String()
}

// do sends a request and gives the answer of a success, for the caller to
// close. Any other answer is an error.
func (c *Client) do(ctx context.Context, q call) (*http.Response, error) {
	var body io.Reader
	if q.body != nil {
		text, err := json.Marshal(q.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, c.base+q.path, body)
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery = q.query.Encode()
	if q.header != nil {
		r.Header = q.header
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 {
		defer answer.Body.Close()
		return nil, refusalOf(answer)
	}
	return answer, nil
}

// refusalOf reads why a request was refused.
func refusalOf(answer *http.Response) error {
	var body refusal
	err := json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(&body)
	if err != nil || body.Error.Code == "" {
		return errcode.New(errcode.Internal, "%s %s was answered %d, by something that is no gateway", answer.Request.Method, answer.Request.URL.Path, answer.StatusCode)
	}
	return &errcode.Error{Code: body.Error.Code, Message: body.Error.Message, Details: body.Error.Details}
}

// doJSON sends a request and decodes the answer.
func doJSON[T any](ctx context.Context, c *Client, q call) (T, error) {
	var v T
	answer, err := c.do(ctx, q)
	if err != nil {
		return v, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		return v, fmt.Errorf("%s %s: read the answer: %w", q.method, q.path, err)
	}
	return v, nil
}

// list yields the items of all pages of a list.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := call{method: http.MethodGet, path: path, query: url.Values{"limit": {fmt.Sprint(maxLimit)}}}
		for name, values := range query {
			if values[0] != "" {
				q.query[name] = values
			}
		}
		for {
			page, err := doJSON[Page[T]](ctx, c, q)
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
			q.query.Set("cursor", page.Next)
		}
	}
}
