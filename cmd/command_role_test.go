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

// role show lists the tools of a role, each with the group that gives it and its effect.
func TestRoleShow_ListsTools(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "a", "--use", "workspace")
	mustRun(t, dir, "role", "create", "b", "--use-none")
	want := `
TOOL                GROUP      EFFECT
get_workspace_info  workspace  readOnly
list_files          workspace  readOnly
read_file           workspace  readOnly
write_file          workspace  idempotent
`
	if got := mustRun(t, dir, "role", "show", "a"); !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("got\n%s\nwant at the end\n%s", got, want)
	}
	if got := mustRun(t, dir, "role", "show", "a", "--json"); !strings.Contains(got, `"tools": [
    {
      "name": "get_workspace_info",
      "group": "workspace",
      "effect": "readOnly"
    },`) {
		t.Errorf("got %s", got)
	}
	for _, args := range [][]string{{"role", "show", "b"}, {"role", "show", "b", "--json"}, {"role", "list", "--json"}} {
		if got := mustRun(t, dir, args...); strings.Contains(got, "TOOL") || strings.Contains(got, `"tools"`) {
			t.Errorf("%v: %s", args, got)
		}
	}
}
