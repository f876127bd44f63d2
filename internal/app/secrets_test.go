package app

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/config"
)

// The newest keys of each model are redacted, and a bounded number of all.
func TestFetchedKeys_KeepTheNewest(t *testing.T) {
	var keys fetchedKeys
	for i := range 10 {
		keys = keys.add(fetchedKey{"a", fmt.Sprint("a-", i)}).add(fetchedKey{"b", fmt.Sprint("b-", i/5)}).add(fetchedKey{"b", "b-0"})
	}
	if got, want := keys.secrets(), []string{"a-7", "a-8", "a-9", "b-1", "b-0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 2 * maxFetchedKeys {
		keys = keys.add(fetchedKey{fmt.Sprint("m-", i), "key"})
	}
	if len(keys) != maxFetchedKeys || keys[len(keys)-1].model != fmt.Sprint("m-", 2*maxFetchedKeys-1) {
		t.Errorf("%d keys, the last %+v", len(keys), keys[len(keys)-1])
	}
}

// A key that is read again is as new as any other. When there are too many keys, the older keys of a
// model that has others are dropped before the only key of a model.
func TestFetchedKeys_KeepTheKeysInUse(t *testing.T) {
	keys := fetchedKeys{}.add(fetchedKey{"a", "a-1"}).add(fetchedKey{"b", "old"}).add(fetchedKey{"a", "a-2"}).add(fetchedKey{"a", "a-3"})
	if got, want := keys.add(fetchedKey{"a", "a-1"}).add(fetchedKey{"a", "a-4"}).secrets(), []string{"old", "a-3", "a-1", "a-4"}; !slices.Equal(got, want) {
		t.Errorf("after a-1 was read again: got %q, want %q", got, want)
	}
	keys = fetchedKeys{}.add(fetchedKey{"only", "in-use"})
	for i := range 2 * maxFetchedKeys {
		keys = keys.add(fetchedKey{fmt.Sprint("m-", i%(maxFetchedKeys/2)), fmt.Sprint("key-", i)})
	}
	if !slices.Contains(keys, fetchedKey{"only", "in-use"}) || len(keys) > maxFetchedKeys {
		t.Errorf("%d keys; the only key of a model is kept: %t", len(keys), slices.Contains(keys, fetchedKey{"only", "in-use"}))
	}
}

// The secrets of a configuration include the passwords of its brokers.
func TestConfigSecrets_HasPasswordsOfBrokers(t *testing.T) {
	cfg := &config.Config{Brokers: []config.Broker{{Password: "password-of-broker"}}}
	if got := configSecrets(cfg); !slices.Contains(got, "password-of-broker") {
		t.Errorf("got %q", got)
	}
}

// A changed configuration does not show the keys that its models have read.
func TestLiveSecrets_KeepReadKeys(t *testing.T) {
	var s liveSecrets
	s.replace([]string{"configured-1"})
	s.addKey(fetchedKey{"m", "read-by-command"})
	s.replace([]string{"configured-2"})
	for text, want := range map[string]bool{"configured-1": false, "configured-2": true, "read-by-command": true} {
		if got := s.redactor().Contains([]byte(text)); got != want {
			t.Errorf("%s is redacted: %v, want %v", text, got, want)
		}
	}
}
