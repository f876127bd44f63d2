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

// recentSecrets are the newest of the keys that models have read, oldest first. Keys from
// commands expire, so older ones open nothing.
type recentSecrets []string

// maxRecentSecrets bounds recentSecrets, of all models together.
const maxRecentSecrets = 32

// add returns the list with secret as the newest. The list itself is not changed.
func (r recentSecrets) add(secret string) recentSecrets {
	if slices.Contains(r, secret) {
		return r
	}
	return append(slices.Clone(r[max(0, len(r)+1-maxRecentSecrets):]), secret)
}

// liveSecrets redacts the secrets of the active configuration, and the keys that models
// have read since. The zero value redacts nothing.
type liveSecrets struct {
	active atomic.Pointer[redact.Redactor]

	mu     sync.Mutex // guards the fields below
	list   []string   // of the configuration
	recent recentSecrets
}

// redactor returns the current Redactor, which may be nil.
func (s *liveSecrets) redactor() *redact.Redactor { return s.active.Load() }

// replace replaces the secrets of the configuration.
func (s *liveSecrets) replace(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	s.active.Store(redact.New(slices.Concat(s.list, s.recent)...))
}

// add redacts a key that a model has read.
func (s *liveSecrets) add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = s.recent.add(secret)
	s.active.Store(redact.New(slices.Concat(s.list, s.recent)...))
}
