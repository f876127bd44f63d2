//go:build linux && (amd64 || arm64)

package crashtest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/crashtest/faultfs"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var cutsFlag = flag.Int("cuts", 0, "number of power cuts; 0 is 6, or 1 with -short")

const (
	imagesPerCut = 4  // number of possible disk contents checked per cut
	controlCuts  = 12 // cuts within which a disk without fsync must show loss
)

// The power is cut at a random write, fsync or event. Of the many possible disk
// contents after the cut some are checked: each opens and contains all that was
// observed. From one of them a new process continues to the correct end, and on a copy
// of it to the next cut. The workspace is on a disk that loses nothing, so that a
// repeated effect is noticed. A long run:
//
//	go test -C internal/test/crashtest -run PowerCut -cuts 500 -timeout 60m -v
func TestPowerCut_LosesNothingAcknowledged(t *testing.T) {
	external.Skip(t, "file systems of its own")
	p := newPowerCuts(t, faultfs.Options{StrictNames: true})
	for p.cuts < cmp.Or(*cutsFlag, short.Count(1, 6)) && !t.Failed() {
		p.runOrganization(t, cmp.Or(*cutsFlag, short.Count(1, 6)), func(faults []string) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "power", Claim: "a power cut loses nothing acknowledged", Goal: "no loss, no damage, task completes correctly",
		Observed: fmt.Sprintf("%d cuts, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// Control: a disk that acknowledges fsync and does nothing loses or damages what was
// observed.
func TestPowerCut_WithoutFsyncLossIsDetected(t *testing.T) {
	external.Skip(t, "file systems of its own")
	p, found := newPowerCuts(t, faultfs.Options{IgnoreSync: true}), []string(nil)
	for p.cuts < controlCuts && len(found) == 0 {
		p.runOrganization(t, p.cuts+1, func(faults []string) { found = append(found, faults...) })
	}
	t.Logf("found: %s", firstFaults(found))
	soakreport.RecordResult(t, soakreport.Result{
		Part: "power", Claim: "without fsync the same test finds loss", Goal: fmt.Sprintf("within %d cuts", controlCuts),
		Observed: fmt.Sprintf("%d cuts, %d images", p.cuts, p.images), Passed: len(found) > 0,
	})
}

// powerCuts is a series of power cuts.
type powerCuts struct {
	random       *rand.Rand
	options      faultfs.Options
	cuts, images int
}

func newPowerCuts(t *testing.T, options faultfs.Options) *powerCuts {
	t.Helper()
	requireMount(t, "power")
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C internal/test/crashtest -run '^%s$' -cuts %d -seed %d", t.Name(), cmp.Or(*cutsFlag, short.Count(1, 6)), seed)
	return &powerCuts{random: rand.New(rand.NewPCG(seed, 2)), options: options}
}

// diskOptions returns the options of a disk that starts with the content of from.
func (p *powerCuts) diskOptions(from string) faultfs.Options {
	o := p.options
	o.InitialDir = from
	return o
}

// requireMount skips a test where FUSE file systems cannot be mounted.
func requireMount(t *testing.T, part string) {
	t.Helper()
	if err := faultfs.CheckSupport(); err != nil {
		skipPart(t, part, fmt.Sprint("cannot mount: ", err))
	}
}

// runOrganization cuts an organization's power until limit is reached or its task has
// ended. It passes each list of faults to tell and stops after the first faults.
func (p *powerCuts) runOrganization(t *testing.T, limit int, tell func([]string)) {
	t.Helper()
	fx, from := newFixture(t), ""
	for p.cuts < limit && !t.Failed() {
		f := mountDisk(t, fx, p.diskOptions(from))
		why := fx.runUntilCut(t, f, p.random)
		p.cuts++
		next, faults := p.checkImages(t, fx, f)
		tell(prefixFaults(why, faults))
		if len(faults) > 0 {
			return
		}
		from, fx.data = next, filepath.Join(next, "data")
		r := fx.readStored(t)
		if fx.adoptTask(r); r.taskEnded() {
			return
		}
	}
}

// checkImages verifies some possible disk contents after a cut, resumes the work on a
// copy of the last one, and returns its directory.
func (p *powerCuts) checkImages(t *testing.T, fx *fixture, f *faultfs.FS) (next string, faults []string) {
	t.Helper()
	seed := uint64(0)
	for range imagesPerCut {
		seed = p.random.Uint64()
		next = writeImage(t, f, seed)
		p.images++
		if faults := verify(t, filepath.Join(next, "data"), fx.observed); len(faults) > 0 {
			return "", prefixFaults(fmt.Sprint("image ", seed), faults)
		}
	}
	fx.tryOn(t, filepath.Join(writeImage(t, f, seed), "data"), func(b *fixture) { faults = b.completionFaults(t) })
	return next, prefixFaults(fmt.Sprint("resumed from image ", seed), faults)
}

// writeImage writes one possible disk content and returns its directory.
func writeImage(t *testing.T, f *faultfs.FS, seed uint64) string {
	t.Helper()
	dir := tempDir(t)
	if err := f.WriteImage(dir, rand.New(rand.NewPCG(seed, 0))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mountDisk mounts a faulty disk for the data directory of the fixture.
func mountDisk(t *testing.T, fx *fixture, options faultfs.Options) *faultfs.FS {
	t.Helper()
	dir := tempDir(t)
	f, err := faultfs.Mount(dir, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	fx.data = filepath.Join(dir, "data")
	return f
}

// runUntilCut runs a process, cuts its power at a random point, and describes the
// point.
func (fx *fixture) runUntilCut(t *testing.T, f *faultfs.FS, r *rand.Rand) string {
	t.Helper()
	n, why, after := 1+r.IntN(400), "", 0
	if r.IntN(3) == 0 {
		n = 1 + r.IntN(16) // while the store opens
	}
	switch r.IntN(4) {
	case 0:
		why = fmt.Sprint("cut at write ", n)
		f.CutAtWrite(n)
	case 1:
		why = fmt.Sprint("cut at fsync ", n/2+1)
		f.CutAtSync(n/2 + 1)
	case 2:
		why = fmt.Sprint("cut in the middle of write ", n)
		f.TearWrite(n)
	case 3:
		after = 1 + n/4
		why = fmt.Sprint("cut at event ", after)
	}
	status := fx.runOnDisk(t, f, after)
	if status != 0 && !isPoweredOff(f) {
		t.Errorf("%s: it exited by itself with %d:\n%s", why, status, fx.stderr())
	}
	f.CutPower() // in case the process ended before
	return why
}

func isPoweredOff(f *faultfs.FS) bool {
	select {
	case <-f.PoweredOff():
		return true
	default:
		return false
	}
}

// runOnDisk runs a process until it ends or its power is cut, by the disk or after the
// given number of events. It returns the exit status, -1 if the process was killed.
func (fx *fixture) runOnDisk(t *testing.T, f *faultfs.FS, after int) (status int) {
	t.Helper()
	return fx.run(t, f.PoweredOff(), func(events int) {
		if events == after {
			f.CutPower()
		}
	})
}

// run runs a process until it ends or kill is closed, calls saw with the number of
// each event, and returns the exit status, -1 if the process was killed.
func (fx *fixture) run(t *testing.T, kill <-chan struct{}, saw func(events int)) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), processTimeout)
	defer cancel()
	line := slices.Concat(fx.wrapper, []string{fx.program}, fx.args())
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.WaitDelay = fx.dir, processTimeout
	lines := startProcess(t, cmd)
	fx.stderrBuf.Reset()
	for events := 0; lines != nil; {
		select {
		case <-kill:
			fx.kill(cmd.Process.Pid)
			kill = nil
		case l, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			if fx.observe(l); !l.stderr {
				events++
				saw(events)
			}
		}
	}
	_ = cmd.Wait() // the caller checks the exit status
	if ctx.Err() != nil {
		t.Fatalf("a process hung:\n%s", fx.stderr())
	}
	return cmd.ProcessState.ExitCode()
}

// kill kills the program itself: killing only its wrapper would let it continue.
func (fx *fixture) kill(pid int) {
	pids := []int{pid}
	if fx.wrapper != nil {
		pids = children(pid)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // fails if it has just ended
	}
}

func children(pid int) (pids []int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // fails if it has ended
	for _, text := range strings.Fields(string(data)) {
		if child, err := strconv.Atoi(text); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
