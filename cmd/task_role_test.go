package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const greeters = `{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: script, file: agents.js}
---
{kind: role, name: greeter, toolGroups: []}
`

// A task starts with an agent of --role. An unknown role is a usage error that starts
// nothing and applies no configuration.
func TestRun_StartsWithRole(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{file: greeters, filepath.Join(dir, "agents.js"): `role("*", function* (task) { return self.role + ": " + task.payload.text; });`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	status, _, stderr := runCommand(t, data, "run", "-f", file, "--role", "greter", "hi")
	if want := `rolecall: --role: there is no role "greter" (did you mean "greeter"?); "rolecall role list -f `; status != 2 || !strings.HasPrefix(stderr, want) {
		t.Errorf("status %d: %s", status, stderr)
	}
	if status, stdout, _ := runCommand(t, data, "role", "list"); status != 2 {
		t.Errorf("the command left an organization behind:\n%s", stdout)
	}
	for _, test := range []struct{ role, want string }{{"greeter", "greeter: hi\n"}, {"root", "root: hi\n"}} {
		if stdout := mustRun(t, data, "run", "-f", file, "--role", test.role, "hi"); stdout != test.want {
			t.Errorf("--role %s: got %q", test.role, stdout)
		}
	}
	status, _, stderr = runCommand(t, data, "run", "-f", file, "--role", "zzzzzz", "hi")
	if status != 2 || !strings.Contains(stderr, `there is no role "zzzzzz"; "rolecall role list`) {
		t.Errorf("status %d: %s", status, stderr)
	}
	status, _, stderr = runCommand(t, data, "run", "--resume", "x", "--role", "greeter")
	if status != 2 || !strings.Contains(stderr, "--resume and --role are mutually exclusive") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
