// Package soakreport collects what long runs found, a claim a line, for the table
// that make soak prints.
//
// A check says one Line for each thing that is promised: Say in a test, Append
// anywhere. The lines go to the file that the environment variable File names;
// without it they are said and not kept. Read and Table print them. The package
// measures and decides nothing.
package soakreport

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// File names the environment variable that says where lines are kept.
const File = "ROLECALL_VERDICTS"

// Result is one claim and what was seen of it.
type Result struct {
	Part         string `json:"part"`              // "power", "load", …: lines of one stand together
	Claim        string `json:"claim"`             // what is promised
	Goal         string `json:"goal,omitempty"`    // the figure that was to be reached
	Observed     string `json:"seen"`              // the figure
	Passed       bool   `json:"holds"`             // false also when it was skipped
	Skipped      string `json:"skipped,omitempty"` // why it could not be looked at here
	Aspirational bool   `json:"wish,omitempty"`    // a goal of speed: that it was not reached is no fault
}

// Verdict gives the line's last word.
func (l Result) Verdict() string {
	switch {
	case l.Skipped != "":
		return "skipped: " + l.Skipped
	case l.Passed:
		return "holds"
	case l.Aspirational:
		return "not reached"
	}
	return "MISSED"
}

// Report keeps a line and logs it. One that does not hold fails the test.
func Report(t testing.TB, l Result) {
	t.Helper()
	if err := Append(l); err != nil {
		t.Error(err)
	}
	t.Logf("%s: %s: %s (goal %s): %s", l.Part, l.Claim, l.Observed, l.Goal, l.Verdict())
	if l.missed() {
		t.Errorf("%s does not hold", l.Claim)
	}
}

// Append keeps a line. It is safe for concurrent use, also by processes.
func Append(l Result) error {
	name := os.Getenv(File)
	if name == "" {
		return nil
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("keep a verdict: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keep a verdict: %w", err)
	}
	_, err = f.Write(append(data, '\n')) // one write: lines of others stay whole
	return errors.Join(err, f.Close())
}

// Read gives the lines of a file, those of a part together, parts in the order
// in which they began.
func Read(from io.Reader) ([]Result, error) {
	var lines []Result
	order := map[string]int{}
	in := bufio.NewScanner(from)
	for in.Scan() {
		var l Result
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read a verdict: %w: %s", err, in.Text())
		}
		if _, ok := order[l.Part]; !ok {
			order[l.Part] = len(order)
		}
		lines = append(lines, l)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read verdicts: %w", err)
	}
	slices.SortStableFunc(lines, func(a, b Result) int { return cmp.Compare(order[a.Part], order[b.Part]) })
	return lines, nil
}

// Kept says whether there are lines and none was missed but wishes.
func Kept(lines []Result) bool { return len(lines) > 0 && !slices.ContainsFunc(lines, Result.missed) }

func (l Result) missed() bool { return !l.Passed && l.Skipped == "" && !l.Aspirational }

var columns = []string{"part", "claim", "goal", "seen", "verdict"}

func (l Result) cells() []string { return []string{l.Part, l.Claim, l.Goal, l.Observed, l.Verdict()} }

// Table prints lines for a terminal.
func Table(to io.Writer, lines []Result) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, l := range lines {
		fmt.Fprintln(w, strings.Join(l.cells(), "\t"))
	}
	return w.Flush()
}

// Markdown prints lines for a document.
func Markdown(to io.Writer, lines []Result) error {
	rows := []string{row(columns), strings.Repeat("|---", len(columns)) + "|"}
	for _, l := range lines {
		rows = append(rows, row(l.cells()))
	}
	_, err := fmt.Fprintln(to, strings.Join(rows, "\n"))
	return err
}

func row(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
