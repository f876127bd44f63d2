//go:build linux && (amd64 || arm64)

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

	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var processesFlag = flag.Int("processes", 0, "number of processes whose ext4 loses power; 0 is 4, or 1 with -short")

// controlProcesses is the number of processes within which ext4 without fsync must
// show loss.
const controlProcesses = 4

// The data directory is on the kernel's own ext4, on a disk that is a file on XFS. A
// reflink of that file is the disk as a power cut would leave it. Some reflinks are
// taken while the process works, and one after it was killed. Each is mounted, which
// replays the ext4 journal, and must contain what was printed before. The work
// continues on the last one. A long run:
//
//	go test -C internal/test/crashtest -run Ext4 -processes 200 -timeout 60m -v
func TestExt4_PowerCutLosesNothingAcknowledged(t *testing.T) {
	external.Skip(t, "file systems of its own")
	b := newExt4Env(t)
	for b.processes < cmp.Or(*processesFlag, short.Count(1, 4)) && !t.Failed() {
		b.runOrganization(t, cmp.Or(*processesFlag, short.Count(1, 4)), nil, func(faults []string) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "ext4", Claim: "a power cut under ext4 loses nothing acknowledged", Goal: "no loss, no damage, task completes correctly",
		Observed: fmt.Sprintf("%d processes, %d snapshots", b.processes, b.snapshots), Passed: !t.Failed(),
	})
}

// Control: with fsync switched off, the test above finds loss.
func TestExt4_WithoutFsyncLossIsDetected(t *testing.T) {
	external.Skip(t, "file systems of its own")
	requireStrace(t, "ext4")
	b, found := newExt4Env(t), []string(nil)
	off := []string{"strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:retval=0"}
	for b.processes < controlProcesses && len(found) == 0 {
		b.runOrganization(t, b.processes+1, off, func(faults []string) { found = append(found, faults...) })
	}
	t.Logf("found: %s", firstFaults(found))
	soakreport.RecordResult(t, soakreport.Result{
		Part: "ext4", Claim: "without fsync the same test finds loss", Goal: fmt.Sprintf("within %d processes", controlProcesses),
		Observed: fmt.Sprintf("%d processes, %d snapshots", b.processes, b.snapshots), Passed: len(found) > 0,
	})
}

// ext4Env is a directory on XFS that contains disks as files.
type ext4Env struct {
	random               *rand.Rand
	dir                  string
	disks                int
	processes, snapshots int
}

// newExt4Env skips the test where the environment cannot be created.
func newExt4Env(t *testing.T) *ext4Env {
	t.Helper()
	if os.Geteuid() != 0 {
		skipPart(t, "ext4", "mounting needs root")
	}
	for _, program := range []string{"mkfs.xfs", "mkfs.ext4", "e2fsck", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			skipPart(t, "ext4", program+" is missing; deps.sh installs mkfs.xfs on Debian")
		}
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C internal/test/crashtest -run '^%s$' -processes %d -seed %d", t.Name(), cmp.Or(*processesFlag, short.Count(1, 4)), seed)
	b := &ext4Env{random: rand.New(rand.NewPCG(seed, 3)), dir: tempDir(t)}
	file := filepath.Join(tempDir(t), "xfs")
	if err := errors.Join(createSparse(file, 1<<30), runCommand("mkfs.xfs", "-q", "-m", "reflink=1", file), mountFile(t, file, b.dir)); err != nil {
		skipPart(t, "ext4", fmt.Sprint("cannot mount XFS from a file: ", err))
	}
	first := b.newDisk()
	if err := errors.Join(createSparse(first, 64<<20), runCommand("mkfs.ext4", "-q", "-F", first), reflink(first, b.newDisk())); err != nil {
		skipPart(t, "ext4", fmt.Sprint("cannot clone a file: ", err))
	}
	return b
}

// newDisk returns the path of the next disk's file.
func (b *ext4Env) newDisk() string {
	b.disks++
	return b.diskPath(b.disks)
}

func (b *ext4Env) diskPath(n int) string { return filepath.Join(b.dir, fmt.Sprint("disk", n)) }

