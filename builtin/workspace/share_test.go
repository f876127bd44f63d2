package workspace

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/errcode"
)

// memoryShares is a ShareStore in memory.
type memoryShares struct {
	mu   sync.Mutex
	all  map[string]Usage
	fail error
}

// LoadShare implements ShareStore.
func (m *memoryShares) LoadShare(_ context.Context, dir, holder string) (Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[dir+" "+holder], m.fail
}

// SaveShare implements ShareStore.
func (m *memoryShares) SaveShare(_ context.Context, dir, holder string, u Usage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]Usage{}
	}
	m.all[dir+" "+holder] = u
	return m.fail
}

// sharedDir is a directory in which several holders write.
type sharedDir struct {
	dir    string
	quotas QuotaManager
	store  memoryShares
}

// openFor opens the directory for a holder.
func (s *sharedDir) openFor(t testing.TB, holder string, q Quota) *Dir {
	t.Helper()
	d := openDir(t, s.dir, q)
	d.Quota = s.quotas.SharedQuota(s.dir, q, holder, &s.store)
	return d
}

// runProgram runs write as a program of d and returns what the holder has added then.
func runProgram(t testing.TB, d *Dir, write func()) Usage {
	t.Helper()
	end, err := d.BeginProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	write()
	end()
	u, err := d.DiskUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSharedQuota_OneHolderDoesNotFillIt(t *testing.T) {
	s := &sharedDir{dir: t.TempDir()}
	putFile(t, filepath.Join(s.dir, "old"), strings.Repeat("x", 1000)) // counts for no holder
	ann, bob := s.openFor(t, "ann", Quota{Bytes: 100, Files: 3}), s.openFor(t, "bob", Quota{Bytes: 100, Files: 3})
	write := func(d *Dir, name string, size int) errcode.Code {
		err := d.WriteFile(t.Context(), name, []byte(strings.Repeat("x", size)))
		if err == nil {
			return ""
		}
		return errcode.CodeOf(err)
	}
	for _, c := range []struct {
		by   *Dir
		name string
		size int
		want errcode.Code
	}{
		{ann, "a", 100, ""},
		{ann, "b", 1, errcode.QuotaExceeded},
		{bob, "c", 100, ""},
		{bob, "c", 101, errcode.QuotaExceeded},
		{ann, "a", 50, ""}, // it writes less, and has room again
		{ann, "b", 50, ""},
		{ann, "b", 51, errcode.QuotaExceeded},
		{ann, "a", 0, ""},
		{ann, "d/e", 0, errcode.QuotaExceeded}, // the folder and the file
		{ann, "e", 0, ""},
		{ann, "f", 0, errcode.QuotaExceeded},
		{bob, "x/y", 0, ""},
	} {
		if got := write(c.by, c.name, c.size); got != c.want {
			t.Errorf("%s of %d bytes: %q, want %q", c.name, c.size, got, c.want)
		}
	}
	_, err := ann.CheckQuota(t.Context())
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b", "c", "e", "old", "x/y"} { // the operator removes all
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.quotas = QuotaManager{} // nothing is cached any more
	if got := write(ann, "f", 100); got != "" {
		t.Errorf("in an empty workspace: %q", got)
	}
}

// A program's holder is charged for what the program adds, and for nothing that others write
// meanwhile.
func TestSharedQuota_ChargesPrograms(t *testing.T) {
	s := &sharedDir{dir: t.TempDir()}
	quota := Quota{Bytes: 1000, Files: 10}
	ann, bob := s.openFor(t, "ann", quota), s.openFor(t, "bob", quota)
	if err := bob.WriteFile(t.Context(), "bobs", []byte(strings.Repeat("x", 900))); err != nil {
		t.Fatal(err)
	}
	got := runProgram(t, ann, func() {
		putFile(t, filepath.Join(s.dir, "build", "out"), strings.Repeat("x", 2000))
		if err := bob.WriteFile(t.Context(), "more", []byte(strings.Repeat("x", 50))); err != nil {
			t.Error(err)
		}
		if _, err := ann.CheckQuota(t.Context()); errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Errorf("while it runs: %v", err)
		}
	})
	if want := (Usage{Bytes: 2000, Files: 2}); got != want {
		t.Errorf("ann has added %+v, want %+v", got, want)
	}
	if u, err := bob.CheckQuota(t.Context()); err != nil || u.Bytes != 950 {
		t.Errorf("bob has added %+v, %v", u, err)
	}
	putFile(t, filepath.Join(s.dir, "from outside"), strings.Repeat("x", 5000)) // while no program runs
	got = runProgram(t, ann, func() {
		if err := os.RemoveAll(filepath.Join(s.dir, "build")); err != nil {
			t.Error(err)
		}
	})
	if got != (Usage{}) {
		t.Errorf("after its files are removed, ann has added %+v", got)
	}
}

