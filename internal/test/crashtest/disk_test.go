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
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var faultsFlag = flag.Int("faults", 0, "how many disks of each kind go wrong; 0 is 5, or 1 with -short")

// A disk that is full at any point of the work stops the process with words
// that help, loses nothing, and when there is room the work goes on. At length:
//
//	go test ./internal/test/crashtest -run Disk -faults 100 -timeout 60m -v
func TestAFullDiskStopsTheProcessAndLosesNothing(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	whole := undisturbedDisk(t)
	s := spread{t: t, claim: "a full disk is told and loses nothing", want: "no space left on device"}
	for i := range cmp.Or(*faultsFlag, short.N(1, 5)) {
		capacity := whole.used * int64(i) / int64(cmp.Or(*faultsFlag, short.N(1, 5))) / 4096 * 4096
		s.goesWrong(fmt.Sprint("full at byte ", capacity), func(f *faultfs.FS) { f.Capacity(capacity) },
			func(f *faultfs.FS) { f.Capacity(faultfs.Unlimited) })
	}
	s.say()
}

// An fsync that fails does as much: what it was to keep may be lost, on the
// same machine and after a power cut.
func TestAFailedFsyncStopsTheProcessAndLosesNothing(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	whole := undisturbedDisk(t)
	s := spread{t: t, claim: "a failed fsync is told and loses nothing", want: "input/output error"}
	for i := range cmp.Or(*faultsFlag, short.N(1, 5)) {
		n := 1 + i*whole.syncs/cmp.Or(*faultsFlag, short.N(1, 5))
		s.goesWrong(fmt.Sprint("fsync ", n, " failed"), func(f *faultfs.FS) { f.FailSync(n) }, func(*faultfs.FS) {})
	}
	s.say()
}

