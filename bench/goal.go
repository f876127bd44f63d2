package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
)

// goal is what a comparison is to show: that one candidate takes at most some
// times as long as another, in the median of the rounds, or a time.
type goal struct {
	part, claim string
	of, than    int // places of the candidates
	most        float64
	within      time.Duration // instead of most
	skipped     string        // why it cannot be looked at
}

// faster is the goal to be at least some times as fast.
func faster(part, claim string, of, than int, times float64) goal {
	return goal{part: part, claim: claim, of: of, than: than, most: 1 / times}
}

// line holds the goal against the times of all rounds: those of one round are
// compared, since what else the machine did moved both.
func (g goal) line(times [][]float64) verdicts.Result {
	l := verdicts.Result{Part: g.part, Claim: g.claim, Goal: g.said(g.most), Skipped: g.skipped, Aspirational: true}
	if g.skipped != "" {
		return l
	}
	if g.within > 0 {
		return g.absolute(l, times[g.of])
	}
	ratios := make([]float64, len(times[g.of]))
	for i := range ratios {
		ratios[i] = times[g.of][i] / times[g.than][i]
	}
	slices.Sort(ratios)
	seen := ratios[len(ratios)/2]
	l.Observed, l.Passed = strings.TrimLeft(g.said(seen), "≤≥ "), seen <= g.most
	return l
}

// absolute holds the times of a candidate against within.
func (g goal) absolute(l verdicts.Result, times []float64) verdicts.Result {
	times = slices.Sorted(slices.Values(times))
	seen := time.Duration(times[len(times)/2])
	l.Goal, l.Observed, l.Passed = "≤ "+g.within.String(), seen.Round(100*time.Nanosecond).String(), seen <= g.within
	return l
}

// said writes a ratio as the goal is written.
func (g goal) said(ratio float64) string {
	if g.most < 1 {
		return fmt.Sprintf("≥ %.1f times as fast", 1/ratio)
	}
	return fmt.Sprintf("≤ %.2f ×", ratio)
}

// lines gives what became of the goals of a comparison.
func (c comparison) lines(times [][]float64) (list []verdicts.Result) {
	for _, g := range c.goals {
		list = append(list, g.line(times))
	}
	return list
}

// say prints verdicts and keeps them.
func say(lines ...verdicts.Result) {
	for _, l := range lines {
		made(0, verdicts.Append(l))
		fmt.Printf("%s: %s (goal %s): %s\n", l.Claim, l.Observed, l.Goal, l.Verdict())
	}
}

// join adds candidates that are not part of this program, and what is expected
// of us beside them; when they cannot be had, that is said instead.
func (c *comparison) join(err error, candidates []candidate, goals ...goal) {
	if err != nil {
		candidates = nil
		for i := range goals {
			goals[i].skipped = err.Error()
		}
	}
	c.candidates, c.goals = append(c.candidates, candidates...), append(c.goals, goals...)
}
