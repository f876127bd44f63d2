package app

import (
	"fmt"
	"slices"
	"testing"
)

// The newest keys of each model are redacted, and a bounded number of all.
func TestReadKeys_KeepTheNewest(t *testing.T) {
	var keys readKeys
	for i := range 10 {
		keys = keys.add(readKey{"a", fmt.Sprint("a-", i)}).add(readKey{"b", fmt.Sprint("b-", i/5)}).add(readKey{"b", "b-0"})
	}
	if got, want := keys.secrets(), []string{"b-0", "b-1", "a-7", "a-8", "a-9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 2 * maxReadKeys {
		keys = keys.add(readKey{fmt.Sprint("m-", i), "key"})
	}
	if len(keys) != maxReadKeys || keys[len(keys)-1].model != fmt.Sprint("m-", 2*maxReadKeys-1) {
		t.Errorf("%d keys, the last %+v", len(keys), keys[len(keys)-1])
	}
}

// A changed configuration does not show the keys that its models have read.
func TestLiveSecrets_KeepReadKeys(t *testing.T) {
	var s liveSecrets
	s.replace([]string{"configured-1"})
	s.addKey(readKey{"m", "read-by-command"})
	s.replace([]string{"configured-2"})
	for text, want := range map[string]bool{"configured-1": false, "configured-2": true, "read-by-command": true} {
		if got := s.redactor().Contains([]byte(text)); got != want {
			t.Errorf("%s is redacted: %v, want %v", text, got, want)
		}
	}
}
