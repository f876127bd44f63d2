// Package persisttest opens data directories for tests and checks what the
// test left in them.
package persisttest

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// Open opens a store in a directory of the test's own. When the test ends the
// store is checked and closed.
func Open(t testing.TB) *persist.Store {
	t.Helper()
	return OpenIn(t, t.TempDir())
}

// OpenIn is Open for a given data directory.
func OpenIn(t testing.TB, dir string) *persist.Store {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(t, s) })
	return s
}

// Close checks a store and closes it; a closed one is left alone.
func Close(t testing.TB, s *persist.Store) {
	t.Helper()
	if err := s.Check(context.Background()); err != nil && !persist.IsClosed(err) {
		t.Errorf("the store is damaged: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close the store: %v", err)
	}
}
