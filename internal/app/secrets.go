package app

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// configSecrets returns the secrets of a configuration: the keys and headers of models,
// and what MCP servers and sources are given.
func configSecrets(cfg *config.Config) []string {
	list := modelSecrets(cfg)
	for _, s := range cfg.MCPServers {
		list = append(list, redact.Headers(revealSecrets(s.Headers))...)
		list = append(list, secretValues(s.Env)...)
	}
	for _, s := range cfg.Sources {
		list = append(append(list, string(s.Password)), secretValues(s.QueryParams)...)
		list = append(list, redact.Headers(revealSecrets(s.Headers))...)
	}
	for _, t := range cfg.Tools {
		if t.HTTP != nil {
			list = append(list, redact.Headers(revealSecrets(t.HTTP.Headers))...)
		}
	}
	return list
}

// secretValues returns the secrets in the values of m.
func secretValues(m map[string]yamldoc.Secret) (list []string) {
	for _, value := range m {
		list = append(list, redact.Values(string(value))...)
	}
	return list
}

// liveSecrets redacts the secrets of the active configuration, and the keys that models
// have read from their files since. The zero value redacts nothing.
type liveSecrets struct {
	active atomic.Pointer[redact.Redactor]

	mu   sync.Mutex // guards list
	list []string
}

// redactor returns the current Redactor, which may be nil.
func (s *liveSecrets) redactor() *redact.Redactor { return s.active.Load() }

// replace redacts the secrets of a configuration only.
func (s *liveSecrets) replace(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	s.active.Store(redact.New(list...))
}

// add redacts one more secret, until the configuration is replaced.
func (s *liveSecrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.list, secret) {
		return
	}
	s.list = append(slices.Clip(s.list), secret)
	s.active.Store(redact.New(s.list...))
}
