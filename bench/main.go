// Command bench measures rolecall against floors and peers, side by side.
//
// Candidates of one comparison run interleaved, round by round, in one
// process; what counts is the CPU time the process used, as minimum and
// median over the rounds, and the ratio to the floor named first. So a busy
// machine moves all of them alike. It is a module of its own: what it compares
// with never enters rolecall's go.mod.
//
// What waits for a disk or another process is measured on the wall (append,
// restart, durable, durabletask, sandbox, script), what is about memory once
// (idle, start). What an organization bears (load), whether anything grows
// with time (soak), million, and declared tools beside their peer (toolbox) take
// long and run only when they are named.
// append and durabletask build the peers in the folder peers, a module of its
// own again. Goals that are printed as verdicts are kept by internal/test/soakreport.
//
//	go run . [-rounds 15] [-agents n] [-for 20s] [-profile file] [gate|scale|visible|args|task|spawn|message|model|mcp|append|restart|durable|durabletask|sandbox|script|idle|start|million|load|soak|toolbox] …
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

// candidate is one way to do the work; run does it n times.
type candidate struct {
	name string
	n    int
	run  func(n int)
}

// comparison is a list of candidates; the first is the floor.
type comparison struct {
	title      string
	candidates []candidate
	goals      []goal
	close      func() // when set, called at the end
}

// subject is something that can be measured.
type subject struct {
	name string
	make func() (comparison, error)
}

// computing lists what is measured in CPU time.
var computing = []subject{
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

// waiting lists what is measured on the wall: who waits uses no CPU.
var waiting = []subject{
	{"append", appendComparison},
	{"restart", restartComparison},
	{"durable", durableComparison},
	{"durabletask", durableTaskComparison},
	{"sandbox", sandboxComparison},
	{"script", scriptComparison},
}

func main() {
	launcher = sandbox.Enter(builtin.Programs())
	agents = flag.Int("agents", 0, "how many agents idle (100,000) and million (1,000,000) make")
	data = flag.String("data", "", "the directory that million fills, or has filled before; without it one that is removed")
	lasting = flag.Duration("for", 20*time.Second, "how long soak goes on")
	rounds := flag.Int("rounds", 15, "how often each candidate runs")
	profile = flag.String("profile", "", "a file for a CPU profile of all candidates")
	flag.Parse()
	if *profile != "" {
		stop, err := profiled(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer stop()
	}
	all(computing, cpu, *rounds)
	all(waiting, wall, *rounds)
	for _, s := range sizes {
		if wanted(s.name) && (flag.NArg() > 0 || !s.long) {
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Println()
			s.show(w)
			w.Flush()
		}
	}
}

// wanted says whether a subject was asked for.
func wanted(name string) bool { return flag.NArg() == 0 || slices.Contains(flag.Args(), name) }

// all measures the subjects that were asked for.
func all(subjects []subject, clock func() time.Duration, rounds int) {
	for _, s := range subjects {
		if !wanted(s.name) {
			continue
		}
		if err := measure(s.make, clock, rounds); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", s.name+":", err)
			os.Exit(1)
		}
	}
}

// profiled writes a profile until stop is called.
func profiled(name string) (stop func(), err error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, pprof.StartCPUProfile(f)
}

func measure(build func() (comparison, error), clock func() time.Duration, rounds int) error {
	c, err := build()
	if err != nil {
		return err
	}
	if c.close != nil {
		defer c.close()
	}
	times := make([][]float64, len(c.candidates))
	allocated := make([]uint64, len(c.candidates))
	for round := range rounds + 1 {
		for i, cand := range c.candidates {
			objects := mallocs()
			before := clock()
			cand.run(cand.n)
			if round > 0 { // the first warms up
				times[i] = append(times[i], float64(clock()-before)/float64(cand.n))
				allocated[i] = (mallocs() - objects) / uint64(cand.n)
			}
		}
	}
	lines := c.lines(times)
	if err := report(c, times, allocated); err != nil {
		return err
	}
	say(lines...)
	return nil
}

func report(c comparison, times [][]float64, allocated []uint64) error {
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

// mallocs counts the objects allocated so far.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// cpu gives the CPU time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wall gives the time since the process began.
func wall() time.Duration { return time.Since(began) }

var began = time.Now()

// The flags that subjects look at.
var (
	agents  *int           // how many agents idle and million make
	data    *string        // the directory million fills
	profile *string        // where a CPU profile goes
	lasting *time.Duration // how long soak goes on
)
