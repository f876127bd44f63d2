// Package verdict collects what long runs found, a claim a line, for the table
// that make soak prints.
//
// A check says one Line for each thing that is promised: Say in a test, Append
// anywhere. The lines go to the file that the environment variable File names;
// without it they are said and not kept. Table prints them. The package
// measures and decides nothing.
package verdict

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
)

// File names the environment variable that says where lines are kept.
const File = "ROLECALL_VERDICTS"

// Line is one claim and what was seen of it.
type Line struct {
	Part    string `json:"part"`              // "power", "load", …: lines of one stand together
	Claim   string `json:"claim"`             // what is promised
	Goal    string `json:"goal,omitempty"`    // the figure that was to be reached
	Seen    string `json:"seen"`              // the figure
	Holds   bool   `json:"holds"`             // false also when it was skipped
	Skipped string `json:"skipped,omitempty"` // why it could not be looked at here
}

// Verdict gives the line's last word.
func (l Line) Verdict() string {
	switch {
	case l.Skipped != "":
		return "skipped: " + l.Skipped
	case l.Holds:
		return "holds"
	}
	return "MISSED"
}

// Say keeps a line and logs it. One that does not hold fails the test.
func Say(t testing.TB, l Line) {
	t.Helper()
	if err := Append(l); err != nil {
		t.Error(err)
	}
	t.Logf("%s: %s: %s (goal %s): %s", l.Part, l.Claim, l.Seen, l.Goal, l.Verdict())
	if !l.Holds && l.Skipped == "" {
		t.Errorf("%s does not hold", l.Claim)
	}
}

// Append keeps a line. It is safe for concurrent use, also by processes.
func Append(l Line) error {
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
	if err2 := f.Close(); err == nil {
		err = err2
	}
	return err
}

// Table prints lines as they stand in from, and says whether none was missed.
func Table(to io.Writer, from io.Reader) (kept bool, err error) {
	kept = true
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "part\tclaim\tgoal\tseen\tverdict")
	for in := bufio.NewScanner(from); in.Scan(); {
		var l Line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			return false, fmt.Errorf("read a verdict: %w: %s", err, in.Text())
		}
		kept = kept && (l.Holds || l.Skipped != "")
		fmt.Fprintln(w, strings.Join([]string{l.Part, l.Claim, l.Goal, l.Seen, l.Verdict()}, "\t"))
	}
	return kept, w.Flush()
}
