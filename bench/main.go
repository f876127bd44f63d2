// Command bench measures rolecall against floors and peers, side by side.
//
// Candidates of one comparison run interleaved, round by round, in one
// process; what counts is the CPU time the process used, as minimum and
// median over the rounds, and the ratio to the floor named first. So a busy
// machine moves all of them alike. It is a module of its own: what it compares
// with never enters rolecall's go.mod.
//
//	go run . [-rounds 15] [gate|scale|visible] …
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
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
}

// comparisons lists what can be measured.
var comparisons = []struct {
	name string
	make func() (comparison, error)
}{
	{"gate", gateComparison},
	{"scale", scaleComparison},
	{"visible", visibleComparison},
}

func main() {
	rounds := flag.Int("rounds", 15, "how often each candidate runs")
	flag.Parse()
	for _, c := range comparisons {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), c.name) {
			continue
		}
		if err := measure(c.make, *rounds); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", c.name+":", err)
			os.Exit(1)
		}
	}
}

func measure(build func() (comparison, error), rounds int) error {
	c, err := build()
	if err != nil {
		return err
	}
	times := make([][]float64, len(c.candidates))
	for round := range rounds + 1 {
		for i, cand := range c.candidates {
			before := cpu()
			cand.run(cand.n)
			if round > 0 { // the first warms up
				times[i] = append(times[i], float64(cpu()-before)/float64(cand.n))
			}
		}
	}
	return report(c, times)
}

func report(c comparison, times [][]float64) error {
	fmt.Printf("\n%s\n", c.title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "candidate\tmin ns\tmedian ns\tratio to floor (min, median)")
	floor := times[0]
	slices.Sort(floor)
	for i, cand := range c.candidates {
		t := times[i]
		slices.Sort(t)
		mid := len(t) / 2
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t%.2f\n", cand.name, t[0], t[mid], t[0]/floor[0], t[mid]/floor[mid])
	}
	return w.Flush()
}

// cpu gives the CPU time of the process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
