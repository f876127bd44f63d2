package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The configuration of a role is named as the thing to change, by the verb of the command.
func TestRole_OfConfigurationIsNotDeleted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(file, []byte("{kind: organization, name: o}\n---\n{kind: role, name: clerk, toolGroups: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for verb, args := range map[string][]string{"delete": nil, "change": {"--prompt", "x"}} {
		command := map[string]string{"delete": "delete", "change": "update"}[verb]
		status, _, stderr := runCommand(t, dir, append([]string{"role", command, "clerk", "-f", file, "--dry-run"}, args...)...)
		if want := verb + ` role "clerk": it is defined by the configuration; ` + verb + " it in the file"; status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, want %q: %s", command, status, want, stderr)
		}
	}
}

// role show lists the tools of a role, each with the group that has it, its effect and its flags.
func TestRoleShow_ListsTools(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "a", "--use", "workspace")
	mustRun(t, dir, "role", "create", "b", "--use-none")
	want := `
TOOL                GROUP      EFFECT      FLAGS
get_workspace_info  workspace  readOnly    none
list_files          workspace  readOnly    untrusted, private
read_file           workspace  readOnly    untrusted, private
write_file          workspace  idempotent  none
`
	if got := mustRun(t, dir, "role", "show", "a"); !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got, want)
	}
	if got := mustRun(t, dir, "role", "show", "a", "--json"); !strings.Contains(got, `"tools": [
    {
      "name": "get_workspace_info",
      "group": "workspace",
      "effect": "readOnly",
      "flags": [],
      "flagsKnown": true
    },`) {
		t.Errorf("got %s", got)
	}
	for _, args := range [][]string{{"role", "show", "b"}, {"role", "show", "b", "--json"}, {"role", "list", "--json"}} {
		if got := mustRun(t, dir, args...); strings.Contains(got, "TOOL") || strings.Contains(got, `"tools"`) {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// A model that the configuration does not declare is rejected, as an unknown group is.
// Without a configuration the command says that it is not checked.
func TestRole_UnknownModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "org.yaml")
	if err := os.WriteFile(file, []byte("{kind: organization, name: o, model: main}\n---\n{kind: model, name: main, type: openai, model: x, apiKey: \"${NO_SUCH_KEY}\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const unchecked = `it is not checked whether there is a model "mian", because no configuration is active; -f FILE names one`
	for _, test := range []struct {
		args   string
		status int
		output string
	}{
		{"create a --model main -f FILE", 0, "role a created"},
		{"create b --model mian -f FILE", 1, `no model "mian" is declared; did you mean "main"?`},
		{"create b --model zzzzzz -f FILE", 1, `no model "zzzzzz" is declared; name a declared one, or allow unknown ones (allowUnknown, --allow-unknown)`},
		{"create b --model mian -f FILE --dry-run", 1, `did you mean "main"?`},
		{"create b --model mian -f FILE --allow-unknown", 0, "role b created"},
		{"update a --model mian -f FILE", 1, `did you mean "main"?`},
		{"update a --prompt p -f FILE", 0, ""},
		{"update a --model mian", 0, unchecked},
		{"update a --model mian --json", 0, "\"unchecked\": [\n      \"llmServiceId\"\n    ]"},
		{"create c --model mian", 0, unchecked},
		{"create d --model mian --dry-run", 0, unchecked},
	} {
		args := strings.Fields(strings.ReplaceAll(test.args, "FILE", file))
		status, stdout, stderr := runCommand(t, dir, append([]string{"role"}, args...)...)
		if status != test.status || !strings.Contains(stdout+stderr, test.output) {
			t.Errorf("%s: status %d, want %d with %q:\n%s%s", test.args, status, test.status, test.output, stdout, stderr)
		}
	}
	if shown := mustRun(t, dir, "role", "show", "a", "--json"); strings.Contains(shown, "unchecked") {
		t.Errorf("role show has what is about a change: %s", shown)
	}
}
