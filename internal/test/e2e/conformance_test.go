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

// The protocol revisions that the suite has requirements for.
const (
	stateful  = "2025-11-25"
	stateless = "2026-07-28"
)

// suiteCheck is a check of the conformance suite.
type suiteCheck struct {
	ID           string
	Status       string
	ErrorMessage string
}

// failureReason returns why the scenario with these checks is not passed, or "". The
// suite passes a scenario without checks; here that counts as a failure.
func failureReason(checks []suiteCheck) string {
	checked := false
	for _, c := range checks {
		switch c.Status {
		case "FAILURE", "WARNING":
			return fmt.Sprintf("%s: %s", c.ID, c.ErrorMessage)
		case "SUCCESS":
			checked = checked || !strings.HasPrefix(c.ID, "wire-schema-")
		}
	}
	if !checked {
		return "nothing was checked"
	}
	return ""
}

// timestampSuffix is what the suite appends to a scenario's name to name its folder.
var timestampSuffix = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// readScenarios reads the checks that a run of the suite wrote to dir, by scenario.
// side is "server" or "client".
func readScenarios(t *testing.T, dir, side string) map[string][]suiteCheck {
	t.Helper()
	all := map[string][]suiteCheck{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name = timestampSuffix.ReplaceAllString(name, "")
		if side == "server" {
			name = strings.TrimPrefix(name, "server-")
		}
		var checks []suiteCheck
		if err := json.Unmarshal([]byte(readFile(t, path)), &checks); err != nil {
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

// requiredScenarios returns the scenarios that a revision requires of a side.
func requiredScenarios(t *testing.T, revision, side string) []string {
	t.Helper()
	var set struct {
		Server, Client []string
	}
	file := nodeModule(t, "@modelcontextprotocol", "conformance", "requirements", revision+".yaml")
	if err := yaml.Unmarshal([]byte(readFile(t, file)), &set); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if side == "server" {
		return set.Server
	}
	return set.Client
}

// documentedExceptions reads the table of docs/mcp.md: the required scenarios that are
// not passed. A row is | role | scenarios | revisions | why |.
func documentedExceptions(t *testing.T, revision, role string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(readFile(t, filepath.Join("..", "..", "..", "docs", "mcp.md"))) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.TrimSpace(cells[1]) != role || !strings.Contains(cells[3], revision) {
			continue
		}
		if strings.TrimSpace(cells[4]) == "" {
			t.Errorf("docs/mcp.md has no reason for %s", line)
		}
		for name := range strings.FieldsSeq(cells[2]) {
			list = append(list, strings.Trim(name, "`,"))
		}
	}
	return list
}

// compareResults compares a run with the required scenarios and the exceptions. An
// exception is a scenario, or scenario:check for one check of it. It returns how many
// scenarios passed, and the deviations, one per line.
func compareResults(ran map[string][]suiteCheck, required, excepted []string) (passed int, wrong []string) {
	for _, name := range required {
		checks, known := ran[name]
		why := failureReason(checks)
		if why == "" {
			passed++
		}
		whole, some := exemption(name, excepted)
		switch {
		case !known:
			wrong = append(wrong, name+" was not run")
		case whole && why == "":
			wrong = append(wrong, name+" passes: remove it from the exceptions")
		case !whole:
			wrong = append(wrong, compareChecks(name, checks, some)...)
		}
	}
	for _, name := range excepted {
		if name, _, _ = strings.Cut(name, ":"); !slices.Contains(required, name) {
			wrong = append(wrong, name+" is an unnecessary exception: it is not required")
		}
	}
	return passed, wrong
}

// exemption reports whether a whole scenario is excepted, or which of its checks.
func exemption(name string, excepted []string) (whole bool, some []string) {
	for _, e := range excepted {
		if id, ok := strings.CutPrefix(e, name+":"); ok {
			some = append(some, id)
		}
	}
	return slices.Contains(excepted, name), some
}

// compareChecks returns the deviations of a scenario with excepted checks.
func compareChecks(name string, checks []suiteCheck, excepted []string) (wrong []string) {
	var rest []suiteCheck
	failed := map[string]bool{}
	for _, c := range checks {
		if !slices.Contains(excepted, c.ID) {
			rest = append(rest, c)
		} else if failureReason([]suiteCheck{c}) != "" {
			failed[c.ID] = true
		}
	}
	if why := failureReason(rest); why != "" {
		wrong = append(wrong, name+" fails and is not listed as an exception: "+why)
	}
	for _, id := range excepted {
		if !failed[id] {
			wrong = append(wrong, name+":"+id+" does not fail: remove it from the exceptions")
		}
	}
	return wrong
}

// Exceptions must be necessary and complete.
func TestCompareResults_ChecksExceptions(t *testing.T) {
	good := []suiteCheck{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "INFO"}}
	bad := []suiteCheck{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "FAILURE", ErrorMessage: "no"}}
	warning := []suiteCheck{{ID: "a", Status: "SUCCESS"}, {ID: "b", Status: "WARNING", ErrorMessage: "hm"}}
	idle := []suiteCheck{{ID: "a", Status: "SKIPPED"}, {ID: "wire-schema-valid", Status: "SUCCESS"}}
	for _, tt := range []struct {
		name     string
		checks   []suiteCheck
		excepted []string
		passed   int
		wrong    []string
	}{
		{"passes", good, nil, 1, nil},
		{"passes and is excepted", good, []string{"x"}, 1, []string{"x passes: remove it from the exceptions"}},
		{"fails", bad, nil, 0, []string{"x fails and is not listed as an exception: b: no"}},
		{"fails and is excepted", bad, []string{"x"}, 0, nil},
		{"has a warning", warning, nil, 0, []string{"x fails and is not listed as an exception: b: hm"}},
		{"checks nothing", idle, nil, 0, []string{"x fails and is not listed as an exception: nothing was checked"}},
		{"was not run", nil, []string{"x"}, 0, []string{"x was not run"}},
		{"fails in a check that is excepted", bad, []string{"x:b"}, 0, nil},
		{"fails in another check", bad, []string{"x:a"}, 0, []string{"x fails and is not listed as an exception: b: no", "x:a does not fail: remove it from the exceptions"}},
		{"a check that is excepted passes", good, []string{"x:a"}, 1, []string{"x fails and is not listed as an exception: nothing was checked", "x:a does not fail: remove it from the exceptions"}},
		{"another is excepted", good, []string{"y"}, 1, []string{"y is an unnecessary exception: it is not required"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran := map[string][]suiteCheck{"x": tt.checks}
			if tt.checks == nil {
				clear(ran)
			}
			passed, wrong := compareResults(ran, []string{"x"}, tt.excepted)
			if diff := cmp.Diff(tt.wrong, wrong); passed != tt.passed || diff != "" {
				t.Errorf("%d passed, want %d; wrong (- want, + got):\n%s", passed, tt.passed, diff)
			}
		})
	}
}

