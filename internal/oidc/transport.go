package oidc

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	maxResponse = 1 << 20 // bytes of one response of an issuer
	maxCached   = 8       // documents in a cache; an issuer has two

	// documentTTL is how long a fetched document is served from the cache. Any
	// client can send many tokens with unknown keys; they fetch the keys at most this often.
	documentTTL = time.Second
)

// newCachingClient returns a copy of c that limits the size of responses and how
// often it fetches the same document. It calls changed when a document is not what it was.
func newCachingClient(c *http.Client, now func() time.Time, changed func()) *http.Client {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	caching := *c
	caching.Transport = &cachingTransport{next: next, now: now, changed: changed, documents: map[string]document{}}
	return &caching
}

// cachingTransport is an http.RoundTripper that limits the size of responses. It
// answers a GET without query and credentials from its cache for documentTTL.
type cachingTransport struct {
	next    http.RoundTripper
	now     func() time.Time
	changed func()

	mu        sync.Mutex // guards documents
	documents map[string]document
}

// document is a response with its whole body.
type document struct {
	status int
	header http.Header
	body   []byte
	at     time.Time // when it was fetched
}

// RoundTrip implements http.RoundTripper.
func (c *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	cacheable := r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && r.URL.RawQuery == ""
	if d, ok := c.lookup(url); cacheable && ok {
		return d.response(r), nil
	}
	response, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxResponse {
		return nil, fmt.Errorf("the response has more than %d bytes", maxResponse)
	}
	d := document{response.StatusCode, response.Header, body, c.now()}
	if cacheable && response.StatusCode == http.StatusOK {
		c.store(url, d)
	}
	return d.response(r), nil
}

// lookup returns a cached document that is not older than documentTTL.
func (c *cachingTransport) lookup(url string) (document, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.documents[url]
	return d, ok && c.now().Sub(d.at) < documentTTL
}

func (c *cachingTransport) store(url string, d document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, known := c.documents[url]
	if len(c.documents) >= maxCached && !known {
		clear(c.documents)
	}
	c.documents[url] = d
	if known && !bytes.Equal(before.body, d.body) {
		c.changed()
	}
}

// response returns the document as a response to r.
func (d document) response(r *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(d.status), StatusCode: d.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: r,
	}
}
