package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Without a tool, can lists all tools: yes or no agrees with the answer for each of them.
func TestCan_ListsTools(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "reader", "--use", "workspace")
	rows := strings.Split(strings.TrimSpace(mustRun(t, dir, "can", "--role", "reader")), "\n")
	tools := strings.Split(strings.TrimSpace(mustRun(t, dir, "tool", "list")), "\n") // with a head, too
	if len(rows) != len(tools) || len(rows) < 19 || !strings.HasPrefix(rows[0], "TOOL") {
		t.Fatalf("%d rows, want one for each of %d tools and a head:\n%s", len(rows), len(tools)-1, strings.Join(rows, "\n"))
	}
	yes := 0
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		status, stdout, _ := runCommand(t, dir, "can", "--role", "reader", cells[0])
		if (cells[1] == "yes") != (status == 0) || status > 1 {
			t.Errorf("%s: %s", row, stdout)
		}
		if cells[1] == "yes" {
			yes++
		}
	}
	var group struct{ Tools []string }
	if err := json.Unmarshal([]byte(mustRun(t, dir, "group", "show", "workspace", "--json")), &group); err != nil || yes != len(group.Tools) || yes < 4 {
		t.Errorf("%d tools are allowed, want %v (%v)", yes, group.Tools, err)
	}
	var list []struct {
		Tool    string
		Allowed bool
	}
	if err := json.Unmarshal([]byte(mustRun(t, dir, "can", "--role", "reader", "--json")), &list); err != nil || len(list) != len(tools)-1 {
		t.Errorf("%v, %+v", err, list)
	}
	narrowed := mustRun(t, dir, "can", "--role", "reader", "--group", "console")
	if strings.Contains(narrowed, " yes ") {
		t.Errorf("beyond the groups asked for:\n%s", narrowed)
	}
	for args, want := range map[string]int{"--role none": 1, "--agent none": 1, "--who": 2, "": 2, "--role reader --who": 2} {
		if status, _, stderr := runCommand(t, dir, append([]string{"can"}, strings.Fields(args)...)...); status != want {
			t.Errorf("can %s: status %d, want %d: %s", args, status, want, stderr)
		}
	}
}

// The list of who may call a tool says whose calls wait.
func TestCan_WhoSaysWhichCallsWait(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	text := "{kind: role, name: clerk, toolGroups: [workspace], approval: [{tools: [write_file], from: {any: [{operator: true}]}}]}\n---\n{kind: role, name: writer, toolGroups: [workspace]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, dir, "can", "-f", file, "--who", "write_file")
	for _, row := range []string{`role +clerk .* with approval\n`, `role +writer .* yes\n`} {
		if !regexp.MustCompile(row).MatchString(got) {
			t.Errorf("no row is %s:\n%s", row, got)
		}
	}
}

// A command that only looks at a configuration does not run its agent scripts. check does.
func TestCan_RunsNoAgentScript(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{
		"org.yaml":  "{kind: organization, name: one, model: main}\n---\n{kind: model, name: main, type: script, file: agents.js}\n---\n{kind: role, name: reader, toolGroups: [workspace]}\n",
		"agents.js": `throw new Error("it ran")`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	mustRun(t, data, "can", "-f", file, "--role", "reader", "read_file")
	for _, args := range [][]string{{"check", "-f", file}, {"run", "-f", file, "Go"}} {
		if status, stdout, stderr := runCommand(t, data, args...); status == 0 || !strings.Contains(stdout+stderr, "it ran") {
			t.Errorf("%v: status %d, %s%s", args, status, stdout, stderr)
		}
	}
}

// The table of a role says which calls wait for people.
func TestCan_TableShowsApproval(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	text := `
{kind: organization, name: o}
---
{kind: role, name: payer, toolGroups: [workspace], approval: [{tools: [write_file], from: {any: [{role: finance}]}}]}
---
{kind: role, name: finance, toolGroups: []}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, dir, "can", "-f", file, "--role", "payer")
	for tool, want := range map[string]string{"write_file": "with approval", "read_file": "yes", "run_command": "no"} {
		if !regexp.MustCompile(`(?m)^` + tool + `  +` + want + `  `).MatchString(out) {
			t.Errorf("%s is not %q in\n%s", tool, want, out)
		}
	}
}
