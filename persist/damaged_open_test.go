package persist_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/journal"
)

// A store whose file is damaged while it is open stops with an error. It neither ends the process nor waits for ever.
func TestStore_DamagedWhileOpen(t *testing.T) {
	for where, damage := range map[string]func(path string) error{
		"meta pages": func(path string) error { return overwrite(path, 0, 2*4096) },
		"all pages":  func(path string) error { return overwrite(path, 2*4096, 1<<20) },
		"end":        func(path string) error { return os.Truncate(path, 2*4096) },
	} {
		for first, use := range map[string]func(journal.Store) error{
			"read": func(s journal.Store) error {
				_, err := s.ReadRecord(t.Context(), "kind", "key")
				return err
			},
			"commit": func(s journal.Store) error {
				_, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, "after")})
				return err
			},
		} {
			t.Run(where+", "+first, func(t *testing.T) {
				s, dir, _ := storeWithEvents(t)
				if err := damage(filepath.Join(dir, "rolecall.db")); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					_ = use(s)
					_, err := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, "later")})
					if _, again := s.Commit(t.Context(), &journal.Batch{Stream: "a", Events: events("a", 1, "latest")}); again == nil {
						err = errors.New("a commit has succeeded")
					}
					done <- errors.Join(err, s.Close())
				}()
				select {
				case err := <-done:
					if !errors.Is(err, journal.ErrClosed) || !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "restore") {
						t.Errorf("got %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("the store waits for ever")
				}
			})
		}
	}
}

// overwrite overwrites a part of a file, which does not become longer.
func overwrite(path string, from, size int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(bytes.Repeat([]byte{0xA5}, int(min(size, info.Size()-from))), from)
	return errors.Join(err, file.Close())
}
