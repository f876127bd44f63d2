package persist_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// Whichever bit of a file is flipped: Open rejects the file, or reading returns ErrDamaged,
// or everything is read as it was written. Bits in all parts of the file are flipped for
// inspect. The files that it accepts differ in values or in unused bytes; some of them are
// opened and read.
func TestInspect_DetectsBitFlips(t *testing.T) {
	file := sampleFile(t, 3)
	dir := dirWith(t, file)
	want := checkAndDump(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	refused, opened := 0, 0
	step := 13 * short.Count(5, 1) // coprime to 8
	for bit := 13 * short.SampleRange(t, 1, 0, 4)[0]; bit < 8*len(file); bit += step {
		file[bit/8] ^= 1 << (bit % 8)
		switch err := persist.Inspect(file); {
		case errors.Is(err, journal.ErrDamaged):
			refused++
		case err == nil && random.IntN(200) == 0:
			opened++
			if err := os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600); err != nil {
				t.Fatal(err)
			}
			wantDetected(t, dir, want, fmt.Sprintf("bit %d", bit))
			wantWritable(t, dir, fmt.Sprintf("bit %d", bit))
		case err != nil && !strings.Contains(err.Error(), "schema"):
			t.Errorf("bit %d: got %v, want ErrDamaged", bit, err)
		}
		file[bit/8] ^= 1 << (bit % 8)
	}
	if refused < short.Count(20, 200) || opened < short.Count(2, 20) {
		t.Errorf("only %d were rejected and %d opened", refused, opened)
	}
	t.Logf("of %d files %d were rejected; %d of the others were read", 8*len(file)/step, refused, opened)
}

// wantWritable writes to all buckets of a file that Open accepts, so much that each outgrows
// its pages. The file must pass a scan afterwards.
func wantWritable(t *testing.T, dir, what string) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		return // Open rejects the file
	}
	b := &journal.Batch{Stream: "a", Events: events("a", 600, "more")}
	for i := range 40 {
		b.Send = append(b.Send, message("a", "more"), delayed("b", "later", at))
		b.Put = append(b.Put, journal.Record{Kind: "k", Key: fmt.Sprint(i), Value: make([]byte, 300)})
	}
	_, err = s.Commit(t.Context(), b)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	file, err := os.ReadFile(filepath.Join(dir, persist.FileName))
	if err := errors.Join(err, persist.Inspect(file)); err != nil {
		t.Errorf("%s: after a commit: %v", what, err)
	}
}

// Kinds of damage with which bbolt would loop forever or read beyond the file.
func TestInspect_DetectsDamage(t *testing.T) {
	file := sampleFile(t, 510)
	if err := persist.Inspect(file); err != nil {
		t.Fatal(err)
	}
	branch := pageOf(t, file, 0x01)
	tests := []struct {
		name, want string
		change     func(file []byte)
	}{
		{"branch is its own child", "used twice", func(f []byte) { binary.LittleEndian.PutUint64(f[branch+16+8:], uint64(branch/4096)) }},
		{"two branches to one page", "", func(f []byte) { copy(f[branch+16+8:branch+32], f[branch+32+8:branch+48]) }},
		{"branch to a missing page", "does not exist", func(f []byte) { binary.LittleEndian.PutUint64(f[branch+16+8:], 1<<40) }},
		{"fewer elements", "neither used nor free", func(f []byte) { binary.LittleEndian.PutUint16(f[branch+10:], 1) }},
		{"more elements", "", func(f []byte) { f[branch+10]++ }},
		{"leaf without its last entry", "entries that differ from the", func(f []byte) { f[pageOf(t, f, 0x02)+10]-- }},
		{"page with the number of another", "has the number", func(f []byte) { f[branch]++ }},
		{"unknown page type", "has an unknown type", func(f []byte) { f[branch+8] = 0x20 }},
		{"overflow beyond the file", "", func(f []byte) { binary.LittleEndian.PutUint32(f[branch+12:], 1<<30) }},
		{"branch key differs from the first key of its child", "out of order", func(f []byte) { lowerKey(f, pageOf(t, f, 0x01)) }},
		{"inline bucket with a page number", "has an unknown type", func(f []byte) { f[bytes.Index(f, []byte("delayed"))+len("delayed")+16]++ }},
		{"integrity record in a file of schema 1", "it has an integrity record and schema 1", func(f []byte) { f[bytes.Index(f, []byte("schema"))+len("schema")+7] = 1 }},
		{"free page in use", "used twice", func(f []byte) { addFree(t, f, uint64(branch/4096)) }},
		{"newer meta page", "the last commit is unknown", func(f []byte) { f[newestMeta(f)+16+20]++ }},
		{"older meta page", "the last commit is unknown", func(f []byte) { f[4096-newestMeta(f)+16+20]++ }},
		{"no magic number", "one of its first two pages is damaged", func(f []byte) { f[4096+16]++ }},
		{"a meta page with too few pages", "its meta page names only 2 pages", func(f []byte) { setPageCount(f, 2) }},
		{"a meta page with more pages than the file", fmt.Sprintf("it has %d of %d bytes", len(file), len(file)+4096), func(f []byte) { setPageCount(f, uint64(len(f)/4096+1)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := bytes.Clone(file)
			tt.change(broken)
			if err := persist.Inspect(broken); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := persist.Open(dirWith(t, broken)); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("open: got %v", err)
			}
		})
	}
}

