//go:build linux

// Package crashtest checks that the program survives crashes. It kills the program with
// SIGKILL while an organization works, and resumes it. It compares what the program
// printed (observed) with what the data file contains (stored). It contains only tests.
//
// A cycle is one killed process. The kill point is random but tied to an observed
// event (killPoint), never to a clock. After each kill the test reads a copy of the
// data file. When a task has ended, its result and effects must equal those of an
// undisturbed task, and the test starts another organization. Other files cut the
// power (power_test, ext4_test), make disks fail (disk_test) and flip bits
// (damage_test). A long run:
//
//	go test -C internal/test/crashtest -cycles 1000 -timeout 60m -v
//
// A failing test prints its seed; -seed repeats the same choices. Concurrent agents
// are still scheduled differently in each run.
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
	seedFlag   = flag.Uint64("seed", 0, "seed of the choices; 0 uses the clock")
)

// maxOpenTime bounds how long opening a data directory may take after a crash.
const maxOpenTime = time.Second

func TestKill_LosesAndRepeatsNothing(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C internal/test/crashtest -cycles %d -seed %d", cmp.Or(*cyclesFlag, short.Count(2, 12)), seed)
	c := &killLoop{random: rand.New(rand.NewPCG(seed, 0)), kills: map[string]int{}}
	for c.killed < cmp.Or(*cyclesFlag, short.Count(2, 12)) && !t.Failed() {
		t.Run(fmt.Sprint("organization ", c.tasks+1), c.runOrganization)
	}
	t.Logf("%d processes killed %v, %d tasks ended; %d mutating calls have an unknown outcome, %d of them had acted; %d temporary files were left; the slowest open took %v",
		c.killed, c.kills, c.tasks, c.unknown, c.acted, c.tempFiles, c.slowest)
	soakreport.RecordResult(t, soakreport.Result{
		Part: "kill", Claim: "a process killed at any moment loses nothing, repeats nothing, leaves no orphan; its task ends", Goal: "every kill, open < 1 s",
		Observed: fmt.Sprintf("%d kills, %d tasks, slowest open %v", c.killed, c.tasks, c.slowest.Round(time.Millisecond)), Passed: !t.Failed(),
	})
}

func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv(inspectEnv) != "":
		err = inspectMain(os.Stdin, os.Stdout) // see inspector
	case os.Getenv(verifyEnv) != "":
		err = verifyMain(os.Getenv(verifyEnv), os.Stdin, os.Stdout) // see verify
	default:
		if status, done := runInMountNamespace(); done {
			os.Exit(status)
		}
		os.Exit(testbinary.RunTests(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killLoop is the state of TestKill: what was killed so far, over all organizations.
type killLoop struct {
	random *rand.Rand

	killed, tasks  int
	kills          map[string]int // by kind of kill point
	unknown, acted int
	tempFiles      int
	slowest        time.Duration
}

// runOrganization starts a task, kills its process again and again until the task has
// ended, and checks what is left.
func (c *killLoop) runOrganization(t *testing.T) {
	fx := newFixture(t)
	var past []string // the kill points so far, for the failure report
	for ended := false; !ended; {
		m := neverKill
		if c.killed < cmp.Or(*cyclesFlag, short.Count(2, 12)) {
			m = c.chooseKillPoint()
		}
		killed := fx.runAndKill(t, m)
		if killed {
			past = append(past, m.String())
			c.killed++
			c.kills[m.kind]++
		}
		r := fx.readStored(t)
		fx.adoptTask(r)
		c.slowest = max(c.slowest, r.openTime)
		reportFaults(t, past, r.faults(fx.observed))
		ended = r.taskEnded()
		if !killed && !ended && !t.Failed() {
			t.Errorf("the process exited without being killed, and its task has not ended:\n%s", fx.stderr())
		}
		if t.Failed() {
			return
		}
	}
	c.checkEnded(t, fx, past)
}

// checkEnded checks an organization whose task has ended.
func (c *killLoop) checkEnded(t *testing.T, fx *fixture, past []string) {
	t.Helper()
	before := fx.observed.results
	if fx.runAndKill(t, neverKill); fx.observed.results != before+1 {
		t.Errorf("resumed after its end, it printed %d results, want 1", fx.observed.results-before)
	}
	r, s := fx.readStored(t), fx.readEffects(t)
	reportFaults(t, past, slices.Concat(r.faults(fx.observed), r.unfinished(), s.faults(r)))
	c.tasks++
	c.tempFiles += s.tempFiles
	for name, code := range r.mutatingOutcomes() {
		if code == interrupted {
			c.unknown++
			c.acted += s.lines[name]
		}
	}
}

// chooseKillPoint chooses when the next process is killed.
func (c *killLoop) chooseKillPoint() killPoint {
	switch c.random.IntN(8) {
	case 0:
		return killPoint{kind: atWrite, after: c.random.IntN(2)} // during or soon after opening
	case 1, 2:
		return killPoint{kind: atWrite, after: 1 + c.random.IntN(40)}
	case 3:
		return killPoint{kind: atStderr, after: 1} // "task ID"
	case 4, 5:
		return killPoint{kind: atStderr, after: 2 + c.random.IntN(4)} // output of agents
	}
	return killPoint{kind: atEvent, after: 1 + c.random.IntN(60)}
}

// reportFaults fails the test for each fault and logs how the process was killed
// before.
func reportFaults(t *testing.T, past, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(faults) > 0 {
		t.Logf("killed %d times: %v", len(past), past)
	}
}

// wantResult returns the result of an undisturbed task, except for calls whose effect
// is unknown.
func wantResult(unknown map[string]int) string {
	return fmt.Sprintf(`[{"name":"left","heard":%s,"unknown":%d},{"name":"right","heard":%s,"unknown":%d}]`,
		jsonList(marksOf("left")), unknown["left"], jsonList(marksOf("right")), unknown["right"])
}

// marksOf returns the names of the rounds under a lead, sorted.
func marksOf(lead string) []string {
	var marks []string
	for hand := 1; hand <= 2; hand++ {
		for round := range 4 {
			marks = append(marks, fmt.Sprintf("%s-%d.%d", lead, hand, round))
		}
	}
	return marks
}

// allMarks returns the names of all rounds.
func allMarks() []string { return append(marksOf("left"), marksOf("right")...) }

// taskEnded reports whether the task has ended.
func (r *stored) taskEnded() bool { return len(r.tasks) > 0 && r.tasks[0].Status != org.Running }
