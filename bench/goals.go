package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

// goal is what a comparison is expected to show: a maximum ratio of a candidate's
// median time to another's, or a maximum time.
type goal struct {
	part, claim         string
	candidate, baseline int // indexes of the candidates
	maxRatio            float64
	maxTime             time.Duration // if set, replaces maxRatio
	skipReason          string        // why it cannot be measured
}

// atLeastTimesFaster returns the goal to be at least the given number of times as
// fast.
func atLeastTimesFaster(part, claim string, of, than int, times float64) goal {
	return goal{part: part, claim: claim, candidate: of, baseline: than, maxRatio: 1 / times}
}

// evaluate compares the goal with the times of all rounds. It uses the ratio within
// each round, because other work on the machine affects both candidates of a round.
func (g goal) evaluate(times [][]float64) soakreport.Result {
	l := soakreport.Result{Part: g.part, Claim: g.claim, Goal: g.formatRatio(g.maxRatio), Skipped: g.skipReason, Aspirational: true}
	if g.skipReason != "" {
		return l
	}
	if g.maxTime > 0 {
		return g.evaluateTime(l, times[g.candidate])
	}
	ratios := make([]float64, len(times[g.candidate]))
	for i := range ratios {
		ratios[i] = times[g.candidate][i] / times[g.baseline][i]
	}
	slices.Sort(ratios)
	seen := ratios[len(ratios)/2]
	l.Observed, l.Passed = strings.TrimLeft(g.formatRatio(seen), "≤≥ "), seen <= g.maxRatio
	return l
}

// evaluateTime compares the median time of a candidate with maxTime.
func (g goal) evaluateTime(l soakreport.Result, times []float64) soakreport.Result {
	times = slices.Sorted(slices.Values(times))
	seen := time.Duration(times[len(times)/2])
	l.Goal, l.Observed, l.Passed = "≤ "+g.maxTime.String(), seen.Round(100*time.Nanosecond).String(), seen <= g.maxTime
	return l
}

// formatRatio formats a ratio in the same way as the goal.
func (g goal) formatRatio(ratio float64) string {
	if g.maxRatio < 1 {
		return fmt.Sprintf("≥ %.1f times as fast", 1/ratio)
	}
	return fmt.Sprintf("≤ %.2f ×", ratio)
}

// results returns the results of a comparison's goals.
func (c comparison) results(times [][]float64) (list []soakreport.Result) {
	for _, g := range c.goals {
		list = append(list, g.evaluate(times))
	}
	return list
}

// reportResults prints results and appends them to the report.
func reportResults(lines ...soakreport.Result) {
	for _, l := range lines {
		must(0, soakreport.AppendResult(l))
		fmt.Printf("%s: %s (goal %s): %s\n", l.Claim, l.Observed, l.Goal, l.Verdict())
	}
}

// addPeers adds candidates outside this program and the goals that compare with them.
// With an error it adds only the goals, as skipped.
func (c *comparison) addPeers(err error, candidates []candidate, goals ...goal) {
	if err != nil {
		candidates = nil
		for i := range goals {
			goals[i].skipReason = err.Error()
		}
	}
	c.candidates, c.goals = append(c.candidates, candidates...), append(c.goals, goals...)
}
