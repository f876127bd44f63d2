package oidc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/rolecall/rolecall/errcode"
)

// issuer is what discovery found, with the keys for a while.
type issuer struct {
	metadata
	keys  gooidc.KeySet
	since time.Time // when that was
}

// metadata is what the discovery document says.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Introspection string   `json:"introspection_endpoint"`
}

// algorithms are those that the issuer signs with, of those with a key that it
// alone has.
func (m metadata) algorithms() []string {
	ours := []string{gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA}
	return slices.DeleteFunc(ours, func(name string) bool { return len(m.Algorithms) > 0 && !slices.Contains(m.Algorithms, name) })
}

// keysAge is how long keys are kept, and what discovery said: a key that the
// issuer withdrew verifies no longer than that. A token with a key that is not
// among them has them fetched at once.
const keysAge = 5 * time.Minute

// discover gives the issuer: as it was found, or by a new try unless the last
// one failed a moment ago. Who comes meanwhile waits for it. A try ends by its
// own patience, not with who began it: others need what it finds.
func (s *Service) discover(ctx context.Context) (issuer, error) {
	select {
	case s.sem <- struct{}{}:
	case <-ctx.Done():
		return issuer{}, context.Cause(ctx)
	}
	if s.found != nil && s.config.Now().Sub(s.found.since) < keysAge {
		defer s.next()
		return *s.found, nil
	}
	tried := make(chan discovery, 1)
	go func() {
		defer s.next()
		tried <- s.find(context.WithoutCancel(ctx))
	}()
	select {
	case t := <-tried:
		return t.found, t.err
	case <-ctx.Done():
		return issuer{}, context.Cause(ctx)
	}
}

// next ends a turn.
func (s *Service) next() { <-s.sem }

// discovery is what came of looking for the issuer.
type discovery struct {
	found issuer
	err   error
}

// find looks for the issuer. When it says nothing now, what it said last is
// good for a while more, if its keys can be had.
func (s *Service) find(ctx context.Context) discovery {
	if s.found == nil && s.config.Now().Before(s.retryAt) {
		return discovery{err: s.failed}
	}
	said, err := s.document(ctx)
	switch {
	case err == nil:
		s.found = &issuer{metadata: said}
		s.pause.Reset()
	case s.found == nil:
		s.retryAt = s.config.Now().Add(s.pause.Next())
		s.failed = errcode.Wrap(errcode.ToolUnavailable, err, "auth service %s: its issuer cannot be asked now; try again later", s.config.Name)
		return discovery{err: s.failed}
	}
	s.found.keys, s.found.since = gooidc.NewRemoteKeySet(gooidc.ClientContext(context.Background(), s.client), s.found.Keys), s.config.Now()
	return discovery{found: *s.found}
}

// document asks for the discovery document.
func (s *Service) document(ctx context.Context) (said metadata, err error) {
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, s.client), patience)
	defer cancel()
	provider, err := gooidc.NewProvider(ctx, s.config.Issuer)
	if err != nil {
		return metadata{}, err
	}
	err = provider.Claims(&said)
	return said, err
}

// maxAnswer is the most bytes of one answer of an issuer.
const maxAnswer = 1 << 20

// documentTTL is how long an issuer's document is taken for fresh: tokens with keys
// that nobody knows, of which anybody can send many, ask for it once in that time.
const documentTTL = time.Second

// bounded gives a client with limits on what it reads, and on how often it
// reads the same document.
func bounded(c *http.Client, now func() time.Time) *http.Client {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own := *c
	own.Transport = &cachingTransport{next: next, now: now, read: map[string]document{}}
	return &own
}

// cachingTransport is an http.RoundTripper that bounds answers and, of documents that are
// only got, gives the last one again for a moment.
type cachingTransport struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex // guards read
	read map[string]document
}

// document is an answer that was read whole.
type document struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
}

// RoundTrip implements http.RoundTripper.
func (c *cachingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	fresh := r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && r.URL.RawQuery == ""
	if d, ok := c.recent(url); fresh && ok {
		return d.response(r), nil
	}
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	d := document{answer.StatusCode, answer.Header, body, c.now()}
	if fresh && answer.StatusCode == http.StatusOK {
		c.keep(url, d)
	}
	return d.response(r), nil
}

func (c *cachingTransport) recent(url string) (document, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.read[url]
	return d, ok && c.now().Sub(d.at) < documentTTL
}

// keep remembers a document; an issuer has two.
func (c *cachingTransport) keep(url string, d document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.read) >= 8 {
		clear(c.read)
	}
	c.read[url] = d
}
