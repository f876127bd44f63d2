package persist_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// Whichever bit of a file is turned: Open refuses it, or reading says
// ErrDamaged, or everything is read as it was written. Bits all over the file
// are turned for inspect; of the files it lets pass, which differ in values
// or in what nobody uses, some are opened and read.
func TestBitsOfEveryPage(t *testing.T) {
	file := specimen(t, 3)
	dir := write(t, file)
	want := readAll(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	refused, opened := 0, 0
	const step = 13 // coprime to 8
	for bit := 0; bit < 8*len(file); bit += step {
		file[bit/8] ^= 1 << (bit % 8)
		switch err := persist.Inspect(file); {
		case errors.Is(err, journal.ErrDamaged):
			refused++
		case err == nil && random.IntN(200) == 0:
			opened++
			if err := os.WriteFile(filepath.Join(dir, persist.FileName), file, 0o600); err != nil {
				t.Fatal(err)
			}
			wantFound(t, dir, want, fmt.Sprintf("bit %d", bit))
			wantWritable(t, dir, fmt.Sprintf("bit %d", bit))
		case err != nil && !strings.Contains(err.Error(), "schema"):
			t.Errorf("bit %d: got %v, want ErrDamaged", bit, err)
		}
		file[bit/8] ^= 1 << (bit % 8)
	}
	if refused < 200 || opened < 20 {
		t.Errorf("only %d were refused, and %d opened", refused, opened)
	}
	t.Logf("of %d files %d were refused; %d of the others were read", 8*len(file)/step, refused, opened)
}

// wantWritable writes into all buckets of a file that was let pass, so that each
// outgrows its pages: it has to be whole afterwards.
func wantWritable(t *testing.T, dir, what string) {
	t.Helper()
	s, err := persist.Open(dir)
	if err != nil {
		return // read, and refused since
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

// Damage that made bbolt read in circles, or what is not there.
func TestInspectFinds(t *testing.T) {
	file := specimen(t, 510)
	if err := persist.Inspect(file); err != nil {
		t.Fatal(err)
	}
	branch := pageOf(t, file, 0x01)
	tests := []struct {
		name, want string
		change     func(file []byte)
	}{
		{"a branch that is its own child", "used twice", func(f []byte) { binary.LittleEndian.PutUint64(f[branch+16+8:], uint64(branch/4096)) }},
		{"two branches to one page", "", func(f []byte) { copy(f[branch+16+8:branch+32], f[branch+32+8:branch+48]) }},
		{"a branch to nowhere", "there is no page", func(f []byte) { binary.LittleEndian.PutUint64(f[branch+16+8:], 1<<40) }},
		{"fewer elements than there were", "neither used nor free", func(f []byte) { binary.LittleEndian.PutUint16(f[branch+10:], 1) }},
		{"more elements than there were", "", func(f []byte) { f[branch+10]++ }},
		{"a leaf with one entry less", "entries that are not the", func(f []byte) { f[pageOf(t, f, 0x02)+10]-- }},
		{"a page that holds another's number", "says it is page", func(f []byte) { f[branch]++ }},
		{"a page of a kind unknown", "is nothing known", func(f []byte) { f[branch+8] = 0x20 }},
		{"more overflow than there are pages", "", func(f []byte) { binary.LittleEndian.PutUint32(f[branch+12:], 1<<30) }},
		{"a branch whose key is not its child's first", "out of order", func(f []byte) { lower(f, pageOf(t, f, 0x01)) }},
		{"a bucket in a value that says it is a page", "is nothing known", func(f []byte) { f[bytes.Index(f, []byte("delayed"))+len("delayed")+16]++ }},
		{"a ledger in a file of schema 1", "it has a ledger and says schema 1", func(f []byte) { f[bytes.Index(f, []byte("schema"))+len("schema")+7] = 1 }},
		{"a free page that is in use", "used twice", func(f []byte) { addFree(t, f, uint64(branch/4096)) }},
		{"the newer of the two beginnings", "the last commit is lost", func(f []byte) { f[newest(f)+16+20]++ }},
		{"the older of the two beginnings", "the last commit is lost", func(f []byte) { f[4096-newest(f)+16+20]++ }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			broken := bytes.Clone(file)
			tt.change(broken)
			if err := persist.Inspect(broken); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := persist.Open(write(t, broken)); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("open: got %v", err)
			}
		})
	}
}

// lower makes the second key of a branch one less than it is.
func lower(file []byte, branch int) {
	at := branch + 16 + 16
	key := at + int(binary.LittleEndian.Uint32(file[at:])) + int(binary.LittleEndian.Uint32(file[at+4:])) - 1
	file[key]--
}

// pageOf finds the first page of a kind that holds more than one element.
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

// newest finds where the newer beginning is: 0 or 4096.
func newest(file []byte) int {
	if binary.LittleEndian.Uint64(file[16+48:]) > binary.LittleEndian.Uint64(file[4096+16+48:]) {
		return 0
	}
	return 4096
}

// addFree puts a page on the list of free pages.
func addFree(t *testing.T, file []byte, id uint64) {
	t.Helper()
	at := int(binary.LittleEndian.Uint64(file[newest(file)+16+32:])) * 4096
	n := int(binary.LittleEndian.Uint16(file[at+10:]))
	binary.LittleEndian.PutUint16(file[at+10:], uint16(n+1))
	binary.LittleEndian.PutUint64(file[at+16+8*n:], id)
}

// What bbolt writes is let pass, however it came about.
func TestInspectLetsPassWhatBboltWrites(t *testing.T) {
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
	file := specimen(f, 510)
	f.Add(uint32(4096*3+16), []byte("\xff\xff"))
	f.Add(uint32(16), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, at uint32, piece []byte) {
		broken := bytes.Clone(file)
		copy(broken[int(at)%len(broken):], piece)
		if err := persist.Inspect(broken); err != nil && !errors.Is(err, journal.ErrDamaged) && !strings.Contains(err.Error(), "schema") {
			t.Errorf("got %v", err)
		}
		_ = persist.Inspect(broken[:int(at)%len(broken)]) // it comes to an end
	})
}
