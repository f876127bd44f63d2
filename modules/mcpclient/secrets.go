package mcpclient

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// maxTokens is how many tokens of one connection are hidden. These are the newest tokens.
const maxTokens = 16

// connSecrets are the secrets of one connection. These are the secrets of the configuration, and
// the tokens with which the connection is authorized. The tokens change. It is safe for concurrent
// use.
type connSecrets struct {
	fixed []string
	auth  mcpauth.Authorizer // nil for none

	challenged atomic.Bool // the server has asked for authorization

	mu       sync.Mutex // guards what follows
	tokens   []string   // seen so far
	redactor *redact.Redactor
}

// newConnSecrets returns the secrets of a connection.
func newConnSecrets(c Config, auth mcpauth.Authorizer) *connSecrets {
	return &connSecrets{fixed: c.fixed, auth: auth, redactor: c.secrets}
}

// current returns a Redactor of the secrets up to now. It returns nil if there are no secrets.
func (s *connSecrets) current() *redact.Redactor {
	if s.auth == nil {
		return s.redactor
	}
	now := s.auth.Secrets()
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, token := range now {
		if token != "" && !slices.Contains(s.tokens, token) {
			s.tokens, changed = append(s.tokens, token), true
		}
	}
	if changed {
		s.tokens = s.tokens[max(0, len(s.tokens)-maxTokens):]
		s.redactor = redact.New(slices.Concat(s.fixed, s.tokens)...)
	}
	return s.redactor
}
