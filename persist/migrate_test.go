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

// schema1File returns sampleFile(t, 510) as written by the version with schema 1, which had
// no integrity record.
func schema1File(t testing.TB) []byte {
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

func TestOpen_MigratesSchema1(t *testing.T) {
	t.Run("same contents, and writable", func(t *testing.T) {
		dir, now := dirWith(t, schema1File(t)), dirWith(t, sampleFile(t, 510))
		for range 2 { // the first Open migrates it
			got, want := checkAndDump(t, dir), checkAndDump(t, now)
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
			t.Errorf("the next sequence number is %d, want 519", seq)
		}
		if err := s.CheckIntegrity(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("integrity record after the migration", func(t *testing.T) {
		dir := dirWith(t, schema1File(t))
		checkAndDump(t, dir)
		editFile(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Delete([]byte("k\x00x")) })
		if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	t.Run("damaged pages", func(t *testing.T) {
		file := schema1File(t)
		copy(file[pageOf(t, file, 0x01):], bytes.Repeat([]byte{0xAA}, 16))
		if _, err := persist.Open(dirWith(t, file)); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	soakreport.Report(t, soakreport.Result{
		Part: "backup", Claim: "a file of an older schema is migrated, a damaged one refused", Goal: "read as it was written",
		Observed: "schema 1, 518 events", Passed: !t.Failed(),
	})
}

// checkAndDump opens a data directory, checks it and returns its contents.
func checkAndDump(t testing.TB, dir string) string {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := dump(s)
	if err := errors.Join(err, s.CheckIntegrity(t.Context()), s.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}
