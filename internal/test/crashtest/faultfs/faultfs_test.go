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

// mount gives a file system, its directory, and a way to write a file in it.
func mount(t *testing.T, opts *faultfs.Options) (*faultfs.FS, string) {
	t.Helper()
	if err := faultfs.Mountable(); err != nil {
		t.Skip("nothing can be mounted: ", err)
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

// must fails the test when something that has to work does not.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func writeAt(f *os.File, data []byte, off int64) error {
	_, err := f.WriteAt(data, off)
	return err
}

// page gives a page full of one character.
func page(c byte) []byte { return bytes.Repeat([]byte{c}, 4096) }

// images gives what a file holds in many images, each once; "-" for no file.
func images(t *testing.T, f *faultfs.FS, name string) []string {
	t.Helper()
	r, dir := rand.New(rand.NewPCG(1, 2)), t.TempDir()
	var all []string
	for range 100 {
		must(t, os.RemoveAll(dir), f.Image(dir, r))
		data, err := os.ReadFile(filepath.Join(dir, name))
		content := string(data)
		if errors.Is(err, fs.ErrNotExist) {
			content = "-"
		} else {
			must(t, err)
		}
		if !slices.Contains(all, content) {
			all = append(all, content)
		}
	}
	return all
}

// runs shortens a content: "aab" of pages is "a2b1", in sectors "a16b8".
func runs(content string, size int) string {
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

func TestWhatWasSyncedIsInEveryImageAndNothingElseIsInAll(t *testing.T) {
	f, dir := mount(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	must(t, writeAt(file, append(page('a'), page('a')...), 0), file.Sync())
	if got := images(t, f, "a"); len(got) != 1 || runs(got[0], 4096) != "aa" {
		t.Fatalf("after a sync there are %d images", len(got))
	}
	must(t, writeAt(file, page('b'), 0), writeAt(file, page('c'), 4096), writeAt(file, page('d'), 0))
	whole := map[string]bool{}
	for _, content := range images(t, f, "a") {
		if first, second := content[:4096], content[4096:]; len(strings.Trim(first, first[:1])+strings.Trim(second, second[:1])) == 0 {
			whole[runs(content, 4096)] = true
		}
	}
	for _, want := range []string{"aa", "ba", "ac", "bc", "da", "dc"} {
		if !whole[want] {
			t.Errorf("no image is %s; there are %v", want, whole)
		}
	}
}

func TestWritesAreTornAtSectorsOnly(t *testing.T) {
	f, dir := mount(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	must(t, writeAt(file, page('a'), 0), file.Sync(), writeAt(file, page('b'), 0))
	torn := 0
	for _, content := range images(t, f, "a") {
		if runs := runs(content, 512); strings.Contains(runs, "a") && strings.Contains(runs, "b") {
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

func TestANameIsKeptByTheSyncThatPromisesIt(t *testing.T) {
	for name, c := range map[string]struct {
		opts *faultfs.Options
		sync func(t *testing.T, dir string, file *os.File) error
		kept bool
	}{
		"nothing synced":              {nil, func(*testing.T, string, *os.File) error { return nil }, false},
		"the file synced":             {nil, func(_ *testing.T, _ string, file *os.File) error { return file.Sync() }, true},
		"the file, by POSIX":          {&faultfs.Options{StrictNames: true}, func(_ *testing.T, _ string, file *os.File) error { return file.Sync() }, false},
		"both directories":            {&faultfs.Options{StrictNames: true}, syncDirs, true},
		"nothing, though it is asked": {&faultfs.Options{IgnoreSync: true}, syncDirs, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := mount(t, c.opts)
			must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
			file := create(t, filepath.Join(dir, "sub", "a"))
			must(t, c.sync(t, dir, file))
			if got := !slices.Contains(images(t, f, "sub/a"), "-"); got != c.kept {
				t.Errorf("it is in every image: %v, want %v", got, c.kept)
			}
		})
	}
}

func syncDirs(t *testing.T, dir string, file *os.File) error {
	errs := []error{file.Sync()}
	for _, name := range []string{dir, filepath.Join(dir, "sub")} {
		d, err := os.Open(name)
		must(t, err)
		errs = append(errs, d.Sync(), d.Close())
	}
	return errors.Join(errs...)
}

func TestAMoveIsDoneWholeOrNotAtAll(t *testing.T) {
	f, dir := mount(t, nil)
	for _, name := range []string{"old", "new"} {
		file := create(t, filepath.Join(dir, name))
		must(t, writeAt(file, []byte(name), 0), file.Sync())
	}
	must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "old")))
	got := images(t, f, "old")
	slices.Sort(got)
	if !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("the images have %q, want one or the other", got)
	}
}

func TestAFileWithTwoNamesIsOne(t *testing.T) {
	f, dir := mount(t, nil)
	file, second := create(t, filepath.Join(dir, "a")), filepath.Join(dir, "b")
	must(t, os.Link(filepath.Join(dir, "a"), second))
	if err := os.Link(filepath.Join(dir, "a"), second); !errors.Is(err, fs.ErrExist) {
		t.Errorf("linked twice: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "a")), writeAt(file, []byte("kept"), 0), file.Sync())
	if got := images(t, f, "b"); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the images have %q", got)
	}
}

// mapEnv names the directory in which a child process maps a file.
const mapEnv = "FAULTFS_MAP"

// The pages are mapped by another process: one that waits for a page of a disk
// it serves itself cannot be stopped for a garbage collection, the collection
// stops who would bring the page, and the kernel lets nobody end such a process.
func TestMappedPagesSeeWhatIsWritten(t *testing.T) {
	if dir := os.Getenv(mapEnv); dir != "" {
		seeMapped(t, dir)
		return
	}
	_, dir := mount(t, nil)
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), mapEnv+"="+dir)
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

func seeMapped(t *testing.T, dir string) {
	file := create(t, filepath.Join(dir, "a"))
	must(t, file.Truncate(4*4096))
	mapped, err := unix.Mmap(int(file.Fd()), 0, 4*4096, unix.PROT_READ, unix.MAP_SHARED)
	must(t, err)
	defer unix.Munmap(mapped)
	for i := range byte(4) {
		before := mapped[int(i)*4096]
		must(t, writeAt(file, page('a'+i), int64(i)*4096))
		if before != 0 || mapped[int(i)*4096] != 'a'+i {
			t.Errorf("page %d reads %q, then %q", i, before, mapped[int(i)*4096])
		}
	}
}

func TestAFileIsLockedForOthers(t *testing.T) {
	_, dir := mount(t, nil)
	first, second := create(t, filepath.Join(dir, "a")), create(t, filepath.Join(dir, "a"))
	must(t, syscall.Flock(int(first.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	if err := syscall.Flock(int(second.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("got %v, want EWOULDBLOCK", err)
	}
}

func TestAFailedSyncLosesForGood(t *testing.T) {
	f, dir := mount(t, &faultfs.Options{Seed: 3})
	file := create(t, filepath.Join(dir, "a"))
	must(t, writeAt(file, page('a'), 0), file.Sync())
	lost := 0
	for range 8 {
		must(t, writeAt(file, page('b'), 0))
		f.FailSync(1)
		if err := file.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v, want EIO", err)
		}
		must(t, file.Sync())
		data, err := os.ReadFile(filepath.Join(dir, "a"))
		must(t, err)
		got := images(t, f, "a")
		if string(data) != string(page('b')) || len(got) != 1 {
			t.Fatalf("it reads as %s and there are %d images", runs(string(data), 4096), len(got))
		}
		if got[0] != string(page('b')) {
			lost++
		}
		must(t, unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED))
		if data, err = os.ReadFile(filepath.Join(dir, "a")); string(data) != got[0] {
			t.Fatalf("without the kernel's pages it reads as %s %v, the disk holds %s", runs(string(data), 512), err, runs(got[0], 512))
		}
		must(t, writeAt(file, page('a'), 0), file.Sync())
	}
	if lost == 0 {
		t.Error("nothing was ever lost")
	}
}

func TestAFullDiskTakesWhatFits(t *testing.T) {
	f, dir := mount(t, nil)
	file := create(t, filepath.Join(dir, "a"))
	must(t, writeAt(file, page('a'), 0))
	f.Capacity(f.Used() + 4096)
	if n, err := unix.Pwrite(int(file.Fd()), append(page('b'), page('b')...), 4096); n != 4096 || err != nil {
		t.Errorf("wrote %d bytes: %v, want one page", n, err)
	}
	if err := writeAt(file, page('b'), 8192); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want ENOSPC", err)
	}
	must(t, writeAt(file, page('c'), 0), file.Truncate(1<<20)) // neither takes room
	if _, err := os.Create(filepath.Join(dir, "b")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("make a file: got %v, want ENOSPC", err)
	}
	must(t, file.Truncate(4096), writeAt(file, page('d'), 8192))
	f.Capacity(faultfs.Unlimited)
	must(t, writeAt(file, page('e'), 4096))
}

func TestWithoutPowerNothingWorks(t *testing.T) {
	for name, cut := range map[string]func(f *faultfs.FS){
		"cut":           func(f *faultfs.FS) { f.CutPower() },
		"at a write":    func(f *faultfs.FS) { f.CutAtWrite(1) },
		"at a sync":     func(f *faultfs.FS) { f.CutAtSync(1) },
		"in the middle": func(f *faultfs.FS) { f.TornWrite(1) },
	} {
		t.Run(name, func(t *testing.T) {
			f, dir := mount(t, nil)
			file := create(t, filepath.Join(dir, "a"))
			must(t, writeAt(file, page('a'), 0), file.Sync())
			cut(f)
			if err := errors.Join(writeAt(file, page('b'), 0), file.Sync()); !errors.Is(err, syscall.EIO) {
				t.Errorf("got %v, want EIO", err)
			}
			<-f.PoweredOff()
			if _, err := os.Create(filepath.Join(dir, "b")); !errors.Is(err, syscall.EIO) {
				t.Errorf("make a file: got %v, want EIO", err)
			}
			for _, content := range images(t, f, "a") {
				got := runs(content, 512)
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

func TestADiskStartsWithWhatItIsGiven(t *testing.T) {
	from := t.TempDir()
	must(t, os.Mkdir(filepath.Join(from, "sub"), 0o700), os.WriteFile(filepath.Join(from, "sub", "a"), []byte("kept"), 0o600))
	f, dir := mount(t, &faultfs.Options{From: from})
	data, err := os.ReadFile(filepath.Join(dir, "sub", "a"))
	must(t, err)
	if got := images(t, f, "sub/a"); string(data) != "kept" || !slices.Equal(got, []string{"kept"}) {
		t.Errorf("it reads %q, the images have %q", data, got)
	}
}
