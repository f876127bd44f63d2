//go:build linux && (amd64 || arm64)

package faultfs_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/test/crashtest/faultfs"
)

// mountFS mounts a file system for the test and returns it with its directory.
func mountFS(t *testing.T, opts *faultfs.Options) (*faultfs.FS, string) {
	t.Helper()
	if err := faultfs.CheckSupport(); err != nil {
		t.Skip("cannot mount: ", err)
	}
	dir := t.TempDir()
	f, err := faultfs.Mount(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, dir
}

func create(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// mustSucceed fails the test on any error.
func mustSucceed(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func writeAt(f *os.File, data []byte, off int64) error {
	_, err := f.WriteAt(data, off)
	return err
}

// filledPage returns a page full of one character.
func filledPage(c byte) []byte { return bytes.Repeat([]byte{c}, 4096) }

// possibleContents returns the distinct contents of a file in many images; "-" stands
// for a missing file.
func possibleContents(t *testing.T, f *faultfs.FS, name string) []string {
	t.Helper()
	r, dir := rand.New(rand.NewPCG(1, 2)), t.TempDir()
	var all []string
	for range 100 {
		mustSucceed(t, os.RemoveAll(dir), f.WriteImage(dir, r))
		data, err := os.ReadFile(filepath.Join(dir, name))
		content := string(data)
		if errors.Is(err, fs.ErrNotExist) {
			content = "-"
		} else {
			mustSucceed(t, err)
		}
		if !slices.Contains(all, content) {
			all = append(all, content)
		}
	}
	return all
}

// summarize returns one character per size bytes of content, '0' for zeros.
func summarize(content string, size int) string {
	var b strings.Builder
	for i := 0; i < len(content); i += size {
		c := content[i]
		if c == 0 {
			c = '0'
		}
		b.WriteByte(c)
	}
	return b.String()
}

func TestImage_ContainsSyncedData(t *testing.T) {
	f, dir := mountFS(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, writeAt(file, append(filledPage('a'), filledPage('a')...), 0), file.Sync())
	if got := possibleContents(t, f, "a"); len(got) != 1 || summarize(got[0], 4096) != "aa" {
		t.Fatalf("after a sync there are %d possible contents", len(got))
	}
	mustSucceed(t, writeAt(file, filledPage('b'), 0), writeAt(file, filledPage('c'), 4096), writeAt(file, filledPage('d'), 0))
	whole := map[string]bool{}
	for _, content := range possibleContents(t, f, "a") {
		if first, second := content[:4096], content[4096:]; len(strings.Trim(first, first[:1])+strings.Trim(second, second[:1])) == 0 {
			whole[summarize(content, 4096)] = true
		}
	}
	for _, want := range []string{"aa", "ba", "ac", "bc", "da", "dc"} {
		if !whole[want] {
			t.Errorf("no image is %s; there are %v", want, whole)
		}
	}
}

func TestImage_TearsWritesAtSectors(t *testing.T) {
	f, dir := mountFS(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, writeAt(file, filledPage('a'), 0), file.Sync(), writeAt(file, filledPage('b'), 0))
	torn := 0
	for _, content := range possibleContents(t, f, "a") {
		if runs := summarize(content, 512); strings.Contains(runs, "a") && strings.Contains(runs, "b") {
			torn++
		}
		for i := 0; i < len(content); i += 512 {
			if s := content[i : i+512]; strings.Trim(s, s[:1]) != "" {
				t.Fatalf("a sector holds %q", s)
			}
		}
	}
	if torn == 0 {
		t.Error("no write was torn")
	}
}

func TestImage_KeepsSyncedNames(t *testing.T) {
	for name, c := range map[string]struct {
		opts *faultfs.Options
		sync func(t *testing.T, dir string, file *os.File) error
		kept bool
	}{
		"nothing synced":                 {nil, func(*testing.T, string, *os.File) error { return nil }, false},
		"the file synced":                {nil, func(_ *testing.T, _ string, file *os.File) error { return file.Sync() }, true},
		"the file, strict names":         {&faultfs.Options{StrictNames: true}, func(_ *testing.T, _ string, file *os.File) error { return file.Sync() }, false},
		"both directories, strict names": {&faultfs.Options{StrictNames: true}, syncDirs, true},
		"sync ignored":                   {&faultfs.Options{IgnoreSync: true}, syncDirs, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := mountFS(t, c.opts)
			mustSucceed(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
			file := create(t, filepath.Join(dir, "sub", "a"))
			mustSucceed(t, c.sync(t, dir, file))
			if got := !slices.Contains(possibleContents(t, f, "sub/a"), "-"); got != c.kept {
				t.Errorf("the name is in every image: %v, want %v", got, c.kept)
			}
		})
	}
}

func syncDirs(t *testing.T, dir string, file *os.File) error {
	errs := []error{file.Sync()}
	for _, name := range []string{dir, filepath.Join(dir, "sub")} {
		d, err := os.Open(name)
		mustSucceed(t, err)
		errs = append(errs, d.Sync(), d.Close())
	}
	return errors.Join(errs...)
}

func TestImage_RenameIsAtomic(t *testing.T) {
	f, dir := mountFS(t, nil)
	for _, name := range []string{"old", "new"} {
		file := create(t, filepath.Join(dir, name))
		mustSucceed(t, writeAt(file, []byte(name), 0), file.Sync())
	}
	mustSucceed(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")))
	got := possibleContents(t, f, "old")
	slices.Sort(got)
	if !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("the images have %q, want one or the other", got)
	}
}

func TestImage_HardLinkSharesContent(t *testing.T) {
	f, dir := mountFS(t, nil)
	file, second := create(t, filepath.Join(dir, "a")), filepath.Join(dir, "b")
	mustSucceed(t, os.Link(filepath.Join(dir, "a"), second))
	if err := os.Link(filepath.Join(dir, "a"), second); !errors.Is(err, fs.ErrExist) {
		t.Errorf("linked twice: %v", err)
	}
	mustSucceed(t, os.Remove(filepath.Join(dir, "a")), writeAt(file, []byte("kept"), 0), file.Sync())
	if got := possibleContents(t, f, "b"); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the images have %q", got)
	}
}

// mapEnv names the environment variable with the directory in which a child process
// maps a file.
const mapEnv = "FAULTFS_MAP"

// Another process maps the pages. A process that waits for a page of a disk it serves
// itself cannot be stopped for a garbage collection. The collection stops the
// goroutine that would deliver the page. The kernel does not let such a process be
// killed.
func TestFS_MappedPagesSeeWrites(t *testing.T) {
	if dir := os.Getenv(mapEnv); dir != "" {
		checkMappedPages(t, dir)
		return
	}
	_, dir := mountFS(t, nil)
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mapEnv+"="+dir)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func checkMappedPages(t *testing.T, dir string) {
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, file.Truncate(4*4096))
	mapped, err := unix.Mmap(int(file.Fd()), 0, 4*4096, unix.PROT_READ, unix.MAP_SHARED)
	mustSucceed(t, err)
	defer unix.Munmap(mapped)
	for i := range byte(4) {
		before := mapped[int(i)*4096]
		mustSucceed(t, writeAt(file, filledPage('a'+i), int64(i)*4096))
		if before != 0 || mapped[int(i)*4096] != 'a'+i {
			t.Errorf("page %d reads %q, then %q", i, before, mapped[int(i)*4096])
		}
	}
}

func TestFS_FlockExcludesOthers(t *testing.T) {
	_, dir := mountFS(t, nil)
	first, second := create(t, filepath.Join(dir, "a")), create(t, filepath.Join(dir, "a"))
	mustSucceed(t, syscall.Flock(int(first.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	if err := syscall.Flock(int(second.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("got %v, want EWOULDBLOCK", err)
	}
}

func TestFailSync_LosesDataPermanently(t *testing.T) {
	f, dir := mountFS(t, &faultfs.Options{Seed: 3})
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, writeAt(file, filledPage('a'), 0), file.Sync())
	lost := 0
	for range 8 {
		mustSucceed(t, writeAt(file, filledPage('b'), 0))
		f.FailSync(1)
		if err := file.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
		mustSucceed(t, file.Sync())
		data, err := os.ReadFile(filepath.Join(dir, "a"))
		mustSucceed(t, err)
		got := possibleContents(t, f, "a")
		if string(data) != string(filledPage('b')) || len(got) != 1 {
			t.Fatalf("it reads as %s and there are %d possible contents", summarize(string(data), 4096), len(got))
		}
		if got[0] != string(filledPage('b')) {
			lost++
		}
		mustSucceed(t, unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
		if data, err = os.ReadFile(filepath.Join(dir, "a")); string(data) != got[0] {
			t.Fatalf("without the page cache it reads as %s %v, the disk holds %s", summarize(string(data), 512), err, summarize(got[0], 512))
		}
		mustSucceed(t, writeAt(file, filledPage('a'), 0), file.Sync())
	}
	if lost == 0 {
		t.Error("nothing was ever lost")
	}
}

func TestSetCapacity_LimitsWrites(t *testing.T) {
	f, dir := mountFS(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, writeAt(file, filledPage('a'), 0))
	f.SetCapacity(f.UsedBytes() + 4096)
	if n, err := unix.Pwrite(int(file.Fd()), append(filledPage('b'), filledPage('b')...), 4096); n != 4096 || err != nil {
		t.Errorf("wrote %d bytes: %v, want one page", n, err)
	}
	if err := writeAt(file, filledPage('b'), 8192); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	mustSucceed(t, writeAt(file, filledPage('c'), 0), file.Truncate(1<<20)) // neither needs a block
	if _, err := os.Create(filepath.Join(dir, "b")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create a file: got %v, want ENOSPC", err)
	}
	mustSucceed(t, file.Truncate(4096), writeAt(file, filledPage('d'), 8192))
	f.SetCapacity(faultfs.UnlimitedCapacity)
	mustSucceed(t, writeAt(file, filledPage('e'), 4096))
}

func TestCutPower_FailsOperations(t *testing.T) {
	for name, cut := range map[string]func(f *faultfs.FS){
		"cut":           func(f *faultfs.FS) { f.CutPower() },
		"at a write":    func(f *faultfs.FS) { f.CutAtWrite(1) },
		"at a sync":     func(f *faultfs.FS) { f.CutAtSync(1) },
		"in the middle": func(f *faultfs.FS) { f.TearWrite(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := mountFS(t, nil)
			file := create(t, filepath.Join(dir, "a"))
			mustSucceed(t, writeAt(file, filledPage('a'), 0), file.Sync())
			cut(f)
			if err := errors.Join(writeAt(file, filledPage('b'), 0), file.Sync()); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v, want EIO", err)
			}
			<-f.PoweredOff()
			if _, err := os.Create(filepath.Join(dir, "b")); !errors.Is(err, syscall.EIO) {
				t.Errorf("create a file: got %v, want EIO", err)
			}
			for _, content := range possibleContents(t, f, "a") {
				got := summarize(content, 512)
				switch {
				case name == "in the middle" && strings.Contains(got[4:], "b"):
					t.Errorf("an image has %s", got)
				case name == "cut" && got != "aaaaaaaa":
					t.Errorf("an image has %s", got)
				}
			}
		})
	}
}

func TestOptions_InitialDirIsDurable(t *testing.T) {
	from := t.TempDir()
	mustSucceed(t, os.Mkdir(filepath.Join(from, "sub"), 0o700), os.WriteFile(filepath.Join(from, "sub", "a"), []byte("kept"), 0o600))
	f, dir := mountFS(t, &faultfs.Options{InitialDir: from})
	data, err := os.ReadFile(filepath.Join(dir, "sub", "a"))
	mustSucceed(t, err)
	if got := possibleContents(t, f, "sub/a"); string(data) != "kept" || !slices.Equal(got, []string{"kept"}) {
		t.Errorf("it reads %q, the images have %q", data, got)
	}
}

// With ReportSpace programs see the capacity and the free space. Without they see no size.
func TestFS_ReportsSpace(t *testing.T) {
	f, dir := mountFS(t, &faultfs.Options{ReportSpace: true})
	f.SetCapacity(1 << 20)
	file := create(t, filepath.Join(dir, "a"))
	mustSucceed(t, writeAt(file, make([]byte, 10*4096), 0), file.Sync())
	var s unix.Statfs_t
	mustSucceed(t, unix.Statfs(dir, &s))
	if used := f.UsedBytes(); s.Bsize != 4096 || s.Blocks*4096 != 1<<20 || s.Bavail*4096 != 1<<20-uint64(used) || used < 10*4096 {
		t.Errorf("%d blocks of %d, %d free; %d bytes of 1 MiB are used", s.Blocks, s.Bsize, s.Bavail, used)
	}
	f.SetCapacity(4096)
	if mustSucceed(t, unix.Statfs(dir, &s)); s.Bavail != 0 {
		t.Errorf("%d blocks are free on a disk that is too small", s.Bavail)
	}
	_, dir = mountFS(t, nil)
	if mustSucceed(t, unix.Statfs(dir, &s)); s.Blocks != 0 {
		t.Errorf("%d blocks are reported, want no size", s.Blocks)
	}
}