// runOrganization cuts an organization's power until limit is reached or its task has
// ended. It passes each list of faults to tell and stops after the first faults.
func (b *ext4Env) runOrganization(t *testing.T, limit int, wrap []string, tell func([]string)) {
	t.Helper()
	fx, live := newFixture(t), b.newDisk()
	if err := reflink(b.diskPath(1), live); err != nil {
		t.Fatal(err)
	}
	for b.processes < limit && !t.Failed() {
		b.processes++
		cuts := b.runProcess(t, fx, live, wrap)
		faults := b.checkSnapshots(t, fx, cuts)
		if tell(faults); len(faults) > 0 {
			return
		}
		live = cuts[len(cuts)-1].disk
		if fx.data = b.mountData(t, live); b.ended(t, fx) {
			return
		}
	}
}

// snapshot is a disk and what had been observed before it was taken.
type snapshot struct {
	disk     string
	observed *observed
	why      string
}

// runProcess runs a process on a disk and returns snapshots of it. The last one was
// taken after the process was killed.
func (b *ext4Env) runProcess(t *testing.T, fx *fixture, live string, wrap []string) (cuts []snapshot) {
	t.Helper()
	cut := func(why string) {
		s := snapshot{b.newDisk(), fx.observed.clone(), why}
		if err := reflink(live, s.disk); err != nil {
			t.Error(err)
		}
		cuts = append(cuts, s)
	}
	last, kill := 2+b.random.IntN(120), make(chan struct{})
	moments := []int{b.random.IntN(last), b.random.IntN(last)}
	fx.data, fx.wrapper = b.mountData(t, live), wrap
	status := fx.run(t, kill, func(events int) {
		if slices.Contains(moments, events) {
			cut(fmt.Sprint("at event ", events))
		}
		if events == last {
			close(kill)
		}
	})
	if fx.wrapper = nil; status > 0 && status < 128 { // strace exits like the traced process: killed
		t.Errorf("it exited by itself with %d:\n%s", status, fx.stderr())
	}
	cut(fmt.Sprint("killed at event ", last))
	return cuts
}

// checkSnapshots verifies the snapshots and resumes the work on the last one.
func (b *ext4Env) checkSnapshots(t *testing.T, fx *fixture, cuts []snapshot) (faults []string) {
	t.Helper()
	for i, s := range cuts {
		b.snapshots++
		disk := b.newDisk() // mounting a snapshot changes it
		if err := reflink(s.disk, disk); err != nil {
			t.Fatal(err)
		}
		data := b.mountData(t, disk)
		found := verify(t, data, s.observed)
		if len(found) == 0 && i == len(cuts)-1 {
			fx.tryOn(t, data, func(branch *fixture) { found = branch.completionFaults(t) })
		}
		if err := errors.Join(unmount(filepath.Dir(data)), runCommand("e2fsck", "-fn", disk)); err != nil {
			found = append(found, err.Error())
		}
		faults = append(faults, prefixFaults(s.why, found)...)
	}
	return faults
}

// ended reports whether the task has ended, and lets the fixture adopt its id.
func (b *ext4Env) ended(t *testing.T, fx *fixture) bool {
	r := fx.readStored(t)
	fx.adoptTask(r)
	if err := unmount(filepath.Dir(fx.data)); err != nil {
		t.Error(err)
	}
	return r.taskEnded()
}

// mountData mounts a disk and returns the path of the data directory on it.
func (b *ext4Env) mountData(t *testing.T, disk string) string {
	t.Helper()
	dir := tempDir(t)
	if err := mountFile(t, disk, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

// mountFile mounts a file system that is in a file, until the test ends.
func mountFile(t *testing.T, file, dir string) error {
	if err := runCommand("mount", "-o", "loop", file, dir); err != nil {
		return err
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// unmount also unmounts a file system that is in use. It returns nil for a directory
// that is not mounted.
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

// reflink makes an atomic copy of a file.
func reflink(from, to string) error {
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

// createSparse creates a file of a given length that uses no disk space.
func createSparse(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func runCommand(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