// What a program hides in a folder that cannot be read is charged when it can be.
func TestSharedQuota_ChargesHiddenFiles(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read every folder")
	}
	s := &sharedDir{dir: t.TempDir()}
	ann := s.openFor(t, "ann", Quota{Bytes: 1000, Files: 10})
	end, err := ann.BeginProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(s.dir, "hidden", "f"), strings.Repeat("x", 2000))
	if err := os.Chmod(filepath.Join(s.dir, "hidden"), 0); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := ann.CheckQuota(t.Context()); errcode.CodeOf(err) != errcode.PermissionDenied {
		t.Errorf("got %v", err)
	}
	if err := os.Chmod(filepath.Join(s.dir, "hidden"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.CheckQuota(t.Context()); errcode.CodeOf(err) != errcode.QuotaExceeded {
		t.Errorf("got %v", err)
	}
}

// Programs of different holders take turns. One that gives up leaves the turn to others.
func TestSharedQuota_ProgramsTakeTurns(t *testing.T) {
	s := &sharedDir{dir: t.TempDir()}
	quota := Quota{Bytes: 1000, Files: 10}
	ann, bob := s.openFor(t, "ann", quota), s.openFor(t, "bob", quota)
	end, err := ann.BeginProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bob.BeginProgram(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v while a program runs", err)
	}
	bob.ReadOnly = true
	if _, err := bob.BeginProgram(t.Context()); err != nil {
		t.Errorf("a program that only reads: %v", err)
	}
	bob.ReadOnly = false
	end()
	end, err = bob.BeginProgram(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// A share that cannot be read or saved allows no write.
func TestSharedQuota_DeniesWithoutStore(t *testing.T) {
	s := &sharedDir{dir: t.TempDir()}
	ann := s.openFor(t, "ann", Quota{Bytes: 1000, Files: 10})
	s.store.fail = errors.New("damaged")
	if err := ann.WriteFile(t.Context(), "f", nil); err == nil {
		t.Error("a write succeeds")
	}
	if _, err := ann.CheckQuota(t.Context()); err == nil {
		t.Error("a program may write")
	}
	if list, err := os.ReadDir(s.dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

// Property: whatever the holders and their programs write, all of it is charged to one of them.
func TestSharedQuota_SumOfShares(t *testing.T) {
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	s := &sharedDir{dir: t.TempDir()}
	quota := Quota{Bytes: 500, Files: 5}
	holders := []string{"ann", "bob", "eve"}
	for range 300 {
		d := s.openFor(t, holders[r.Intn(3)], quota)
		name, content := fmt.Sprintf("f%d", r.Intn(20)), strings.Repeat("x", r.Intn(200))
		if r.Intn(4) == 0 {
			runProgram(t, d, func() { putFile(t, filepath.Join(s.dir, name), content) })
		} else if err := d.WriteFile(t.Context(), name, []byte(content)); err != nil && errcode.CodeOf(err) != errcode.QuotaExceeded {
			t.Fatal(err)
		}
		d.Root.Close()
	}
	all, err := s.openFor(t, "ann", quota).Quota.measureAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var sum Usage
	for _, holder := range holders {
		u, _ := s.store.LoadShare(t.Context(), s.dir, holder)
		sum = sum.adjusted(u.Bytes, u.Files)
	}
	if sum.Bytes < all.Bytes || sum.Files < all.Files { // more, if a holder removed what others had added
		t.Errorf("seed %d: the holders have added %+v, the directory has %+v", seed, sum, all)
	}
}
