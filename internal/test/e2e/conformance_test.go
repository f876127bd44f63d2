package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

// Revisions of the protocol that the suite has requirements for.
const (
	stateful  = "2025-11-25"
	stateless = "2026-07-28"
)

// check is one thing that the conformance suite looked at.
type check struct {
	ID           string
	Status       string
	ErrorMessage string
}

// fault says why a scenario of these checks is not passed; "" when it is. The
// suite passes what was not looked at; here that is no pass.
func fault(checks []check) string {
	seen := false
	for _, c := range checks {
		switch c.Status {
		case "FAILURE", "WARNING":
			return fmt.Sprintf("%s: %s", c.ID, c.ErrorMessage)
		case "SUCCESS":
			seen = seen || !strings.HasPrefix(c.ID, "wire-schema-")
		}
	}
	if !seen {
		return "nothing was checked"
	}
	return ""
}

// stamp is what the suite puts behind a scenario's name to name its folder.
var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// scenarios reads what the suite wrote of a run into dir, by scenario.
func scenarios(t *testing.T, dir, leg string) map[string][]check {
	t.Helper()
	all := map[string][]check{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = stamp.ReplaceAllString(name, "")
		if leg == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		var checks []check
		if err := json.Unmarshal([]byte(read(t, path)), &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all[name] = checks
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// required lists what a revision requires of a leg, server or client.
func required(t *testing.T, revision, leg string) []string {
	t.Helper()
	var set struct {
		Server, Client []string
	}
	file := part(t, "@modelcontextprotocol", "conformance", "requirements", revision+".yaml")
	if err := yaml.Unmarshal([]byte(read(t, file)), &set); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if leg == "server" {
		return set.Server
	}
	return set.Client
}

// exceptions reads the table of docs/mcp.md: the required scenarios that are
// not passed. A row is | leg | scenarios | revisions | why |.
func exceptions(t *testing.T, revision, leg string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(read(t, filepath.Join("..", "..", "..", "docs", "mcp.md"))) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.TrimSpace(cells[1]) != leg || !strings.Contains(cells[3], revision) {
			continue
		}
		if strings.TrimSpace(cells[4]) == "" {
			t.Errorf("docs/mcp.md gives no reason: %s", line)
		}
		for name := range strings.FieldsSeq(cells[2]) {
			list = append(list, strings.Trim(name, "`,"))
		}
	}
	return list
}

// judge holds a run against what is required and what is excepted: a scenario,
// or scenario:check for one check of it. It gives how many scenarios passed,
// and what is wrong, a line each.
func judge(ran map[string][]check, required, excepted []string) (passed int, wrong []string) {
	for _, name := range required {
		checks, known := ran[name]
		why := fault(checks)
		if why == "" {
			passed++
		}
		whole, some := exempt(name, excepted)
		switch {
		case !known:
			wrong = append(wrong, name+" was not run")
		case whole && why == "":
			wrong = append(wrong, name+" passes: take it from the list of exceptions")
		case !whole:
			wrong = append(wrong, judgeChecks(name, checks, some)...)
		}
	}
	for _, name := range excepted {
		if name, _, _ = strings.Cut(name, ":"); !slices.Contains(required, name) {
			wrong = append(wrong, name+" is an exception of nothing: it is not required")
		}
	}
	return passed, wrong
}

// exempt says whether a scenario is excepted, or which of its checks.
func exempt(name string, excepted []string) (whole bool, some []string) {
	for _, e := range excepted {
		if id, ok := strings.CutPrefix(e, name+":"); ok {
			some = append(some, id)
		}
	}
	return slices.Contains(excepted, name), some
}

// judgeChecks says what is wrong with a scenario, some of whose checks are
// excepted.
func judgeChecks(name string, checks []check, excepted []string) (wrong []string) {
	var rest []check
	failed := map[string]bool{}
	for _, c := range checks {
		if !slices.Contains(excepted, c.ID) {
			rest = append(rest, c)
		} else if fault([]check{c}) != "" {
			failed[c.ID] = true
		}
	}
	if why := fault(rest); why != "" {
		wrong = append(wrong, name+" fails and is not listed as an exception: "+why)
	}
	for _, id := range excepted {
		if !failed[id] {
			wrong = append(wrong, name+":"+id+" does not fail: take it from the list of exceptions")
		}
	}
	return wrong
}

// TestAnExceptionIsHeldToItsWord shows what the accounts find.
func TestAnExceptionIsHeldToItsWord(t *testing.T) {
	good := []check{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "INFO"}}
	bad := []check{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "FAILURE", ErrorMessage: "no"}}
	doubt := []check{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "WARNING", ErrorMessage: "hm"}}
	idle := []check{{ID: "a", Status: "SKIPPED"}, {ID: "wire-schema-valid", Status: "SUCCESS"}}
	for _, tt := range []struct {
		name     string
		checks   []check
		excepted []string
		passed   int
		wrong    []string
	}{
		{"passes", good, nil, 1, nil},
		{"passes and is excepted", good, []string{"x"}, 1, []string{"x passes: take it from the list of exceptions"}},
		{"fails", bad, nil, 0, []string{"x fails and is not listed as an exception: b: no"}},
		{"fails and is excepted", bad, []string{"x"}, 0, nil},
		{"is doubtful", doubt, nil, 0, []string{"x fails and is not listed as an exception: b: hm"}},
		{"checks nothing", idle, nil, 0, []string{"x fails and is not listed as an exception: nothing was checked"}},
		{"was not run", nil, []string{"x"}, 0, []string{"x was not run"}},
		{"fails in a check that is excepted", bad, []string{"x:b"}, 0, nil},
		{"fails in another check", bad, []string{"x:a"}, 0, []string{"x fails and is not listed as an exception: b: no", "x:a does not fail: take it from the list of exceptions"}},
		{"a check that is excepted passes", good, []string{"x:a"}, 1, []string{"x fails and is not listed as an exception: nothing was checked", "x:a does not fail: take it from the list of exceptions"}},
		{"another is excepted", good, []string{"y"}, 1, []string{"y is an exception of nothing: it is not required"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := map[string][]check{"x": tt.checks}
			if tt.checks == nil {
				clear(ran)
			}
			passed, wrong := judge(ran, []string{"x"}, tt.excepted)
			if diff := cmp.Diff(tt.wrong, wrong); passed != tt.passed || diff != "" {
				t.Errorf("%d passed, want %d; wrong (- want, + got):\n%s", passed, tt.passed, diff)
			}
		})
	}
}