// After a failed fsync the kernel shows pages that are not on the disk, also to
// the next process. What that one builds on them must survive a power cut.
func TestAPowerCutAfterAFailedFsyncLosesNothing(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	whole := undisturbedDisk(t)
	p := newOutages(t, faultfs.Options{StrictNames: true})
	for i := range cmp.Or(*faultsFlag, short.N(1, 5)) {
		n, m := 1+p.random.IntN(4)+i*whole.syncs/cmp.Or(*faultsFlag, short.N(1, 5)), 1+p.random.IntN(2)
		h := newHouse(t)
		f := mounted(t, h, faultfs.Options{StrictNames: true, Seed: p.random.Uint64()})
		f.FailSync(n)
		h.work(t, f, 0)
		h.learn(h.record(t))
		f.CutAtSync(m)
		h.work(t, f, 0)
		f.CutPower() // if it ended before
		_, faults := p.look(t, h, f)
		for _, fault := range blame(fmt.Sprintf("fsync %d failed, cut at fsync %d of the next process", n, m), faults) {
			t.Error(fault)
		}
		p.cuts++
	}
	soakreport.Report(t, soakreport.Result{
		Part: "disk", Claim: "a power cut after a failed fsync loses nothing", Goal: "no loss, no damage, the right end",
		Observed: fmt.Sprintf("%d failed fsyncs, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// The same with the system call itself, on this machine's own file system.
func TestAFailedSystemCallStopsTheProcessAndLosesNothing(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	strace(t, "disk")
	s := spread{t: t, claim: "a failed fdatasync of the kernel is told and loses nothing", want: "input/output error"}
	for _, n := range []int{1, 3, 10} { // of a thread; there are several
		h := newHouse(t)
		h.wrap = []string{"strace", "-f", "-qq", "-o", os.DevNull, "-e", "trace=fdatasync", "-e", fmt.Sprint("inject=fdatasync:error=EIO:when=", n)}
		s.disks++
		var faults []string
		if status := h.run(t, nil, func(int) {}); status != 0 {
			s.stopped++
			faults = h.told(status, s.want)
		}
		h.wrap = nil
		for _, fault := range blame(fmt.Sprint("fdatasync ", n), slices.Concat(faults, judge(t, h.data, h.seen), h.endsWell(t))) {
			t.Error(fault)
		}
	}
	s.say()
}

// strace skips a test where no process can be traced.
func strace(t *testing.T, part string) {
	t.Helper()
	if out, err := exec.Command("strace", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		skip(t, part, fmt.Sprintf("strace does not work: %v %s", err, strings.TrimSpace(string(out))))
	}
}

// A write that the power leaves half done loses nothing.
func TestATornWriteLosesNothing(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	whole := undisturbedDisk(t)
	p := newOutages(t, faultfs.Options{StrictNames: true})
	for i := range cmp.Or(*faultsFlag, short.N(1, 5)) {
		n := 1 + i*whole.writes/cmp.Or(*faultsFlag, short.N(1, 5))
		h := newHouse(t)
		f := mounted(t, h, faultfs.Options{StrictNames: true})
		f.TornWrite(n)
		h.work(t, f, 0)
		f.CutPower() // if it ended before
		_, faults := p.look(t, h, f)
		for _, fault := range blame(fmt.Sprint("torn at write ", n), faults) {
			t.Error(fault)
		}
		p.cuts++
	}
	soakreport.Report(t, soakreport.Result{
		Part: "disk", Claim: "a torn write loses nothing", Goal: "no loss, no damage, the right end",
		Observed: fmt.Sprintf("%d torn writes, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// extent is what a task that nothing disturbs takes of a disk.
type extent struct {
	used          int64
	writes, syncs int
}

func undisturbedDisk(t *testing.T) extent {
	t.Helper()
	mountable(t, "disk")
	h := newHouse(t)
	f := mounted(t, h, faultfs.Options{StrictNames: true})
	if status := h.work(t, f, 0); status != 0 {
		t.Fatalf("on a good disk it ended with %d:\n%s", status, h.stderr())
	}
	e := extent{used: f.Used()}
	e.writes, e.syncs = f.Counts()
	return e
}

// spread is a kind of fault at many points of the work.
type spread struct {
	t           *testing.T
	claim, want string
	disks       int
	stopped     int
}

// goesWrong lets a disk go wrong under a process and tells what is wrong with
// what it says and leaves.
func (s *spread) goesWrong(why string, arm, mend func(f *faultfs.FS)) {
	s.t.Helper()
	s.disks++
	h := newHouse(s.t)
	f := mounted(s.t, h, faultfs.Options{StrictNames: true, Seed: uint64(s.disks)})
	arm(f)
	var faults []string
	if status := h.work(s.t, f, 0); status != 0 {
		s.stopped++
		faults = h.told(status, s.want)
	}
	for _, fault := range blame(why, slices.Concat(faults, s.goesOn(h, f, mend))) {
		s.t.Error(fault)
	}
}

// goesOn lets the work go on, after a power cut and on the mended disk, and
// cuts the power there at last.
func (s *spread) goesOn(h *house, f *faultfs.FS, mend func(f *faultfs.FS)) (faults []string) {
	s.t.Helper()
	data := filepath.Join(image(s.t, f, uint64(s.disks)), "data")
	if faults = judge(s.t, data, h.seen); len(faults) > 0 {
		return faults
	}
	h.branch(s.t, data, func(b *house) { faults = blame("after a power cut", b.endsWell(s.t)) })
	mend(f)
	faults = append(faults, blame("mended", h.endsWell(s.t))...)
	data = filepath.Join(image(s.t, f, uint64(s.disks)), "data")
	return append(faults, blame("mended, and then a power cut", judge(s.t, data, h.seen))...)
}

// told says what is missing of a process's last words: the file, the cause,
// and what to do.
func (h *house) told(status int, cause string) (faults []string) {
	if status != 1 {
		faults = append(faults, fmt.Sprintf("it ended with %d, want 1:\n%s", status, h.stderr()))
	}
	wanted := []string{h.data, cause}
	if h.seen.task != "" {
		wanted = append(wanted, "run --resume "+string(h.seen.task))
	}
	for _, want := range wanted {
		if !strings.Contains(h.stderr(), want) {
			faults = append(faults, fmt.Sprintf("it said nothing of %q:\n%s", want, h.stderr()))
		}
	}
	return faults
}

func (s *spread) say() {
	soakreport.Report(s.t, soakreport.Result{
		Part: "disk", Claim: s.claim, Goal: "told, no loss, the right end",
		Observed: fmt.Sprintf("%d disks, %d processes stopped", s.disks, s.stopped), Passed: !s.t.Failed() && s.stopped > 0,
	})
}
