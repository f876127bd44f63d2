package mcpauth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/rolecall/rolecall/org/hosts"
)

// Limits of requests to issuers and for metadata.
const (
	requestTimeout = 20 * time.Second
	dialTimeout    = 10 * time.Second
	maxDocument    = 1 << 20 // bytes of one response
	maxDocuments   = 16      // remembered during one login
)

// loopback has the addresses of this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// errRedirect is the error of a response that names another address.
var errRedirect = errors.New("it redirects to another address, which is not followed")

// httpClient returns the client for the requests of a login or a refresh. The server and issuers
// name the addresses, so the client follows no redirect and uses no proxy. It connects to public
// addresses and to addresses that the operator has configured. For a server on this machine it
// connects to this machine too.
func (s *Server) httpClient() *http.Client {
	g := &guardedTransport{server: s}
	g.base = &http.Transport{
		DialContext: g.dial, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: g, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}
}

// guardedTransport is the http.RoundTripper of httpClient.
type guardedTransport struct {
	server *Server
	base   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g *guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isSecure(r.URL.String()) {
		return nil, fmt.Errorf("%s has no https", r.URL.Host)
	}
	response, err := g.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err == nil && len(body) > maxDocument {
		err = fmt.Errorf("the response has more than %d bytes", maxDocument)
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, err
}

// dial connects to an address that is allowed.
func (g *guardedTransport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c := g.server.config
	d := net.Dialer{Timeout: dialTimeout}
	exchange := ""
	if c.Exchange != nil {
		exchange = hostPort(c.Exchange.TokenURL)
	}
	if address != hostPort(c.URL) && address != hostPort(c.Issuer) && address != exchange {
		var private []netip.Prefix
		if c.Private != nil {
			private = c.Private()
		}
		if u, err := url.Parse(c.URL); err == nil && hosts.IsLoopback(u.Hostname()) {
			private = append(private[:len(private):len(private)], loopback...)
		}
		d.Control = hosts.NewDialGuard(private).Control
	}
	return d.DialContext(ctx, network, address)
}

// hostPort returns the host and port of a URL, as they are dialed.
func hostPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" && u.Scheme == "http" {
		port = "80"
	} else if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// withCache returns a copy of a client that answers a repeated GET as it was answered first. So
// what was checked is what is used.
func withCache(c *http.Client) *http.Client {
	again := *c
	again.Transport = &cachingTransport{next: c.Transport, documents: map[string]document{}}
	return &again
}

// cachingTransport is the http.RoundTripper of withCache.
type cachingTransport struct {
	next http.RoundTripper

	mu        sync.Mutex // held during a request; guards documents
	documents map[string]document
}

// document is a response with its whole body.
type document struct {
	response http.Response
	body     []byte
}

// RoundTrip implements http.RoundTripper.
func (m *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return m.next.RoundTrip(r)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d, known := m.documents[r.URL.String()]
	if !known {
		if len(m.documents) >= maxDocuments {
			return nil, errors.New("too many documents are fetched")
		}
		response, err := m.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			return nil, err
		}
		d = document{*response, body}
		m.documents[r.URL.String()] = d
	}
	again := d.response
	again.Header, again.Request = d.response.Header.Clone(), r
	again.Body = io.NopCloser(bytes.NewReader(d.body))
	return &again, nil
}
