package app

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// configSecrets returns the secrets of a configuration: the keys and headers of models, the secrets
// of issuers and brokers, and what MCP servers, sources, HTTP tools, triggers and notifications are
// given.
func configSecrets(cfg *config.Config) []string {
	list := append(modelSecrets(cfg), triggerSecrets(cfg)...)
	list = append(list, notificationSecrets(cfg)...)
	for _, i := range cfg.Gateway.Issuers {
		list = append(list, redact.ValueSecrets(string(i.ClientSecret))...)
	}
	for _, b := range cfg.Brokers {
		list = append(list, string(b.Password))
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

// fetchedKey is a key that a model has read from a file or a command.
type fetchedKey struct{ model, key string }

// fetchedKeys are the newest keys that models have read, oldest first. Each key makes redacting
// slower. So a model has a few keys, and old keys are dropped when there are too many: first those
// of models that have a newer key.
type fetchedKeys []fetchedKey

// Limits of fetchedKeys.
const (
	maxKeysOfModel = 3
	maxFetchedKeys = 256
)

// add returns the list with a key at its end. The list itself is not changed.
func (f fetchedKeys) add(k fetchedKey) fetchedKeys {
	kept := slices.DeleteFunc(slices.Clone(f), func(old fetchedKey) bool { return old == k })
	if sameModel := kept.ofModel(k.model); len(sameModel) == maxKeysOfModel {
		kept = slices.Delete(kept, sameModel[0], sameModel[0]+1)
	}
	if len(kept) == maxFetchedKeys {
		at := kept.oldestReplaced(k.model)
		kept = slices.Delete(kept, at, at+1)
	}
	return append(kept, k)
}

// ofModel returns the indexes of the keys of a model.
func (f fetchedKeys) ofModel(model string) (list []int) {
	for i, k := range f {
		if k.model == model {
			list = append(list, i)
		}
	}
	return list
}

// oldestReplaced returns the index of the oldest key that its model has replaced, when model gets
// another key. It returns 0, the oldest key, if there is none.
func (f fetchedKeys) oldestReplaced(model string) int {
	count := map[string]int{model: 1}
	for _, k := range f {
		count[k.model]++
	}
	return max(0, slices.IndexFunc(f, func(k fetchedKey) bool { return count[k.model] > 1 }))
}

// secrets returns the keys.
func (f fetchedKeys) secrets() (list []string) {
	for _, k := range f {
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
	keys fetchedKeys
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
func (s *liveSecrets) addKey(k fetchedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = s.keys.add(k)
	s.active.Store(redact.New(slices.Concat(s.list, s.keys.secrets())...))
}
