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
