// Command bench compares rolecall with minimal baselines and with other systems.
//
// The candidates of one comparison run interleaved, round by round, in one process, so
// that a busy machine slows all of them alike. Most comparisons measure the CPU time
// of the process, as minimum and median over the rounds, and the ratio to the first
// candidate, the floor. The command is a module of its own: the systems it compares
// with never enter rolecall's go.mod.
//
// Subjects that wait for a disk or another process are measured in wall time (append,
// restart, durable, durabletask, sandbox, script,
// toolservice). Memory is measured once (idle,
// start, agentscript). The load an organization sustains (load), growth over time (soak), a million
// idle agents (million) and declared tools compared with MCP Toolbox (toolbox) take
// long and run only when named. append and durabletask build the peers in the folder
// peers, which is another module. Package internal/test/soakreport stores the goals
// that are printed as soakreport.
//
//	go run . [-rounds 15] [-agents n] [-for 20s] [-profile file] [gate|scale|visible|args|task|spawn|message|model|mcp|append|restart|durable|durabletask|sandbox|script|toolservice|idle|start|agentscript|invoke|million|load|soak|streams|toolbox|wrk] …
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
)

// candidate is one way to do the work. run does it n times.
type candidate struct {
	name string
	n    int
	run  func(n int)
}

// comparison is a list of candidates. The first is the floor.
type comparison struct {
	title      string
	candidates []candidate
	goals      []goal
	cleanup    func() // if set, called at the end
}

// subject is something to measure.
type subject struct {
	name string
	make func() (comparison, error)
}

// cpuSubjects lists what is measured in CPU time.
var cpuSubjects = []subject{
	{"gate", gateComparison},
	{"scale", scaleComparison},
	{"visible", visibleComparison},
	{"args", flatArgs.comparison},
	{"args", nestedArgs.comparison},
	{"args", indentedArgs.comparison},
	{"args", textArgs.comparison},
	{"args", unicodeArgs.comparison},
	{"args", numbersArgs.comparison},
	{"task", taskComparison},
	{"spawn", spawnComparison},
	{"message", messageComparison},
	{"model", func() (comparison, error) { return modelComparison(false) }},
	{"model", func() (comparison, error) { return modelComparison(true) }},
	{"mcp", mcpComparison},
	{"mcp", mcpListComparison},
}

// wallSubjects lists what is measured in wall time, because waiting uses no CPU.
var wallSubjects = []subject{
	{"append", appendComparison},
	{"restart", restartComparison},
	{"durable", durableComparison},
	{"durabletask", durableTaskComparison},
	{"sandbox", sandboxComparison},
	{"script", scriptComparison},
	{"toolservice", func() (comparison, error) { return serviceComparison(1) }},
	{"toolservice", func() (comparison, error) { return serviceComparison(64) }},
}

func main() {
	launcher = sandbox.Enter(builtin.SandboxPrograms())
	if serveInvoke() {
		return
	}
	agentCount = flag.Int("agents", 0, "number of agents of idle (default 100,000) and million (default 1,000,000)")
	dataDir = flag.String("data", "", "directory that million fills or reuses; default: a temporary one")
	soakTime = flag.Duration("for", 20*time.Second, "how long soak runs")
	roundCount = flag.Int("rounds", 15, "number of measured runs of each candidate")
	profilePath = flag.String("profile", "", "file for a CPU profile of all candidates")
	flag.Parse()
	if *profilePath != "" {
		stop, err := startProfile(*profilePath)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer stop()
	}
	measureAll(cpuSubjects, cpu, *roundCount)
	measureAll(wallSubjects, wall, *roundCount)
	for _, s := range onceSubjects {
		if isSelected(s.name) && (flag.NArg() > 0 || !s.long) {
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Println()
			s.show(w)
			w.Flush()
		}
	}
}

// isSelected reports whether a subject is to be measured: it was named, or none was.
func isSelected(name string) bool { return flag.NArg() == 0 || slices.Contains(flag.Args(), name) }

// measureAll measures the selected subjects.
func measureAll(subjects []subject, clock func() time.Duration, rounds int) {
	for _, s := range subjects {
		if !isSelected(s.name) {
			continue
		}
		if err := measure(s.make, clock, rounds); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", s.name+":", err)
			os.Exit(1)
		}
	}
}

// startProfile writes a CPU profile until stop is called.
func startProfile(name string) (stop func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, pprof.StartCPUProfile(f)
}

// measure runs the candidates in interleaved rounds and reports times and goals.
func measure(build func() (comparison, error), clock func() time.Duration, rounds int) error {
	c, err := build()
	if err != nil {
		return err
	}
	if c.cleanup != nil {
		defer c.cleanup()
	}
	times := make([][]float64, len(c.candidates))
	allocated := make([]uint64, len(c.candidates))
	for round := range rounds + 1 {
		for i, cand := range c.candidates {
			objects := mallocCount()
			before := clock()
			cand.run(cand.n)
			if round > 0 { // the first round warms up
				times[i] = append(times[i], float64(clock()-before)/float64(cand.n))
				allocated[i] = (mallocCount() - objects) / uint64(cand.n)
			}
		}
	}
	lines := c.results(times)
	if err := printTable(c, times, allocated); err != nil {
		return err
	}
	reportResults(lines...)
	return nil
}

// printTable prints the times of all candidates and their ratios to the floor.
func printTable(c comparison, times [][]float64, allocated []uint64) error {
	fmt.Printf("\n%s\n", c.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "candidate\tmin ns\tmedian ns\tratio to floor (min, median)\tallocations")
	floor := times[0]
	slices.Sort(floor)
	for i, cand := range c.candidates {
		t := times[i]
		slices.Sort(t)
		mid := len(t) / 2
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t%.2f\t%d\n", cand.name, t[0], t[mid], t[0]/floor[0], t[mid]/floor[mid], allocated[i])
	}
	return w.Flush()
}

// mallocCount returns the number of objects allocated so far.
func mallocCount() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// cpu returns the CPU time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wall returns the time since the process started.
func wall() time.Duration { return time.Since(processStart) }

var processStart = time.Now()

// The flags that subjects read.
var (
	agentCount  *int           // of idle and million; 0 is their default
	dataDir     *string        // directory that million fills
	profilePath *string        // file for a CPU profile
	roundCount  *int           // measured runs of each candidate
	soakTime    *time.Duration // how long soak runs
)