// conform runs a leg of the suite for a revision and holds what it found
// against docs/mcp.md and the figure of the README.
func conform(t *testing.T, leg, revision string, env []string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	args = append([]string{leg, "--requirements", revision, "--output-dir", dir}, args...)
	o := script(t, env, part(t, "@modelcontextprotocol", "conformance", "dist", "index.js"), args...)
	ran := scenarios(t, dir, leg)
	want := required(t, revision, leg)
	passed, wrong := judge(ran, want, exceptions(t, revision, leg))
	for _, line := range wrong {
		t.Error(line)
	}
	figure := fmt.Sprintf("%d of %d", passed, len(want))
	t.Logf("%s, %s: %s required scenarios", leg, revision, figure)
	report(t, ran, want)
	if said := published(t, leg, revision); said != figure {
		t.Errorf("the README says %q of the %s and %s, it is %q", said, leg, revision, figure)
	}
	if t.Failed() {
		t.Logf("status %d; it said:\n%s\n%s", o.status, tail(o.stdout), tail(o.stderr))
		keep(t, dir)
	}
}

// published reads a figure of the README's table.
func published(t *testing.T, leg, revision string) string {
	t.Helper()
	var head []string
	for line := range strings.Lines(read(t, filepath.Join("..", "..", "..", "README.md"))) {
		cells := strings.Split(line, "|")
		if strings.Contains(line, "| "+revision+" |") {
			head = cells
		}
		if at := slices.Index(head, " "+revision+" "); strings.HasPrefix(line, "| as a "+leg+" |") && 0 < at && at < len(cells) {
			return strings.TrimSpace(cells[at])
		}
	}
	return ""
}

// report logs what was run and is not required.
func report(t *testing.T, ran map[string][]check, required []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		if !slices.Contains(required, name) {
			t.Logf("not required: %s %s", name, fault(ran[name]))
		}
	}
}

// keep copies what a failed run wrote to where $ROLECALL_E2E_KEEP says.
func keep(t *testing.T, dir string) {
	t.Helper()
	to := os.Getenv("ROLECALL_E2E_KEEP")
	if to == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, filepath.Base(t.Name())), os.DirFS(dir)); err != nil {
		t.Log(err)
	}
}

// tail gives the end of what a program said.
func tail(text string) string { return text[max(0, len(text)-8000):] }
