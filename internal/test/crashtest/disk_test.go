//go:build linux && (amd64 || arm64)

package crashtest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/crashtest/faultfs"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var faultsFlag = flag.Int("faults", 0, "number of disks per fault; 0 is 5, or 1 with -short")

// A disk that becomes full at any point stops the process with a helpful message and
// loses nothing. With free space the work continues. A long run:
//
//	go test -C internal/test/crashtest -run Disk -faults 100 -timeout 60m -v
func TestDisk_FullStopsProcessAndLosesNothing(t *testing.T) {
	external.Skip(t, "file systems of its own")
	normal := measureDisk(t)
	s := diskFault{t: t, claim: "a full disk is reported and loses nothing", want: "no space left on device"}
	for i := range cmp.Or(*faultsFlag, short.Count(1, 5)) {
		capacity := normal.usedBytes * int64(i) / int64(cmp.Or(*faultsFlag, short.Count(1, 5))) / 4096 * 4096
		s.injectFault(fmt.Sprint("full at byte ", capacity), func(f *faultfs.FS) { f.SetCapacity(capacity) },
			func(f *faultfs.FS) { f.SetCapacity(faultfs.UnlimitedCapacity) })
	}
	s.report()
}

// A failed fsync has the same outcome. Its data may be lost, on the same machine and
// after a power cut.
func TestDisk_FailedFsyncStopsProcessAndLosesNothing(t *testing.T) {
	external.Skip(t, "file systems of its own")
	normal := measureDisk(t)
	s := diskFault{t: t, claim: "a failed fsync is reported and loses nothing", want: "input/output error"}
	for i := range cmp.Or(*faultsFlag, short.Count(1, 5)) {
		n := 1 + i*normal.syncs/cmp.Or(*faultsFlag, short.Count(1, 5))
		s.injectFault(fmt.Sprint("fsync ", n, " failed"), func(f *faultfs.FS) { f.FailSync(n) }, func(*faultfs.FS) {})
	}
	s.report()
}

