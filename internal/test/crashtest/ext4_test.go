package crashtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var livesFlag = flag.Int("lives", 0, "how many processes lose their ext4; 0 is 4, or 1 with -short")

// controlLives are the processes within which ext4 without fsync has to show loss.
const controlLives = 4

// The data directory is on the kernel's own ext4, on a disk that is a file on
// XFS. A reflink of that file is the disk as a power cut would leave it. Some
// are taken while the process works, one when it has been killed; each is
// mounted, which replays ext4's journal, and holds what was shown before. With
// the last the work goes on. At length:
//
//	go test ./internal/test/crashtest -run Ext4 -lives 200 -timeout 60m -v
func TestExt4AfterAPowerCutHoldsWhatWasAcknowledged(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	b := newBench(t)
	for b.lives < cmp.Or(*livesFlag, short.N(1, 4)) && !t.Failed() {
		b.organization(t, cmp.Or(*livesFlag, short.N(1, 4)), nil, func(faults []string) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	soakreport.Report(t, soakreport.Result{
		Part: "ext4", Claim: "a power cut under ext4 loses nothing acknowledged", Goal: "no loss, no damage, the right end",
		Observed: fmt.Sprintf("%d processes, %d snapshots", b.lives, b.snapshots), Passed: !t.Failed(),
	})
}

// What the test above looks for it finds: the same with fsync switched off.
func TestExt4WithoutFsyncIsNoticed(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	strace(t, "ext4")
	b, found := newBench(t), []string(nil)
	off := []string{"strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:retval=0"}
	for b.lives < controlLives && len(found) == 0 {
		b.organization(t, b.lives+1, off, func(faults []string) { found = append(found, faults...) })
	}
	t.Logf("seen: %s", few(found))
	soakreport.Report(t, soakreport.Result{
		Part: "ext4", Claim: "without fsync the same test finds loss", Goal: fmt.Sprintf("within %d processes", controlLives),
		Observed: fmt.Sprintf("%d processes, %d snapshots", b.lives, b.snapshots), Passed: len(found) > 0,
	})
}

// bench is a directory on XFS where disks are files.
type bench struct {
	random           *rand.Rand
	dir              string
	disks            int
	lives, snapshots int
}

// newBench skips a test where it cannot be made.
func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		skip(t, "ext4", "mounting takes root")
	}
	for _, program := range []string{"mkfs.xfs", "mkfs.ext4", "e2fsck", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, "ext4", "there is no "+program+"; deps.sh installs mkfs.xfs on Debian")
		}
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./internal/test/crashtest -run '^%s$' -lives %d -seed %d", t.Name(), cmp.Or(*livesFlag, short.N(1, 4)), seed)
	b := &bench{random: rand.New(rand.NewPCG(seed, 3)), dir: tempDir(t)}
	file := filepath.Join(tempDir(t), "xfs")
	if err := errors.Join(sized(file, 1<<30), command("mkfs.xfs", "-q", "-m", "reflink=1", file), mountFile(t, file, b.dir)); err != nil {
		skip(t, "ext4", fmt.Sprint("no XFS can be mounted from a file: ", err))
	}
	first := b.disk()
	if err := errors.Join(sized(first, 64<<20), command("mkfs.ext4", "-q", "-F", first), clone(first, b.disk())); err != nil {
		skip(t, "ext4", fmt.Sprint("no file can be cloned here: ", err))
	}
	return b
}

// disk names the next disk's file.
func (b *bench) disk() string {
	b.disks++
	return b.name(b.disks)
}

func (b *bench) name(n int) string { return filepath.Join(b.dir, fmt.Sprint("disk", n)) }

// organization cuts an organization's power until limit, or until it has ended
// all the same, and tells what is wrong.
func (b *bench) organization(t *testing.T, limit int, wrap []string, tell func([]string)) {
	t.Helper()
	h, live := newHouse(t), b.disk()
	if err := clone(b.name(1), live); err != nil {
		t.Fatal(err)
	}
	for b.lives < limit && !t.Failed() {
		b.lives++
		cuts := b.live(t, h, live, wrap)
		faults := b.look(t, h, cuts)
		if tell(faults); len(faults) > 0 {
			return
		}
		live = cuts[len(cuts)-1].disk
		if h.data = b.data(t, live); b.ended(t, h) {
			return
		}
	}
}

// snapshot is a disk and what had been shown before it was taken.
type snapshot struct {
	disk string
	seen *evidence
	why  string
}

// live lets a process work on a disk and gives snapshots of it; the last one
// was taken when the process had been killed.
func (b *bench) live(t *testing.T, h *house, live string, wrap []string) (cuts []snapshot) {
	t.Helper()
	cut := func(why string) {
		s := snapshot{b.disk(), h.seen.clone(), why}
		if err := clone(live, s.disk); err != nil {
			t.Error(err)
		}
		cuts = append(cuts, s)
	}
	last, kill := 2+b.random.IntN(120), make(chan struct{})
	moments := []int{b.random.IntN(last), b.random.IntN(last)}
	h.data, h.wrap = b.data(t, live), wrap
	status := h.run(t, kill, func(events int) {
		if slices.Contains(moments, events) {
			cut(fmt.Sprint("at event ", events))
		}
		if events == last {
			close(kill)
		}
	})
	if h.wrap = nil; status > 0 && status < 128 { // strace ends as what it traced: killed
		t.Errorf("it ended by itself with %d:\n%s", status, h.stderr())
	}
	cut(fmt.Sprint("killed at event ", last))
	return cuts
}

// look judges snapshots and lets a process go on with the last.
func (b *bench) look(t *testing.T, h *house, cuts []snapshot) (faults []string) {
	t.Helper()
	for i, s := range cuts {
		b.snapshots++
		again := b.disk() // what is looked at is changed by it
		if err := clone(s.disk, again); err != nil {
			t.Fatal(err)
		}
		data := b.data(t, again)
		found := judge(t, data, s.seen)
		if len(found) == 0 && i == len(cuts)-1 {
			h.branch(t, data, func(branch *house) { found = branch.endsWell(t) })
		}
		if err := errors.Join(unmount(filepath.Dir(data)), command("e2fsck", "-fn", again)); err != nil {
			found = append(found, err.Error())
		}
		faults = append(faults, blame(s.why, found)...)
	}
	return faults
}

// ended says whether the task has; the process that is to go on learns of it.
func (b *bench) ended(t *testing.T, h *house) bool {
	r := h.record(t)
	h.learn(r)
	if err := unmount(filepath.Dir(h.data)); err != nil {
		t.Error(err)
	}
	return r.ended()
}

// data mounts a disk and gives the data directory on it.
func (b *bench) data(t *testing.T, disk string) string {
	t.Helper()
	dir := tempDir(t)
	if err := mountFile(t, disk, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

// mountFile mounts a file system that is in a file, until the test ends.
func mountFile(t *testing.T, file, dir string) error {
	if err := command("mount", "-o", "loop", file, dir); err != nil {
		return err
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// unmount unmounts also what is in use; what is not mounted is no error.
func unmount(dir string) error {
	err := syscall.Unmount(dir, 0)
	if errors.Is(err, syscall.EBUSY) {
		err = syscall.Unmount(dir, syscall.MNT_DETACH)
	}
	if errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// clone copies a file as it is at one moment, by reflink.
func clone(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		return errors.Join(fmt.Errorf("clone %s: %w", from, err), out.Close())
	}
	return out.Close()
}

// sized makes a file of a length that takes no room.
func sized(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
