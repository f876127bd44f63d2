package persist_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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

// olderFile returns sampleFile(t, 510) as written by the version with an older schema.
func olderFile(t testing.TB, schema int) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", fmt.Sprintf("schema%d.db.gz", schema)))
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

func TestOpen_MigratesOlderSchemas(t *testing.T) {
	for schema := 1; schema <= 3; schema++ {
		t.Run(fmt.Sprint("schema ", schema), func(t *testing.T) { migratesFrom(t, schema) })
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "backup", Claim: "a file of an older schema is migrated, a damaged one refused", Goal: "read as it was written",
		Observed: "schemas 1 to 3, 518 events", Passed: !t.Failed(),
	})
}

// migratesFrom opens files of an older schema, undamaged and damaged.
func migratesFrom(t *testing.T, schema int) {
	t.Run("same contents, and writable", func(t *testing.T) {
		dir, now := dirWith(t, olderFile(t, schema)), dirWith(t, sampleFile(t, 510))
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
		dir := dirWith(t, olderFile(t, schema))
		checkAndDump(t, dir)
		editFile(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Delete([]byte("k\x00x")) })
		if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	t.Run("damaged pages", func(t *testing.T) {
		file := olderFile(t, schema)
		copy(file[pageOf(t, file, 0x01):], bytes.Repeat([]byte{0xAA}, 16))
		if _, err := persist.Open(dirWith(t, file)); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
	t.Run("missing entry", func(t *testing.T) {
		if schema < 2 {
			t.Skip("schema 1 has no integrity record")
		}
		dir := dirWith(t, olderFile(t, schema))
		editFile(t, dir, func(tx *bolt.Tx) error { return tx.Bucket([]byte("records")).Delete([]byte("k\x00x")) })
		if _, err := persist.Open(dir); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("got %v, want ErrDamaged", err)
		}
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
