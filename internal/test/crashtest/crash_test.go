// Package crashtest kills the program with SIGKILL while an organization works,
// lets it go on, and holds what it had said against what it has kept. Nobody
// imports it.
//
// A cycle is one process that was killed. When it is killed is chosen at random
// but bound to something seen (moment), never to a clock. After each kill a copy
// of the data file is read (record) and compared with what the process has shown
// (evidence). When a task has ended, its result and traces must be those of a
// task that nobody disturbed, and another organization is begun. Other files cut
// the power (power_test, ext4_test), let disks go wrong (disk_test) and turn bits
// (flips_test). At length:
//
//	go test ./internal/test/crashtest -cycles 1000 -timeout 60m -v
//
// A failure prints the seed; -seed makes the same choices again. What agents do
// side by side differs from run to run all the same.
package crashtest

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/internal/test/testbinary"
	"github.com/rolecall/rolecall/org"
)

var (
	cyclesFlag = flag.Int("cycles", 0, "how many processes are killed; 0 is 12, or 2 with -short")
	seedFlag   = flag.Uint64("seed", 0, "seed of the choices; 0 takes the clock")
)

// tooSlow bounds how long opening a data directory may take after a crash.
const tooSlow = time.Second

func TestWhatIsKilledAtARandomMomentLosesAndRepeatsNothing(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./internal/test/crashtest -cycles %d -seed %d", cmp.Or(*cyclesFlag, short.N(2, 12)), seed)
	c := &campaign{random: rand.New(rand.NewPCG(seed, 0)), kills: map[string]int{}}
	for c.killed < cmp.Or(*cyclesFlag, short.N(2, 12)) && !t.Failed() {
		t.Run(fmt.Sprint("organization ", c.tasks+1), c.organization)
	}
	t.Logf("%d processes killed %v, %d tasks ended; of the mutating calls %d ended unknown, of which %d had acted; %d drafts of files were left; the slowest opening took %v",
		c.killed, c.kills, c.tasks, c.unknown, c.acted, c.drafts, c.slowest)
	soakreport.Report(t, soakreport.Result{
		Part: "kill", Claim: "a process killed at any moment loses nothing, repeats nothing, leaves no orphan; its task ends", Goal: "every kill, open < 1 s",
		Observed: fmt.Sprintf("%d kills, %d tasks, slowest open %v", c.killed, c.tasks, c.slowest.Round(time.Millisecond)), Passed: !t.Failed(),
	})
}

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(lookAt) != "":
		err = lookMain(os.Stdin, os.Stdout) // see looker
	case os.Getenv(judgeAt) != "":
		err = judgeMain(os.Getenv(judgeAt), os.Stdin, os.Stdout) // see judge
	default:
		if status, done := amongOwnMounts(); done {
			os.Exit(status)
		}
		os.Exit(testbinary.Main(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// campaign is a whole test.
type campaign struct {
	random *rand.Rand

	killed, tasks  int
	kills          map[string]int // by kind of moment
	unknown, acted int
	drafts         int
	slowest        time.Duration
}

// organization begins a task, kills it again and again until it has ended
// all the same, and looks at what is left.
func (c *campaign) organization(t *testing.T) {
	h := newHouse(t)
	var past []string // how it was killed, for whoever reads a failure
	for ended := false; !ended; {
		m := never
		if c.killed < cmp.Or(*cyclesFlag, short.N(2, 12)) {
			m = c.moment()
		}
		killed := h.live(t, m)
		if killed {
			past = append(past, m.String())
			c.killed++
			c.kills[m.kind]++
		}
		r := h.record(t)
		h.learn(r)
		c.slowest = max(c.slowest, r.opened)
		report(t, past, r.faults(h.seen))
		ended = r.ended()
		if !killed && !ended && !t.Failed() {
			t.Errorf("it ended without being killed, and its task did not:\n%s", h.stderr())
		}
		if t.Failed() {
			return
		}
	}
	c.end(t, h, past)
}

// end looks at an organization whose task has ended.
func (c *campaign) end(t *testing.T, h *house, past []string) {
	t.Helper()
	told := h.seen.ends
	if h.live(t, never); h.seen.ends != told+1 {
		t.Errorf("resumed after its end it printed %d results, want 1", h.seen.ends-told)
	}
	r, s := h.record(t), h.traces(t)
	report(t, past, slices.Concat(r.faults(h.seen), r.unfinished(), s.faults(r)))
	c.tasks++
	c.drafts += s.drafts
	for name, code := range r.mutations() {
		if code == interrupted {
			c.unknown++
			c.acted += s.lines[name]
		}
	}
}

// moment chooses when the next process is killed.
func (c *campaign) moment() moment {
	switch c.random.IntN(8) {
	case 0:
		return moment{kind: atWrite, after: c.random.IntN(2)} // while it opens, or soon after
	case 1, 2:
		return moment{kind: atWrite, after: 1 + c.random.IntN(40)}
	case 3:
		return moment{kind: atTalk, after: 1} // "task ID"
	case 4, 5:
		return moment{kind: atTalk, after: 2 + c.random.IntN(4)} // what agents print
	}
	return moment{kind: atEvent, after: 1 + c.random.IntN(60)}
}

// report tells faults with how the organization came to them.
func report(t *testing.T, past, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(faults) > 0 {
		t.Logf("killed %d times: %v", len(past), past)
	}
}

// The result of a task that nobody disturbed, but for the calls of which
// nobody knows whether they acted.
func wantResult(unknown map[string]int) string {
	return fmt.Sprintf(`[{"name":"left","heard":%s,"unknown":%d},{"name":"right","heard":%s,"unknown":%d}]`,
		quoted(marksOf("left")), unknown["left"], quoted(marksOf("right")), unknown["right"])
}

// marksOf lists the names of the rounds under a lead, sorted.
func marksOf(lead string) []string {
	var marks []string
	for hand := 1; hand <= 2; hand++ {
		for round := range 4 {
			marks = append(marks, fmt.Sprintf("%s-%d.%d", lead, hand, round))
		}
	}
	return marks
}

// allMarks lists the names of all rounds.
func allMarks() []string { return append(marksOf("left"), marksOf("right")...) }

// ended says whether the task the process worked on has come to its end.
func (r *record) ended() bool { return len(r.tasks) > 0 && r.tasks[0].Status != org.Running }