// After a failed fsync the kernel serves pages that are not on the disk, also to the
// next process. What that process commits on top of them must survive a power cut.
func TestDisk_PowerCutAfterFailedFsyncLosesNothing(t *testing.T) {
	external.Skip(t, "file systems of its own")
	normal := measureDisk(t)
	p := newPowerCuts(t, faultfs.Options{StrictNames: true})
	for i := range cmp.Or(*faultsFlag, short.Count(1, 5)) {
		n, m := 1+p.random.IntN(4)+i*normal.syncs/cmp.Or(*faultsFlag, short.Count(1, 5)), 1+p.random.IntN(2)
		fx := newFixture(t)
		f := mountDisk(t, fx, faultfs.Options{StrictNames: true, Seed: p.random.Uint64()})
		f.FailSync(n)
		fx.runOnDisk(t, f, 0)
		fx.adoptTask(fx.readStored(t))
		f.CutAtSync(m)
		fx.runOnDisk(t, f, 0)
		f.CutPower() // in case the process ended before
		_, faults := p.checkImages(t, fx, f)
		for _, fault := range prefixFaults(fmt.Sprintf("fsync %d failed, cut at fsync %d of the next process", n, m), faults) {
			t.Error(fault)
		}
		p.cuts++
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "disk", Claim: "a power cut after a failed fsync loses nothing", Goal: "no loss, no damage, task completes correctly",
		Observed: fmt.Sprintf("%d failed fsyncs, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// The same with the system call itself, on this machine's own file system.
func TestDisk_FailedSystemCallStopsProcessAndLosesNothing(t *testing.T) {
	external.Skip(t, "file systems of its own")
	requireStrace(t, "disk")
	s := diskFault{t: t, claim: "a failed fdatasync of the kernel is reported and loses nothing", want: "input/output error"}
	for _, n := range []int{1, 3, 10} { // counted per thread; there are several
		fx := newFixture(t)
		fx.wrapper = []string{"strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace=fdatasync", "-e", fmt.Sprint("inject=fdatasync:error=EIO:when=", n)}
		s.disks++
		var faults []string
		if status := fx.run(t, nil, func(int) {}); status != 0 {
			s.stopped++
			faults = fx.exitFaults(status, s.want)
		}
		fx.wrapper = nil
		for _, fault := range prefixFaults(fmt.Sprint("fdatasync ", n), slices.Concat(faults, verify(t, fx.data, fx.observed), fx.completionFaults(t))) {
			t.Error(fault)
		}
	}
	s.report()
}

// requireStrace skips a test where processes cannot be traced.
func requireStrace(t *testing.T, part string) {
	t.Helper()
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		skipPart(t, part, fmt.Sprintf("strace does not work: %v %s", err, strings.TrimSpace(string(out))))
	}
}

// A write that a power cut leaves half done loses nothing.
func TestDisk_TornWriteLosesNothing(t *testing.T) {
	external.Skip(t, "file systems of its own")
	normal := measureDisk(t)
	p := newPowerCuts(t, faultfs.Options{StrictNames: true})
	for i := range cmp.Or(*faultsFlag, short.Count(1, 5)) {
		n := 1 + i*normal.writes/cmp.Or(*faultsFlag, short.Count(1, 5))
		fx := newFixture(t)
		f := mountDisk(t, fx, faultfs.Options{StrictNames: true})
		f.TearWrite(n)
		fx.runOnDisk(t, f, 0)
		f.CutPower() // in case the process ended before
		_, faults := p.checkImages(t, fx, f)
		for _, fault := range prefixFaults(fmt.Sprint("torn at write ", n), faults) {
			t.Error(fault)
		}
		p.cuts++
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "disk", Claim: "a torn write loses nothing", Goal: "no loss, no damage, task completes correctly",
		Observed: fmt.Sprintf("%d torn writes, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// diskUsage is what an undisturbed task uses of a disk.
type diskUsage struct {
	usedBytes     int64
	writes, syncs int
}

// measureDisk runs an undisturbed task on a disk without faults.
func measureDisk(t *testing.T) diskUsage {
	t.Helper()
	requireMount(t, "disk")
	fx := newFixture(t)
	f := mountDisk(t, fx, faultfs.Options{StrictNames: true})
	if status := fx.runOnDisk(t, f, 0); status != 0 {
		t.Fatalf("on a disk without faults it exited with %d:\n%s", status, fx.stderr())
	}
	e := diskUsage{usedBytes: f.UsedBytes()}
	e.writes, e.syncs = f.OperationCounts()
	return e
}

// diskFault is a kind of fault that is injected at many points of the work.
type diskFault struct {
	t           *testing.T
	claim, want string
	disks       int
	stopped     int
}

// injectFault runs a process on a disk that fails, and checks what the process reports
// and what it leaves.
func (s *diskFault) injectFault(why string, arm, repair func(f *faultfs.FS)) {
	s.t.Helper()
	s.disks++
	fx := newFixture(s.t)
	f := mountDisk(s.t, fx, faultfs.Options{StrictNames: true, Seed: uint64(s.disks)})
	arm(f)
	var faults []string
	if status := fx.runOnDisk(s.t, f, 0); status != 0 {
		s.stopped++
		faults = fx.exitFaults(status, s.want)
	}
	for _, fault := range prefixFaults(why, slices.Concat(faults, s.continueWork(fx, f, repair))) {
		s.t.Error(fault)
	}
}

// continueWork resumes the work after a power cut and on the repaired disk, and
// finally cuts the power of the repaired disk.
func (s *diskFault) continueWork(fx *fixture, f *faultfs.FS, repair func(f *faultfs.FS)) (faults []string) {
	s.t.Helper()
	data := filepath.Join(writeImage(s.t, f, uint64(s.disks)), "data")
	if faults = verify(s.t, data, fx.observed); len(faults) > 0 {
		return faults
	}
	fx.tryOn(s.t, data, func(b *fixture) { faults = prefixFaults("after a power cut", b.completionFaults(s.t)) })
	repair(f)
	faults = append(faults, prefixFaults("repaired", fx.completionFaults(s.t))...)
	data = filepath.Join(writeImage(s.t, f, uint64(s.disks)), "data")
	return append(faults, prefixFaults("repaired, and then a power cut", verify(s.t, data, fx.observed))...)
}

// exitFaults checks a stopped process: its exit status, and that its output names the
// file, the cause and how to resume.
func (fx *fixture) exitFaults(status int, cause string) (faults []string) {
	if status != 1 {
		faults = append(faults, fmt.Sprintf("it exited with %d, want 1:\n%s", status, fx.stderr()))
	}
	wanted := []string{fx.data, cause}
	if fx.observed.task != "" {
		wanted = append(wanted, "run --resume "+string(fx.observed.task))
	}
	for _, want := range wanted {
		if !strings.Contains(fx.stderr(), want) {
			faults = append(faults, fmt.Sprintf("its output does not mention %q:\n%s", want, fx.stderr()))
		}
	}
	return faults
}

// report records the result of all faults of this kind.
func (s *diskFault) report() {
	soakreport.RecordResult(s.t, soakreport.Result{
		Part: "disk", Claim: s.claim, Goal: "reported, no loss, task completes correctly",
		Observed: fmt.Sprintf("%d disks, %d processes stopped", s.disks, s.stopped), Passed: !s.t.Failed() && s.stopped > 0,
	})
}
