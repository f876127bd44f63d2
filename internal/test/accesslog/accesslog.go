// Package accesslog summarizes an access log in combined format, so that tests can
// check the report of the example incident-desk.
//
// It shares no code or method with the agent script of the example: it uses no regular
// expressions and reads the lines in one pass.
//
//	summary, err := accesslog.ReadLog(file)
//	for _, row := range summary.ReportRows() { … the report must contain row … }
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

// Summary contains the numbers that the incident report must show.
type Summary struct {
	Parsed, Malformed int
	Bytes             int64          // sum of the sizes; "-" counts as 0
	First, Last       string         // minutes, as "2026-03-17 14:03"
	Statuses          map[string]int // by class, as "5xx"
	Paths             []NamedCount   // with the most 5xx, at most five
	Clients           []NamedCount   // with the most 4xx, at most five
	Busiest           NamedCount     // the minute with the most requests
	Burst             ErrorBurst     // the densest burst of 5xx
}

// NamedCount is the number of occurrences of a name.
type NamedCount struct {
	Name  string
	Count int
}

// ErrorBurst is a run of minutes with 5xx answers in which no gap is longer than three
// minutes. The zero ErrorBurst means none.
type ErrorBurst struct {
	First, Last string
	Errors      int
	Peak        NamedCount
}

// LineCount returns the number of lines, without blank ones.
func (f *Summary) LineCount() int { return f.Parsed + f.Malformed }

// ReadLog summarizes the lines of r, which may be of any length. Lists are sorted by
// count and then by name. Of equal minutes and bursts it reports the first.
func ReadLog(r io.Reader) (*Summary, error) {
	c := counter{
		summary: &Summary{Statuses: map[string]int{}},
		paths:   map[string]int{}, clients: map[string]int{}, requests: map[string]int{}, failures: map[string]int{},
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		c.add(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		if errors.Is(err, io.EOF) {
			return c.summarize()
		}
		if err != nil {
			return nil, fmt.Errorf("read the log: %w", err)
		}
	}
}

// counter counts lines by client, path and minute.
type counter struct {
	summary                            *Summary
	paths, clients, requests, failures map[string]int
}

// add counts a line.
func (c *counter) add(line string) {
	if line == "" {
		return
	}
	e, ok := parseLine(line)
	if !ok {
		c.summary.Malformed++
		return
	}
	c.summary.Parsed++
	c.summary.Bytes += e.size
	c.summary.Statuses[e.class+"xx"]++
	c.requests[e.minute]++
	switch e.class {
	case "4":
		c.clients[e.client]++
	case "5":
		c.paths[e.path]++
		c.failures[e.minute]++
	}
}

func (c *counter) summarize() (*Summary, error) {
	f := c.summary
	f.Paths, f.Clients = topCounts(5, c.paths), topCounts(5, c.clients)
	if f.Parsed == 0 {
		return f, nil
	}
	f.Busiest = topCounts(1, c.requests)[0]
	minutes := slices.Sorted(maps.Keys(c.requests))
	f.First, f.Last = minutes[0], minutes[len(minutes)-1]
	var err error
	f.Burst, err = densestBurst(c.failures)
	return f, err
}

// topCounts returns the n highest counts.
func topCounts(n int, counts map[string]int) []NamedCount {
	var all []NamedCount
	for name, count := range counts {
		all = append(all, NamedCount{name, count})
	}
	slices.SortFunc(all, func(a, b NamedCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(n, len(all))]
}

// densestBurst returns the burst with the most errors.
func densestBurst(failures map[string]int) (ErrorBurst, error) {
	var best, now ErrorBurst
	var before time.Time
	for _, minute := range slices.Sorted(maps.Keys(failures)) {
		at, err := time.Parse("2006-01-02 15:04", minute)
		if err != nil {
			return ErrorBurst{}, fmt.Errorf("parse a minute of the log: %w", err)
		}
		if now.Errors == 0 || at.Sub(before) > 3*time.Minute {
			now = ErrorBurst{First: minute}
		}
		n := failures[minute]
		now.Last, now.Errors = minute, now.Errors+n
		if n > now.Peak.Count {
			now.Peak = NamedCount{minute, n}
		}
		if now.Errors > best.Errors {
			best = now
		}
		before = at
	}
	return best, nil
}

// ReportRows returns the beginnings of the lines that the Markdown tables of the
// report must contain, up to the percentages.
func (f *Summary) ReportRows() []string {
	rows := []string{
		"| Lines | " + formatThousands(f.LineCount()) + " |",
		"| Parsed | " + formatThousands(f.Parsed) + " |",
		"| Malformed | " + formatThousands(f.Malformed) + " |",
		"| Bytes sent | " + formatThousands(int(f.Bytes)) + " |",
		"| Period | " + f.First + " to " + f.Last + " |",
		"| Busiest minute | " + f.Busiest.Name + " (" + formatThousands(f.Busiest.Count) + " request",
	}
	for _, class := range slices.Sorted(maps.Keys(f.Statuses)) {
		rows = append(rows, "| "+class+" | "+formatThousands(f.Statuses[class])+" (")
	}
	for _, t := range slices.Concat(f.Paths, f.Clients) {
		rows = append(rows, "| `"+t.Name+"` | "+formatThousands(t.Count)+" |")
	}
	if f.Burst.Errors == 0 {
		return append(rows, "| Densest burst of 5xx | none |")
	}
	return append(rows, "| Densest burst of 5xx | "+f.Burst.First+" to "+f.Burst.Last+" ("+formatThousands(f.Burst.Errors)+" error")
}

// formatThousands formats 1234567 as 1,234,567.
func formatThousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
