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
// and what MCP servers, sources, triggers and notifications are given.
func configSecrets(cfg *config.Config) []string {
	list := append(modelSecrets(cfg), triggerSecrets(cfg)...)
	list = append(list, notificationSecrets(cfg)...)
	for _, i := range cfg.Gateway.Issuers {
		list = append(list, redact.ValueSecrets(string(i.ClientSecret))...)
	}
	for _, s := range cfg.MCPServers {
		list = append(list, redact.HeaderSecrets(revealSecrets(s.Headers))...)
		list = append(list, secretValues(s.Env)...)
		secret, key := clientSecrets(s)
		list = append(append(list, redact.ValueSecrets(secret)...), redact.ValueSecrets(key)...)
	}
	for _, s := range cfg.Sources {
		list = append(append(list, string(s.Password)), secretValues(s.QueryParams)...)
		list = append(list, redact.HeaderSecrets(revealSecrets(s.Headers))...)
	}
	for _, t := range cfg.Tools {
		if t.HTTP != nil {
			list = append(list, redact.HeaderSecrets(revealSecrets(t.HTTP.Headers))...)
		}
	}
	return list
}

// secretValues returns the secrets in the values of m.
func secretValues(m map[string]yamldoc.Secret) (list []string) {
	for _, value := range m {
		list = append(list, redact.ValueSecrets(string(value))...)
	}
	return list
}

// readKey is a key that a model has read from a file or a command.
type readKey struct{ model, key string }

// readKeys are the newest keys that models have read, oldest first. Older keys have expired or were
// replaced. They open nothing, and each key makes redacting slower.
type readKeys []readKey

// Limits of readKeys.
const (
	maxKeysOfModel = 3
	maxReadKeys    = 256
)

// add returns the list with one more key. The list itself is not changed.
func (r readKeys) add(k readKey) readKeys {
	if slices.Contains(r, k) {
		return r
	}
	same := func(old readKey) bool { return old.model == k.model }
	kept, count := slices.Clone(r), 0
	for _, old := range kept {
		if same(old) {
			count++
		}
	}
	if count == maxKeysOfModel {
		first := slices.IndexFunc(kept, same)
		kept = slices.Delete(kept, first, first+1)
	}
	return append(kept[max(0, len(kept)+1-maxReadKeys):], k)
}

// secrets returns the keys.
func (r readKeys) secrets() (list []string) {
	for _, k := range r {
		list = append(list, k.key)
	}
	return list
}

// liveSecrets redacts the secrets of the active configuration, and the keys that models
// have read since. The zero value redacts nothing.
type liveSecrets struct {
	active atomic.Pointer[redact.Redactor]

	mu   sync.Mutex // guards the fields below
	list []string   // of the configuration
	keys readKeys
}

// redactor returns the current Redactor, which may be nil.
func (s *liveSecrets) redactor() *redact.Redactor { return s.active.Load() }

// replace replaces the secrets of the configuration.
func (s *liveSecrets) replace(list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = list
	s.active.Store(redact.New(slices.Concat(s.list, s.keys.secrets())...))
}

// addKey redacts a key that a model has read.
func (s *liveSecrets) addKey(k readKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = s.keys.add(k)
	s.active.Store(redact.New(slices.Concat(s.list, s.keys.secrets())...))
}
