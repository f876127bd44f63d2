package oidc

import (
	"context"
	"slices"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/rolecall/rolecall/errcode"
)

// issuer is the result of a discovery, with the issuer's keys.
type issuer struct {
	metadata
	keys    gooidc.KeySet
	version uint64    // KeyVersion when keys was made
	at      time.Time // when it was discovered
}

// metadata is the part of the discovery document that is used.
type metadata struct {
	Issuer        string   `json:"issuer"`
	Keys          string   `json:"jwks_uri"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
	Introspection string   `json:"introspection_endpoint"`

	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	TokenAuth   []string `json:"token_endpoint_auth_methods_supported"`
	NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// algorithms returns the accepted signing algorithms that the issuer uses. All are
// asymmetric: only the issuer has the private key.
func (m metadata) algorithms() []string {
	accepted := []string{gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA}
	return slices.DeleteFunc(accepted, func(name string) bool { return len(m.Algorithms) > 0 && !slices.Contains(m.Algorithms, name) })
}

// discoveryTTL is how long the keys and the discovery document are used. It bounds
// how long a key that the issuer withdrew still verifies tokens. A token with an
// unknown key makes the keys be fetched at once.
const discoveryTTL = 5 * time.Minute

// discover returns the known issuer, or runs a discovery, unless the last one
// failed a moment ago. Concurrent callers wait for the same discovery. It is not
// cancelled with ctx, because other callers need its result.
func (s *Service) discover(ctx context.Context) (issuer, error) {
	select {
	case s.sem <- struct{}{}:
	case <-ctx.Done():
		return issuer{}, context.Cause(ctx)
	}
	if s.known != nil && s.config.Now().Sub(s.known.at) < discoveryTTL {
		defer s.unlock()
		if s.known.version != s.KeyVersion() {
			s.renewKeys()
		}
		return *s.known, nil
	}
	done := make(chan discovery, 1)
	go func() {
		defer s.unlock()
		done <- s.runDiscovery(context.WithoutCancel(ctx))
	}()
	select {
	case d := <-done:
		return d.issuer, d.err
	case <-ctx.Done():
		return issuer{}, context.Cause(ctx)
	}
}

func (s *Service) unlock() { <-s.sem }

// discovery is the result of a discovery.
type discovery struct {
	issuer issuer
	err    error
}

// runDiscovery must be called with sem held. When the issuer is unreachable, its
// last document is used for another discoveryTTL, with keys that are fetched again.
func (s *Service) runDiscovery(ctx context.Context) discovery {
	if s.known == nil && s.config.Now().Before(s.retryAt) {
		return discovery{err: s.lastErr}
	}
	document, err := s.fetchMetadata(ctx)
	switch {
	case err == nil:
		s.known = &issuer{metadata: document}
		s.delays.Reset()
	case s.known == nil:
		s.retryAt = s.config.Now().Add(s.delays.Next())
		s.lastErr = errcode.Wrap(errcode.ToolUnavailable, err, "auth service %s: its issuer is unreachable; try again later", s.config.Name)
		return discovery{err: s.lastErr}
	}
	s.renewKeys()
	s.known.at = s.config.Now()
	return discovery{issuer: *s.known}
}

// renewKeys makes a key set that has no keys yet. A key set of the library returns new keys a
// moment before it forgets the old keys. So a key set whose keys have changed is not used
// again. It must be called with sem held.
func (s *Service) renewKeys() {
	s.known.version = s.KeyVersion()
	s.known.keys = gooidc.NewRemoteKeySet(gooidc.ClientContext(context.Background(), s.client), s.known.Keys)
}

// fetchMetadata fetches the discovery document.
func (s *Service) fetchMetadata(ctx context.Context) (m metadata, err error) {
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, s.client), requestTimeout)
	defer cancel()
	provider, err := gooidc.NewProvider(ctx, s.config.Issuer)
	if err != nil {
		return metadata{}, err
	}
	err = provider.Claims(&m)
	return m, err
}
