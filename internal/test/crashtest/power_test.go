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
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var cutsFlag = flag.Int("cuts", 0, "how often the power is cut; 0 is 6, or 1 with -short")

const (
	imagesOfACut = 4  // how many disks are looked at that a cut may have left
	controlCuts  = 12 // cuts within which a disk without fsync has to show loss
)

// The power is cut at a random write, fsync or event, and of the many disks
// that may leave some are looked at: each opens and holds all that was shown.
// From one of them a new process goes on to the right end, and on a copy of it
// to the next cut. The workspace is on a disk that loses nothing, so that nothing a
// program did can be done twice unnoticed. At length:
//
//	go test ./internal/test/crashtest -run PowerCut -cuts 500 -timeout 60m -v
func TestAPowerCutLosesNothingAcknowledged(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	p := newOutages(t, faultfs.Options{StrictNames: true})
	for p.cuts < cmp.Or(*cutsFlag, short.N(1, 6)) && !t.Failed() {
		p.organization(t, cmp.Or(*cutsFlag, short.N(1, 6)), func(faults []string) {
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
	soakreport.Report(t, soakreport.Result{
		Part: "power", Claim: "a power cut loses nothing acknowledged", Goal: "no loss, no damage, the right end",
		Observed: fmt.Sprintf("%d cuts, %d images", p.cuts, p.images), Passed: !t.Failed(),
	})
}

// What the test above looks for it finds: a disk that answers fsync and does
// nothing loses or damages what was shown.
func TestAPowerCutWithoutFsyncIsNoticed(t *testing.T) {
	short.SkipReal(t, "file systems of its own")
	p, found := newOutages(t, faultfs.Options{IgnoreSync: true}), []string(nil)
	for p.cuts < controlCuts && len(found) == 0 {
		p.organization(t, p.cuts+1, func(faults []string) { found = append(found, faults...) })
	}
	t.Logf("seen: %s", few(found))
	soakreport.Report(t, soakreport.Result{
		Part: "power", Claim: "without fsync the same test finds loss", Goal: fmt.Sprintf("within %d cuts", controlCuts),
		Observed: fmt.Sprintf("%d cuts, %d images", p.cuts, p.images), Passed: len(found) > 0,
	})
}

// outages is a series of power cuts.
type outages struct {
	random       *rand.Rand
	options      faultfs.Options
	cuts, images int
}

func newOutages(t *testing.T, options faultfs.Options) *outages {
	t.Helper()
	mountable(t, "power")
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./internal/test/crashtest -run '^%s$' -cuts %d -seed %d", t.Name(), cmp.Or(*cutsFlag, short.N(1, 6)), seed)
	return &outages{random: rand.New(rand.NewPCG(seed, 2)), options: options}
}

// disk gives the options of one that starts with the content of from.
func (p *outages) disk(from string) faultfs.Options {
	o := p.options
	o.From = from
	return o
}

// mountable skips a test where nothing can be mounted.
func mountable(t *testing.T, part string) {
	t.Helper()
	if err := faultfs.Mountable(); err != nil {
		skip(t, part, fmt.Sprint("nothing can be mounted: ", err))
	}
}

// organization cuts an organization's power until limit, or until it has ended
// all the same, and tells what is wrong.
func (p *outages) organization(t *testing.T, limit int, tell func([]string)) {
	t.Helper()
	h, from := newHouse(t), ""
	for p.cuts < limit && !t.Failed() {
		f := mounted(t, h, p.disk(from))
		why := h.cut(t, f, p.random)
		p.cuts++
		next, faults := p.look(t, h, f)
		tell(blame(why, faults))
		if len(faults) > 0 {
			return
		}
		from, h.data = next, filepath.Join(next, "data")
		r := h.record(t)
		if h.learn(r); r.ended() {
			return
		}
	}
}

// look judges some of the disks that a cut may have left, lets one go on to its
// end, and gives it as it was before.
func (p *outages) look(t *testing.T, h *house, f *faultfs.FS) (next string, faults []string) {
	t.Helper()
	seed := uint64(0)
	for range imagesOfACut {
		seed = p.random.Uint64()
		next = image(t, f, seed)
		p.images++
		if faults := judge(t, filepath.Join(next, "data"), h.seen); len(faults) > 0 {
			return "", blame(fmt.Sprint("image ", seed), faults)
		}
	}
	h.branch(t, filepath.Join(image(t, f, seed), "data"), func(b *house) { faults = b.endsWell(t) })
	return next, blame(fmt.Sprint("gone on from image ", seed), faults)
}

// image writes one of the disks.
func image(t *testing.T, f *faultfs.FS, seed uint64) string {
	t.Helper()
	dir := tempDir(t)
	if err := f.Image(dir, rand.New(rand.NewPCG(seed, 0))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mounted mounts a disk for the data directory of a house.
func mounted(t *testing.T, h *house, options faultfs.Options) *faultfs.FS {
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
	h.data = filepath.Join(dir, "data")
	return f
}

// cut lets a process work, takes its power away at a random moment, and gives
// the moment in words.
func (h *house) cut(t *testing.T, f *faultfs.FS, r *rand.Rand) string {
	t.Helper()
	n, why, after := 1+r.IntN(400), "", 0
	if r.IntN(3) == 0 {
		n = 1 + r.IntN(16) // while it opens
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
		f.TornWrite(n)
	case 3:
		after = 1 + n/4
		why = fmt.Sprint("cut at event ", after)
	}
	status := h.work(t, f, after)
	if status != 0 && !isDark(f) {
		t.Errorf("%s: it ended by itself with %d:\n%s", why, status, h.stderr())
	}
	f.CutPower() // if it ended before
	return why
}

func isDark(f *faultfs.FS) bool {
	select {
	case <-f.PoweredOff():
		return true
	default:
		return false
	}
}

// work lets a process work until it ends or its power is cut, by the disk or
// after so many events, and gives its exit status; -1 when it was killed.
func (h *house) work(t *testing.T, f *faultfs.FS, after int) (status int) {
	t.Helper()
	return h.run(t, f.PoweredOff(), func(events int) {
		if events == after {
			f.CutPower()
		}
	})
}

// run lets a process run until it ends or is to be killed, calls saw with the
// number of each event, and gives its exit status; -1 when it was killed.
func (h *house) run(t *testing.T, kill <-chan struct{}, saw func(events int)) (status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangs)
	defer cancel()
	line := slices.Concat(h.wrap, []string{h.program}, h.args())
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir, cmd.WaitDelay = h.dir, hangs
	lines := started(t, cmd)
	h.talk.Reset()
	for events := 0; lines != nil; {
		select {
		case <-kill:
			h.kill(cmd.Process.Pid)
			kill = nil
		case l, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			if h.note(l); !l.talk {
				events++
				saw(events)
			}
		}
	}
	_ = cmd.Wait() // how it ended is judged by who asked
	if ctx.Err() != nil {
		t.Fatalf("a process hung:\n%s", h.stderr())
	}
	return cmd.ProcessState.ExitCode()
}

// kill kills the program: what it is wrapped in would let it go on.
func (h *house) kill(pid int) {
	pids := []int{pid}
	if h.wrap != nil {
		pids = children(pid)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // an error: it has just ended
	}
}

func children(pid int) (pids []int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // an error: it has ended
	for _, text := range strings.Fields(string(data)) {
		if child, err := strconv.Atoi(text); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