// runConformance runs the suite for a revision and compares the results with the tables of
// docs/mcp.md. role is what is tested: rolecall as a server, as a gateway or as a client.
func runConformance(t *testing.T, role, revision string, env []string, args ...string) {
	t.Helper()
	dir, side := t.TempDir(), strings.Replace(role, "gateway", "server", 1)
	args = append([]string{side, "--requirements", revision, "--output-dir", dir}, args...)
	o := runScript(t, env, nodeModule(t, "@modelcontextprotocol", "conformance", "dist", "index.js"), args...)
	ran := readScenarios(t, dir, side)
	want := requiredScenarios(t, revision, side)
	passed, wrong := compareResults(ran, want, documentedExceptions(t, revision, role))
	for _, line := range wrong {
		t.Error(line)
	}
	count := fmt.Sprintf("%d of %d", passed, len(want))
	t.Logf("%s, %s: %s required scenarios", role, revision, count)
	logOptional(t, ran, want)
	if role == "client" {
		compareMachines(t, ran, revision)
	}
	if stated := publishedCount(t, role, revision); stated != count {
		t.Errorf("docs/mcp.md states %q for the %s and %s, want %q", stated, role, revision, count)
	}
	if t.Failed() {
		t.Logf("status %d; output:\n%s\n%s", o.status, lastOutput(o.stdout), lastOutput(o.stderr))
		keepOutput(t, dir)
	}
}

// compareMachines compares the scenarios in which a machine logs in, which no revision requires, with
// the table of docs/mcp.md.
func compareMachines(t *testing.T, ran map[string][]suiteCheck, revision string) {
	t.Helper()
	passed, all := 0, 0
	for name, checks := range ran {
		if !strings.HasPrefix(name, machineScenarios) {
			continue
		}
		all++
		if why := failureReason(checks); why == "" {
			passed++
		} else {
			t.Errorf("%s: %s", name, why)
		}
	}
	count := fmt.Sprintf("%d of %d", passed, all)
	if stated := publishedCount(t, "client with client credentials", revision); stated != count {
		t.Errorf("docs/mcp.md states %q for client credentials and %s, want %q", stated, revision, count)
	}
}

// publishedCount reads a number of the table in docs/mcp.md.
func publishedCount(t *testing.T, role, revision string) string {
	t.Helper()
	var head []string
	for line := range strings.Lines(readFile(t, filepath.Join("..", "..", "..", "docs", "mcp.md"))) {
		cells := strings.Split(line, "|")
		if strings.Contains(line, "| "+revision+" |") {
			head = cells
		}
		if at := slices.Index(head, " "+revision+" "); strings.HasPrefix(line, "| as a "+role+" |") && 0 < at && at < len(cells) {
			return strings.TrimSpace(cells[at])
		}
	}
	return ""
}

// logOptional logs the scenarios that were run and are not required.
func logOptional(t *testing.T, ran map[string][]suiteCheck, required []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ran)) {
		if !slices.Contains(required, name) {
			t.Logf("not required: %s %s", name, failureReason(ran[name]))
		}
	}
}

// keepOutput copies what a failed run wrote to $ROLECALL_E2E_KEEP, if set.
func keepOutput(t *testing.T, dir string) {
	t.Helper()
	to := os.Getenv("ROLECALL_E2E_KEEP")
	if to == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(to, filepath.Base(t.Name())), os.DirFS(dir)); err != nil {
		t.Log(err)
	}
}

// lastOutput returns the end of a program's output.
func lastOutput(text string) string { return text[max(0, len(text)-8000):] }
