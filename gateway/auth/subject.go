package auth

import (
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
)

// Limits of tokens that are kept.
const (
	maxSubjects    = 4096           // callers, each with one token
	maxSubjectTime = 24 * time.Hour // even if the token lasts longer
)

// SubjectToken is a token of an issuer with which a caller has authenticated. It is a secret, which
// is in memory only. It is never printed or logged.
type SubjectToken struct {
	Token   string
	Issuer  string    // name of the issuer
	URL     string    // of the issuer
	IDToken bool      // the caller has signed in with a browser; else it is an access token
	Expires time.Time // not zero
}

// String implements fmt.Stringer.
func (SubjectToken) String() string { return "[redacted]" }

// GoString implements fmt.GoStringer.
func (SubjectToken) GoString() string { return "[redacted]" }

// LogValue implements slog.LogValuer.
func (t SubjectToken) LogValue() slog.Value { return slog.StringValue(t.String()) }

// SubjectToken returns the token of an issuer that was verified last for a caller. It is exchanged
// for a token of another server. It reports false for a caller who has no token, whose token has
// expired, or whose issuer has other keys since. It reports false for any other principal.
func (t *TokenStore) SubjectToken(caller identity.Principal) (SubjectToken, bool) {
	set := t.issuers.Load()
	if set == nil || caller.Kind != identity.Caller {
		return SubjectToken{}, false
	}
	return set.subjects.find(caller.Holder(), t.clock.Now())
}

// subjectTokens keeps one token of each caller. When it is full, the caller whose token ends first
// loses it. It is safe for concurrent use.
type subjectTokens struct {
	mu     sync.Mutex // guards what follows
	tokens map[identity.Principal]keptToken
}

// keptToken is a token that was verified with a version of its issuer's keys.
type keptToken struct {
	SubjectToken
	from    *issuerGuard
	version uint64
}

func newSubjectTokens() subjectTokens {
	return subjectTokens{tokens: map[identity.Principal]keptToken{}}
}

// add keeps the token of a caller in place of the one before.
func (s *subjectTokens) add(caller identity.Principal, token keptToken, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.tokens[caller]; !known && len(s.tokens) >= maxSubjects {
		s.makeRoom(now)
	}
	s.tokens[caller] = token
}

// makeRoom removes the tokens that have ended. If there is still no room, it removes the token that
// ends first. It must be called with mu held.
func (s *subjectTokens) makeRoom(now time.Time) {
	var victim identity.Principal
	for caller, token := range s.tokens {
		if !now.Before(token.Expires) {
			delete(s.tokens, caller)
		} else if first, ok := s.tokens[victim]; !ok || token.Expires.Before(first.Expires) {
			victim = caller
		}
	}
	if len(s.tokens) >= maxSubjects {
		delete(s.tokens, victim)
	}
}

// find returns the token of a caller.
func (s *subjectTokens) find(caller identity.Principal, now time.Time) (SubjectToken, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, ok := s.tokens[caller]
	if !ok {
		return SubjectToken{}, false
	}
	if !now.Before(token.Expires) || token.version != token.from.issuer.Verifier.KeyVersion() {
		delete(s.tokens, caller)
		return SubjectToken{}, false
	}
	return token.SubjectToken, true
}

// forget removes a token.
func (s *subjectTokens) forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for caller, kept := range s.tokens {
		if kept.Token == token {
			delete(s.tokens, caller)
		}
	}
}