// lowerKey decrements the second key of a branch.
func lowerKey(file []byte, branch int) {
	at := branch + 16 + 16
	key := at + int(binary.LittleEndian.Uint32(file[at:])) + int(binary.LittleEndian.Uint32(file[at+4:])) - 1
	file[key]--
}

// pageOf returns the offset of the first page of a type that has more than one element.
func pageOf(t *testing.T, file []byte, flags byte) int {
	t.Helper()
	for at := 2 * 4096; at < len(file); at += 4096 {
		if file[at+8] == flags && file[at+10] > 1 {
			return at
		}
	}
	t.Fatalf("no page of kind %d", flags)
	return 0
}

// newestMeta returns the offset of the newer meta page: 0 or 4096.
func newestMeta(file []byte) int {
	if binary.LittleEndian.Uint64(file[16+48:]) > binary.LittleEndian.Uint64(file[4096+16+48:]) {
		return 0
	}
	return 4096
}

// setPageCount sets the number of pages in the newer meta page, and its checksum.
func setPageCount(file []byte, n uint64) {
	m := file[newestMeta(file)+16:]
	binary.LittleEndian.PutUint64(m[40:], n)
	sum := fnv.New64a()
	sum.Write(m[:56])
	binary.LittleEndian.PutUint64(m[56:], sum.Sum64())
}

// addFree adds a page to the list of free pages.
func addFree(t *testing.T, file []byte, id uint64) {
	t.Helper()
	at := int(binary.LittleEndian.Uint64(file[newestMeta(file)+16+32:])) * 4096
	n := int(binary.LittleEndian.Uint16(file[at+10:]))
	binary.LittleEndian.PutUint16(file[at+10:], uint16(n+1))
	binary.LittleEndian.PutUint64(file[at+16+8*n:], id)
}

// inspect accepts all files that bbolt writes.
func TestInspect_AcceptsBboltFiles(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	dir := t.TempDir()
	s := persisttest.OpenIn(t, dir)
	live := map[string]bool{}
	for range 150 {
		b := &journal.Batch{Stream: "a", Events: events("a", random.IntN(20), "x")}
		for range random.IntN(60) {
			key := fmt.Sprintf("%0*x", 4+random.IntN(200), random.IntN(1<<14))
			b.Put = append(b.Put, journal.Record{Kind: "k", Key: key, Value: make([]byte, random.IntN(300)*random.IntN(30))})
			live[key] = true
		}
		for key := range live {
			if random.IntN(4) == 0 {
				b.Put = append(b.Put, journal.Record{Kind: "k", Key: key})
				delete(live, key)
			}
		}
		journaltest.Commit(t, s, b)
		file, err := os.ReadFile(filepath.Join(dir, persist.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if err := persist.Inspect(file); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzInspect(f *testing.F) {
	file := sampleFile(f, 510)
	f.Add(uint32(4096*3+16), []byte("\xff\xff"))
	f.Add(uint32(16), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, at uint32, piece []byte) {
		broken := bytes.Clone(file)
		copy(broken[int(at)%len(broken):], piece)
		if err := persist.Inspect(broken); err != nil && !errors.Is(err, journal.ErrDamaged) && !strings.Contains(err.Error(), "schema") {
			t.Errorf("got %v", err)
		}
		_ = persist.Inspect(broken[:int(at)%len(broken)]) // must end
	})
}
