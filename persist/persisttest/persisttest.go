// Package persisttest opens stores for tests. It checks the data file of each store when
// the test ends, so that every test that uses a store also tests the file format.
//
//	s := persisttest.Open(t)
package persisttest

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/persist"
)

// Open opens a store in a new temporary directory. When the test ends, the store is checked
// and closed.
func Open(t testing.TB) *persist.Store {
	t.Helper()
	return OpenIn(t, t.TempDir())
}

// OpenIn opens a store in the data directory dir. When the test ends, the store is checked
// and closed.
func OpenIn(t testing.TB, dir string) *persist.Store {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(t, s) })
	return s
}

// Close checks a store and closes it. It does nothing if the store is closed already.
func Close(t testing.TB, s *persist.Store) {
	t.Helper()
	if err := s.CheckIntegrity(context.Background()); err != nil && !persist.IsClosed(err) {
		t.Errorf("the store is damaged: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close the store: %v", err)
	}
}
