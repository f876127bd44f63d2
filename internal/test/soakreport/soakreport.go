// Package soakreport collects the results of long tests, one claim each, for the table
// that make soak prints.
//
// RecordResult records a result in a test, AppendResult anywhere else. Results are
// appended to the file named by the environment variable FileEnv; without it they are
// only logged. ReadResults and WriteTable print the file. The package measures
// nothing.
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

// FileEnv names the environment variable with the path of the result file.
const FileEnv = "ROLECALL_VERDICTS"

// Result is one claim and what was observed.
type Result struct {
	Part         string `json:"part"`              // "power", "load", …: groups the rows
	Claim        string `json:"claim"`             // the promised behaviour
	Goal         string `json:"goal,omitempty"`    // the value to reach
	Observed     string `json:"seen"`              // the measured value
	Passed       bool   `json:"holds"`             // also false when skipped
	Skipped      string `json:"skipped,omitempty"` // why the test could not run here
	Aspirational bool   `json:"wish,omitempty"`    // a performance goal; missing it is not a failure
}

// Verdict returns the last column of a row.
func (r Result) Verdict() string {
	switch {
	case r.Skipped != "":
		return "skipped: " + r.Skipped
	case r.Passed:
		return "holds"
	case r.Aspirational:
		return "not reached"
	}
	return "MISSED"
}

// RecordResult appends a result to the file and logs it. It fails the test if the
// claim does not hold.
func RecordResult(t testing.TB, r Result) {
	t.Helper()
	if err := AppendResult(r); err != nil {
		t.Error(err)
	}
	t.Logf("%s: %s: %s (goal %s): %s", r.Part, r.Claim, r.Observed, r.Goal, r.Verdict())
	if r.missed() {
		t.Errorf("%s does not hold", r.Claim)
	}
}

// AppendResult appends a result to the file. It is safe for concurrent use, also by
// several processes.
func AppendResult(r Result) error {
	name := os.Getenv(FileEnv)
	if name == "" {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("store a result: %w", err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("store a result: %w", err)
	}
	_, err = f.Write(append(data, '\n')) // one write, so that concurrent results do not mix
	return errors.Join(err, f.Close())
}

// ReadResults returns the results in a file grouped by part, in the order in which the
// parts first appear.
func ReadResults(from io.Reader) ([]Result, error) {
	var list []Result
	order := map[string]int{}
	in := bufio.NewScanner(from)
	for in.Scan() {
		var r Result
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("read a result: %w: %s", err, in.Text())
		}
		if _, ok := order[r.Part]; !ok {
			order[r.Part] = len(order)
		}
		list = append(list, r)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	slices.SortStableFunc(list, func(a, b Result) int { return cmp.Compare(order[a.Part], order[b.Part]) })
	return list, nil
}

// AllPassed reports whether there is a result and no claim was missed. Aspirational
// and skipped claims do not count as missed.
func AllPassed(list []Result) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, Result.missed)
}

// missed reports whether the claim does not hold and should.
func (r Result) missed() bool { return !r.Passed && r.Skipped == "" && !r.Aspirational }

var columns = []string{"part", "claim", "goal", "seen", "verdict"}

func (r Result) cells() []string { return []string{r.Part, r.Claim, r.Goal, r.Observed, r.Verdict()} }

// WriteTable prints results for a terminal.
func WriteTable(to io.Writer, list []Result) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, r := range list {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	return w.Flush()
}

// WriteMarkdown prints results as a Markdown table.
func WriteMarkdown(to io.Writer, list []Result) error {
	rows := []string{markdownRow(columns), strings.Repeat("|---", len(columns)) + "|"}
	for _, r := range list {
		rows = append(rows, markdownRow(r.cells()))
	}
	_, err := fmt.Fprintln(to, strings.Join(rows, "\n"))
	return err
}

func markdownRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }
