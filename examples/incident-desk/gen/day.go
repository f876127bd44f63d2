package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// hit is one line of the log, with its time in seconds of the day.
type hit struct {
	second int
	line   string
}

// day collects the requests of 17 March 2026 in any order.
type day struct {
	rnd  *rand.Rand
	hits []hit
}

func newDay() *day {
	d := &day{rnd: rand.New(rand.NewPCG(20260317, 1403))}
	d.probes()
	d.visits()
	d.incident()
	d.loginAttack()
	d.oddities()
	return d
}

// lines returns the log lines sorted by time; lines of the same second keep their order.
func (d *day) lines() []string {
	slices.SortStableFunc(d.hits, func(a, b hit) int { return cmp.Compare(a.second, b.second) })
	lines := make([]string, len(d.hits))
	for i, h := range d.hits {
		lines[i] = h.line
	}
	return lines
}

// request has the fields of a line in combined format.
type request struct {
	client   string
	user     string // "" is logged as -
	line     string // METHOD PATH PROTOCOL
	status   int
	size     int // negative is logged as -
	referrer string
	agent    string
}

func (d *day) log(second int, r request) {
	size := "-"
	if r.size >= 0 {
		size = fmt.Sprint(r.size)
	}
	d.raw(second, fmt.Sprintf(`%s - %s [%s] "%s" %d %s "%s" "%s"`, r.client, dash(r.user), stamp(second),
		r.line, r.status, size, dash(r.referrer), dash(r.agent)))
}

// raw adds a line unchanged, in any format.
func (d *day) raw(second int, line string) {
	if second < 24*3600 {
		d.hits = append(d.hits, hit{second, line})
	}
}

func stamp(second int) string {
	return fmt.Sprintf("17/Mar/2026:%02d:%02d:%02d +0000", second/3600, second/60%60, second%60)
}

// at converts a time of day to seconds.
func at(hour, minute, second int) int { return hour*3600 + minute*60 + second }

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (d *day) between(low, high int) int { return low + d.rnd.IntN(high-low+1) }

func pick[T any](d *day, from []T) T { return from[d.rnd.IntN(len(from))] }
