package persist_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// pageBytes is the size of a page in the files of these tests.
const pageBytes = 4096

// right is a record that the last process of a history removes or changes.
func right(key, value string) journal.Record {
	r := journal.Record{Kind: "k", Key: key}
	if value != "" {
		r.Value = []byte(`"` + value + `"`)
	}
	return r
}

// history returns the data file of one directory after each of n processes. The first
// grants a right, the last revokes it by removing a record and changing another.
func history(t *testing.T, n int) [][]byte {
	t.Helper()
	dir := t.TempDir()
	var files [][]byte
	for i := range n {
		b := &journal.Batch{Stream: "a", Events: events("a", 1+i%3, fmt.Sprint("step ", i))}
		switch i {
		case 0:
			b.Put = []journal.Record{right("x", "granted"), right("y", "granted")}
		case n - 1:
			b.Put = []journal.Record{right("x", ""), right("y", "revoked")}
		default:
			b.Put = []journal.Record{right(fmt.Sprint("other", i), "value")}
		}
		s, err := persist.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		journaltest.Commit(t, s, b)
		persisttest.Close(t, s)
		files = append(files, readData(t, dir))
	}
	return files
}

func readData(t *testing.T, dir string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, persist.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// wantRefusedOr checks that a file is refused as damaged, or is read as one of the given
// texts. It reports whether it was refused.
func wantRefusedOr(t *testing.T, file []byte, what string, accepted ...string) (refused bool) {
	t.Helper()
	s, err := persist.Open(dirWith(t, file))
	if err != nil {
		if !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", what, err)
		}
		return true
	}
	got, err := dump(s)
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if err == nil && !slices.Contains(accepted, got) {
		t.Errorf("%s: it is accepted and read as\n%s", what, got)
	}
	return err != nil
}

// A meta page of an earlier commit restores no right: the file is refused, or has the
// contents of the last commit.
func TestOpen_RefusesEarlierMetaPage(t *testing.T) {
	files := history(t, 9)
	last := files[len(files)-1]
	now := checkAndDump(t, dirWith(t, last))
	refused, tried := 0, 0
	for i, earlier := range files[:len(files)-1] {
		for page := range 2 {
			at := page * pageBytes
			stale := bytes.Clone(last)
			copy(stale[at:at+pageBytes], earlier[at:])
			tried++
			if wantRefusedOr(t, stale, fmt.Sprintf("page %d of process %d", page, i), now) {
				refused++
			}
		}
	}
	if refused < tried-2 { // the last but one leads to a commit with the same contents
		t.Errorf("%d of %d files were refused", refused, tried)
	}
}

// The meta pages of a commit do not lead to the contents of an earlier one, even if these
// are complete and in the same places.
func TestOpen_RefusesEarlierContents(t *testing.T) {
	files := commitsOf(t, 12)
	for i, file := range files {
		for j, earlier := range files[:i] {
			stale := slices.Concat(file[:2*pageBytes], earlier[2*pageBytes:])
			if err := persist.Inspect(stale); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("commit %d with the contents of commit %d: got %v, want ErrDamaged", i, j, err)
			}
		}
	}
}

// commitsOf returns the data file of a process after each of n commits that change one
// record, as it is left when the process is killed.
func commitsOf(t *testing.T, n int) [][]byte {
	t.Helper()
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	var files [][]byte
	for i := range n {
		journaltest.Commit(t, s, &journal.Batch{Stream: "a", Put: []journal.Record{right("x", fmt.Sprintf("%04d", i))}})
		files = append(files, readData(t, dir))
		if err := persist.Inspect(files[i]); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
	}
	return files
}

// Two meta pages of earlier commits that do not follow one another are refused even if
// the pages that they lead to are intact.
func TestOpen_RefusesMetaPagesApart(t *testing.T) {
	files := commitsOf(t, 6)
	for i, file := range files {
		for j, earlier := range files[:max(0, i-2)] {
			for page := range 2 {
				stale := bytes.Clone(file)
				copy(stale[page*pageBytes:(page+1)*pageBytes], earlier[page*pageBytes:])
				if err := persist.Inspect(stale); !errors.Is(err, journal.ErrDamaged) {
					t.Errorf("commit %d with page %d of commit %d: got %v, want ErrDamaged", i, page, j, err)
				}
			}
		}
	}
}

// A file whose pages are of two times is refused, or is one of the two as a whole.
func TestOpen_RefusesMixedFiles(t *testing.T) {
	files := history(t, 6)
	last := files[len(files)-1]
	now := checkAndDump(t, dirWith(t, last))
	refused, tried := 0, 0
	for i, earlier := range files[:len(files)-1] {
		then := checkAndDump(t, dirWith(t, earlier))
		for page := range len(earlier) / pageBytes {
			at := page * pageBytes
			for name, stale := range map[string][]byte{
				"from":  slices.Concat(last[:at], earlier[at:], last[len(earlier):]),
				"until": slices.Concat(earlier[:at], last[at:]),
				"only":  slices.Concat(last[:at], earlier[at:at+pageBytes], last[at+pageBytes:]),
			} {
				accepted := []string{now}
				if bytes.Equal(stale[:2*pageBytes], earlier[:2*pageBytes]) { // it is the earlier file, where that is used
					accepted = append(accepted, then)
				}
				tried++
				if wantRefusedOr(t, stale, fmt.Sprintf("process %d, %s page %d", i, name, page), accepted...) {
					refused++
				}
			}
		}
	}
	if refused < tried/4 {
		t.Errorf("only %d of %d files were refused", refused, tried)
	}
	t.Logf("%d of %d files were refused", refused, tried)
}

// A value of an earlier commit, with a valid checksum, is not accepted in place of the
// last one.
func TestOpen_RefusesEarlierValue(t *testing.T) {
	files := history(t, 4)
	last := files[len(files)-1]
	before, after := frameOf(t, files[0], "y"), frameOf(t, last, "y")
	stale := bytes.ReplaceAll(last, after, before)
	if bytes.Equal(stale, last) || len(before) != len(after) {
		t.Fatal("the value was not replaced")
	}
	wantRefusedOr(t, stale, "the value of process 0", "nothing")
}

// frameOf returns the entry of a record k in the form that it has in the file.
func frameOf(t *testing.T, file []byte, key string) []byte {
	t.Helper()
	for name, e := range entries(t, file) {
		if name == "records, last" && string(e.key) == "k\x00"+key {
			return append(bytes.Clone(e.key), e.frame...)
		}
	}
	t.Fatalf("%s is not the last record", key)
	return nil
}

// A restored backup is accepted after each of its next commits, whichever of its meta
// pages the first of them replaces.
func TestRestore_AcceptedAfterEachCommit(t *testing.T) {
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	for i := range 3 {
		journaltest.Commit(t, s, &journal.Batch{Stream: "a", Put: []journal.Record{right("x", fmt.Sprint(i))}})
		var backup bytes.Buffer
		if _, err := s.WriteBackup(t.Context(), &backup); err != nil {
			t.Fatal(err)
		}
		to := t.TempDir()
		if err := persist.RestoreBackup(t.Context(), &backup, to); err != nil {
			t.Fatal(err)
		}
		restored := persisttest.OpenIn(t, to)
		for n := range 3 {
			if err := persist.Inspect(readData(t, to)); err != nil {
				t.Errorf("backup %d, %d commits after it was restored: %v", i, n, err)
			}
			journaltest.Commit(t, restored, &journal.Batch{Stream: "a", Events: events("a", 1, "x")})
		}
	}
}
