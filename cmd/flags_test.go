package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An empty name, id or directory is rejected before anything is opened or asked.
func TestRun_RejectsEmptyValues(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, test := range []struct {
		output string
		args   []string
	}{
		{"--workspace is empty", []string{"run", "--workspace", "", "x"}},
		{"--resume is empty", []string{"run", "--resume", ""}},
		{"--group has an empty value", []string{"run", "--group", "", "x"}},
		{"--data is empty", []string{"task", "list", "--data", ""}},
		{"--file has an empty value", []string{"role", "list", "-f", ""}},
		{"an argument is empty", []string{"task", "cancel", ""}},
		{"an argument is empty", []string{"role", "show", ""}},
		{"an argument is empty", []string{"role", "update", "", "--prompt", "x"}},
		{"an argument is empty", []string{"tool", "show", ""}},
		{"an argument is empty", []string{"agent", "send", "", "hi"}},
		{"an argument is empty", []string{"artifact", "get", ""}},
		{"--task is empty", []string{"agent", "list", "--task", ""}},
		{"--name is empty", []string{"role", "update", "a", "--name", ""}},
		{"--use is empty", []string{"role", "create", "a", "--use", ""}},
		{"--agent-groups is empty", []string{"role", "update", "a", "--agent-groups", ""}},
		{"--flags is empty", []string{"tool", "set", "t", "--flags", ""}},
	} {
		status, _, stderr := runCommand(t, dir, test.args...)
		if status != 2 || !strings.Contains(stderr, test.output) {
			t.Errorf("%q: status %d, want 2 with %q: %s", test.args, status, test.output, stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the data directory was created")
	}
}

// Errors about flags and commands use the words of the command line.
func TestRun_ExplainsUsageErrors(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct{ args, output string }{
		{"help bogus", `unknown command "rolecall bogus"; "rolecall --help" lists the commands`},
		{"help role bogus", `unknown command "rolecall role bogus"; "rolecall role --help" lists the commands`},
		{"completion bogus", `unknown command "rolecall completion bogus"`},
		{"completion bash bogus", "takes no arguments"},
		{"run --resume x --workspace .", "--resume and --workspace are mutually exclusive"},
		{"run --resume x --group a", "--resume and --group are mutually exclusive"},
		{"run --resume x --state a", "--resume and --state are mutually exclusive"},
		{"tool list --group x --quarantined", "--group and --quarantined are mutually exclusive"},
		{"role create a --limits rounds=x", `--limits "rounds=x" is not NAME=NUMBER`},
		{"role create a --limits rounds", `--limits "rounds" is not NAME=NUMBER`},
		{"role update a --revision x", `--revision "x" is not a whole number`},
		{"role update a --revision -1", `--revision "-1" is not a whole number`},
		{"role create a --tool-gated=maybe", `--tool-gated "maybe" is not true, false or strict`},
		{"task list --limit 9223372036854775808", `--limit "9223372036854775808" is out of range`},
		{"run --timeout soon x", `--timeout "soon" is not a duration such as 30s or 5m`},
		{"role update a --revision 0 --prompt x", "--revision 0"},
	} {
		status, _, stderr := runCommand(t, dir, strings.Fields(test.args)...)
		if status != 2 || !strings.Contains(stderr, test.output) || strings.Contains(stderr, "strconv") {
			t.Errorf("%s: status %d, want 2 with %q: %s", test.args, status, test.output, stderr)
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "role", "show"}, {"completion"}, {"completion", "bash", "--help"}} {
		mustRun(t, dir, args...)
	}
	if help := mustRun(t, dir, "help", "role", "create"); strings.Contains(help, "stringToInt") || !strings.Contains(help, "--limits NAME=NUMBER") {
		t.Errorf("the help of --limits:\n%s", help)
	}
}
