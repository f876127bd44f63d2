// Package accesslog says what an access log in combined format contains, so that
// tests can tell whether the incident desk's report is right.
//
// It shares nothing with the brain that counts in the example: no regular
// expression, no pieces, one pass over the lines.
//
//	figures, err := count.Read(file)
//	for _, row := range figures.Rows() { … must stand in the report … }
package accesslog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Figures are what the incident report says about a log.
type Figures struct {
	Parsed, Malformed int
	Bytes             int64          // sum of the sizes; - is none
	First, Last       string         // minutes, as "2026-03-17 14:03"
	Statuses          map[string]int // by class, as "5xx"
	Paths             []Count        // most 5xx, at most five
	Clients           []Count        // most 4xx, at most five
	Busiest           Count          // the minute with most requests
	Burst             ErrorBurst     // the densest one of 5xx
}

// Count is how often a thing was met.
type Count struct {
	Name  string
	Count int
}

// ErrorBurst is a run of minutes with 5xx answers that no three minutes without
// one interrupt. The zero Burst is none.
type ErrorBurst struct {
	First, Last string
	Errors      int
	Peak        Count
}

// Lines is how many lines the log has, blank ones aside.
func (f *Figures) Lines() int { return f.Parsed + f.Malformed }

// Read counts the lines of r, which may be of any length. Lists are sorted by
// count, equal ones by name; of equal minutes and bursts the first is taken.
func Read(r io.Reader) (*Figures, error) {
	c := counter{
		figures: &Figures{Statuses: map[string]int{}},
		paths:   map[string]int{}, clients: map[string]int{}, requests: map[string]int{}, failures: map[string]int{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		c.add(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if errors.Is(err, io.EOF) {
			return c.conclude()
		}
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
	}
}

type counter struct {
	figures                            *Figures
	paths, clients, requests, failures map[string]int
}

func (c *counter) add(line string) {
	if line == "" {
		return
	}
	e, ok := parse(line)
	if !ok {
		c.figures.Malformed++
		return
	}
	c.figures.Parsed++
	c.figures.Bytes += e.size
	c.figures.Statuses[e.class+"xx"]++
	c.requests[e.minute]++
	switch e.class {
	case "4":
		c.clients[e.client]++
	case "5":
		c.paths[e.path]++
		c.failures[e.minute]++
	}
}

func (c *counter) conclude() (*Figures, error) {
	f := c.figures
	f.Paths, f.Clients = top(5, c.paths), top(5, c.clients)
	if f.Parsed == 0 {
		return f, nil
	}
	f.Busiest = top(1, c.requests)[0]
	minutes := slices.Sorted(maps.Keys(c.requests))
	f.First, f.Last = minutes[0], minutes[len(minutes)-1]
	var err error
	f.Burst, err = densest(c.failures)
	return f, err
}

func top(n int, counts map[string]int) []Count {
	var all []Count
	for name, count := range counts {
		all = append(all, Count{name, count})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}

func densest(failures map[string]int) (ErrorBurst, error) {
	var best, now ErrorBurst
	var before time.Time
	for _, minute := range slices.Sorted(maps.Keys(failures)) {
		at, err := time.Parse("2006-01-02 15:04", minute)
		if err != nil {
			return ErrorBurst{}, fmt.Errorf("a minute of the log: %w", err)
		}
		if now.Errors == 0 || at.Sub(before) > 3*time.Minute {
			now = ErrorBurst{First: minute}
		}
		n := failures[minute]
		now.Last, now.Errors = minute, now.Errors+n
		if n > now.Peak.Count {
			now.Peak = Count{minute, n}
		}
		if now.Errors > best.Errors {
			best = now
		}
		before = at
	}
	return best, nil
}

// Rows gives the lines of Markdown tables the report must contain, as far as
// they go without shares: each is the beginning of a line.
func (f *Figures) Rows() []string {
	rows := []string{
		"| Lines | " + comma(f.Lines()) + " |",
		"| Parsed | " + comma(f.Parsed) + " |",
		"| Malformed | " + comma(f.Malformed) + " |",
		"| Bytes sent | " + comma(int(f.Bytes)) + " |",
		"| Period | " + f.First + " to " + f.Last + " |",
		"| Busiest minute | " + f.Busiest.Name + " (" + comma(f.Busiest.Count) + " request",
	}
	for _, class := range slices.Sorted(maps.Keys(f.Statuses)) {
		rows = append(rows, "| "+class+" | "+comma(f.Statuses[class])+" (")
	}
	for _, t := range slices.Concat(f.Paths, f.Clients) {
		rows = append(rows, "| `"+t.Name+"` | "+comma(t.Count)+" |")
	}
	if f.Burst.Errors == 0 {
		return append(rows, "| Densest burst of 5xx | none |")
	}
	return append(rows, "| Densest burst of 5xx | "+f.Burst.First+" to "+f.Burst.Last+" ("+comma(f.Burst.Errors)+" error")
}

// comma writes 1234567 as 1,234,567.
func comma(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
