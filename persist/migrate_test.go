package persist_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
)

// schema1 is specimen(t, 510) as the version before the ledger wrote it.
func schema1(t testing.TB) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "schema1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAFileOfSchema1(t *testing.T) {
	t.Run("is read as it was written, and goes on", func(t *testing.T) {
		dir, now := write(t, schema1(t)), write(t, specimen(t, 510))
		for range 2 { // the first time it is brought to this schema
			got, want := readAll(t, dir), readAll(t, now)
			if got != want {
				t.Fatalf("got\n%s\nwant\n%s", got, want)
			}
		}
		s, err := persist.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if seq := journaltest.Commit(t, s, &journal.Batch{Stream: "a", Events: events("a", 1, "more")}); seq != 519 {
			t.Errorf("the next number is %d, want 519", seq)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("has a ledger afterwards", func(t *testing.T) {
		dir := write(t, schema1(t))
		readAll(t, dir)
		edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Delete([]byte("k\x00x")) })
		if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	t.Run("is refused when its pages are damaged", func(t *testing.T) {
		file := schema1(t)
		copy(file[pageOf(t, file, 0x01):], bytes.Repeat([]byte{0xAA}, 16))
		if _, err := persist.Open(write(t, file)); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	soakreport.Report(t, soakreport.Result{
		Part: "backup", Claim: "a file of an older schema is migrated, a damaged one refused", Goal: "read as it was written",
		Observed: "schema 1, 518 events", Passed: !t.Failed(),
	})
}

// readAll opens, checks and reads a data directory.
func readAll(t testing.TB, dir string) string {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := contents(s)
	if err := errors.Join(err, s.Check(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}
