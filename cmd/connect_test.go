package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/org"
)

// runCommand runs a command line on a data directory.
func runCommand(t *testing.T, dir string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	c := &common{launcher: launcher, in: strings.NewReader(""), out: &out, err: &log, env: func(string) (string, bool) { return "", false }}
	status = run(t.Context(), c, append([]string{"--data", dir}, args...))
	return status, out.String(), log.String()
}

// mustRun runs a command line that must succeed and returns its stdout.
func mustRun(t *testing.T, dir string, args ...string) string {
	t.Helper()
	status, stdout, stderr := runCommand(t, dir, args...)
	if status != 0 {
		t.Fatalf("%v: status %d: %s%s", args, status, stdout, stderr)
	}
	return stdout
}

// Without an organization, a command that does not create one is a usage error. One that
// only looks works with a configuration.
func TestConnect_NeedsOrganization(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "org.yaml")
	if err := os.WriteFile(file, []byte("{kind: role, name: reader, toolGroups: [workspace]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	look := [][]string{
		{"role", "list"}, {"agent", "list"}, {"agent", "tree"}, {"task", "list"}, {"artifact", "list"}, {"role", "show", "reader"},
		{"group", "list"}, {"tool", "list"}, {"tool", "show", "read_file"}, {"can", "--who", "read_file"}, {"can", "--role", "reader", "read_file"},
	}
	change := [][]string{
		{"role", "update", "a", "--use-none"}, {"role", "delete", "a"}, {"tool", "accept", "a"}, {"artifact", "gc"}, {"run", "--resume", "last"}, {"task", "retry", "last"},
		{"agent", "terminate", "a"}, {"agent", "send", "a", "text"}, {"task", "cancel", "a"}, {"backup", filepath.Join(t.TempDir(), "b")},
	}
	for _, args := range append(append(look, change...), []string{"mcp", "--role", "reader"}) {
		status, stdout, stderr := runCommand(t, dir, args...)
		if want := "rolecall: there is no organization in " + dir + "; name its directory with --data DIR"; status != 2 || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%v: status %d, want 2 and %q: %s", args, status, want, stderr)
		}
	}
	for _, args := range look {
		mustRun(t, dir, append(args, "-f", file)...)
	}
	for _, args := range change {
		if status, _, stderr := runCommand(t, dir, append(args, "-f", file)...); status != 2 || strings.Contains(stderr, "-f FILE") {
			t.Errorf("%v with -f: status %d: %s", args, status, stderr)
		}
	}
	mustRun(t, dir, "role", "create", "a", "--dry-run")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was created: %v", err)
	}
	mustRun(t, dir, "role", "create", "a")
	if got := mustRun(t, dir, "role", "list"); !strings.Contains(got, "\na ") {
		t.Errorf("after role create: %q", got)
	}
}

func TestConnect_ReadOnlyConfigChangesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(file, []byte("kind: role\nname: reader\nprompt: read\ntoolGroups: [workspace]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustRun(t, dir, "role", "create", "a")
	if got := mustRun(t, dir, "role", "list", "-f", file); !strings.Contains(got, "reader") || !strings.Contains(got, "\na ") {
		t.Errorf("with the configuration: %q", got)
	}
	mustRun(t, dir, "can", "--role", "reader", "read_file", "-f", file)
	if got := mustRun(t, dir, "role", "list"); strings.Contains(got, "reader") {
		t.Errorf("a read-only command applied the configuration: %q", got)
	}
}

func TestConnect_UsesServingProcess(t *testing.T) {
	dir := t.TempDir()
	c := &common{launcher: launcher, data: dir, err: &bytes.Buffer{}}
	s, err := openSession(c, &terminal{out: io.Discard}, sessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	handler, err := gateway.New(gateway.Config{Runtime: s.Runtime, Authenticate: auth.AlwaysOperator})
	if err != nil {
		t.Fatal(err)
	}
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, handler, nil) }()
	mustRun(t, dir, "role", "create", "a", "--use", "workspace")
	if role, ok := s.Runtime.Org().RoleByName("a"); !ok || role.CreatedBy != org.CreatorOperator {
		t.Errorf("the serving process has %+v", role)
	}
	other := writeConfig(t, "{kind: role, name: b}\n")
	status, _, stderr := runCommand(t, dir, "role", "list", "-f", other)
	if status != 2 || !strings.Contains(stderr, "the serving process has no configuration") {
		t.Errorf("with -f: status %d, %q", status, stderr)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRun_ExitStatus(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "clerk", "--use", "workspace")
	tests := []struct {
		args   string
		status int
		output string // on stdout or stderr
	}{
		{"can --role clerk read_file", 0, "allowed\ngroup: workspace\n"},
		{"can --role clerk run_command", 1, "denied: tool_not_available: tool run_command"},
		{"can run_command --role clerk", 1, "denied: "},
		{"can --role clerk read_file --group artifact", 1, "rule: the groups asked for"},
		{"can --role nobody read_file", 1, "denied: role_not_found: tool read_file"},
		{"can --agent nobody read_file", 1, "denied: agent_not_found: tool read_file"},
		{"can --role clerk nothing", 1, "denied: unknown_tool: there is no tool nothing"},
		{"can --role clerk read_file --json", 0, `"allowed": true`},
		{"can --who read_file", 0, "role  clerk"},
		{"can --who nothing", 1, "denied: unknown_tool"},
		{"can read_file", 2, "one of --role"},
		{"can --role a --agent b read_file", 2, "one of --role"},
		{"can --role clerk x y", 2, "one tool name"},
		{"role", 0, "Usage:"},
		{"role lst", 2, "unknown command"},
		{"role show", 2, "one role"},
		{"role show nobody", 1, "role_not_found"},
		{"role show clerk --colour", 2, "unknown flag"},
		{"role create clerk", 1, "role_exists"},
		{"role create root", 1, "invalid_role"},
		{"role create a --use x --use-all", 2, "mutually exclusive"},
		{"role create a --use phones --dry-run", 1, `there is no tool group "phones"`},
		{"role create a --use workspace,consol", 1, `(did you mean "console"?)`},
		{"role create a --use phones --allow-unknown --dry-run", 0, "phones (dangling)"},
		{"role update clerk --grant phones", 1, `there is no tool group "phones"`},
		{"role update clerk --allow-unknown", 2, "nothing to change"},
		{"role update clerk --grant phones --allow-unknown --dry-run", 0, "phones is not registered"},
		{"role update clerk", 2, "nothing to change"},
		{"role update clerk --use-none --dry-run", 0, "role clerk  clerk  -      get_workspace_info"},
		{"role update clerk --use workspace --dry-run", 0, "no agent, role or caller gains or loses a tool"},
		{"agent send clerk", 2, "either a text"},
		{"agent send clerk --payload {", 2, "not JSON"},
		{"agent send clerk text --payload {}", 2, "either a text"},
		{"agent list --status asleep", 2, "--status is \"asleep\"; want one of starting, thinking, calling, waiting, paused, finished, terminated"},
		{"task list --status asleep", 2, "--status is \"asleep\"; want one of running,"},
		{"task list --since soon", 2, "--since is \"soon\", which is neither a duration"},
		{"task list --limit", 2, "--limit needs a value; "},
		{"task list -f", 2, "--file needs a value; "},
		{"artifact get x --json", 2, "artifact show --json"},
		{"artifact get x", 1, "artifact_not_found"},
		{"task show x", 1, "task_not_found"},
		{"tool list --group none", 1, "group_not_found"},
		{"tool list --group console", 0, "console_print"},
		{"group show none", 1, "group_not_found"},
	}
	for _, test := range tests {
		status, stdout, stderr := runCommand(t, dir, strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(stdout+stderr, test.output) {
			t.Errorf("%s: status %d, want %d with %q:\n%s%s", test.args, status, test.status, test.output, stdout, stderr)
		}
	}
}

// Every field of a role can be set by a flag, and set back.
func TestRole_FlagsSetFieldsAndDefaults(t *testing.T) {
	dir := t.TempDir()
	show := func() (r struct {
		ToolGroups, Grant                                []string
		Description                                      string
		RolePrompt, LLMServiceID, Pattern, Server, Model string
		ToolGated                                        bool
		Limits                                           struct{ Rounds int }
		Revision                                         int
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(mustRun(t, dir, "role", "show", "clerk", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	mustRun(t, dir, "role", "create", "clerk", "--description", "Files letters.", "--prompt", "p", "--model", "m", "--use", "console", "--grant", "console", "--tool-gated", "--pattern", "plan", "--limits", "rounds=4", "--server", "far", "--allow-unknown")
	if text := mustRun(t, dir, "role", "show", "clerk"); !strings.Contains(text, "Files letters.") {
		t.Errorf("role show prints\n%s", text)
	}
	if r := show(); r.Description != "Files letters." || r.Pattern != "plan" || !r.ToolGated || r.Server != "far" || r.Limits.Rounds != 4 {
		t.Errorf("created %+v", r)
	}
	mustRun(t, dir, "role", "update", "clerk", "--use-default", "--tool-gated=false", "--server", "", "--revision", "1")
	if r := show(); strings.Join(r.ToolGroups, "") != "*" || r.ToolGated || r.Server != "" || r.Pattern != "plan" || strings.Join(r.Grant, "") != "console" {
		t.Errorf("updated to %+v", r)
	}
	mustRun(t, dir, "role", "update", "clerk", "--grant-default", "--description", "", "--prompt", "", "--model", "", "--pattern", "", "--limits", "rounds=0")
	if r := show(); strings.Join(r.Grant, "") != "*" || r.Description != "" || r.RolePrompt != "" || r.LLMServiceID != "" || r.Pattern != "" || r.Limits.Rounds != 0 || r.Revision != 3 {
		t.Errorf("updated to %+v", r)
	}
	for _, test := range []struct {
		args   string
		status int
		output string
	}{
		{"--prompt x --revision 2", 1, "it has revision 3 now"},
		{"--server far", 1, `no module "far" provides tools`},
		{"--use console --use-default", 2, "mutually exclusive"},
		{"--limits calls=3", 2, `no limit "calls"`},
		{"--revision 3", 2, "nothing to change"},
	} {
		status, _, stderr := runCommand(t, dir, append([]string{"role", "update", "clerk"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(stderr, test.output) {
			t.Errorf("%s: status %d: %s", test.args, status, stderr)
		}
	}
}

// A limit of 0 removes this limit and no other. The budget stays, too, though it has no flag.
func TestRoleUpdate_RemovesSingleLimits(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "clerk", "--use", "console", "--limits", "rounds=4,depth=3,hires=2")
	for _, step := range []struct{ limits, want string }{
		{"rounds=0", `{"depth":3,"hires":2}`}, {"rounds=5,depth=0", `{"rounds":5,"hires":2}`}, {"hires=0,rounds=0", `null`},
	} {
		mustRun(t, dir, "role", "update", "clerk", "--limits", step.limits)
		var role struct{ Limits json.RawMessage }
		if err := json.Unmarshal([]byte(mustRun(t, dir, "role", "show", "clerk", "--json")), &role); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if role.Limits == nil {
			role.Limits = json.RawMessage("null")
		}
		if err := json.Compact(&got, role.Limits); err != nil || got.String() != step.want {
			t.Errorf("%s: %v, got the limits %s, want %s", step.limits, err, got.String(), step.want)
		}
	}
}

// An empty list of states is none, not the states of before.
func TestRoleUpdate_EmptyStatesAreNone(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "clerk", "--use", "console", "--states", "draft")
	mustRun(t, dir, "role", "update", "clerk", "--states", "")
	if text := mustRun(t, dir, "role", "show", "clerk"); strings.Contains(text, "draft") {
		t.Errorf("role show prints\n%s", text)
	}
}

func TestRoleShow_JSONIsTheRecord(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "clerk", "--prompt", "file", "--use", "workspace,phones", "--allow-unknown", "--grant-none")
	var got map[string]any
	if err := json.Unmarshal([]byte(mustRun(t, dir, "role", "show", "clerk", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"id", "name", "rolePrompt", "createdBy", "createdAt", "status", "llmServiceId", "toolGroups"} {
		if _, ok := got[field]; !ok {
			t.Errorf("the record has no %s: %v", field, got)
		}
	}
}

// A command that needs a configuration names the one that init has written.
func TestRun_NamesNearbyConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	want := func(want string, args ...string) {
		t.Helper()
		if status, stdout, stderr := runIn(t, nil, "hi\n", args...); status != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: status %d, want 2 with %q: %s%s", args, status, want, stdout, stderr)
		}
	}
	want("no model is configured", "run", "text")
	mustSucceed(t, "init", "--model", "script")
	want("run needs a configuration: -f org.yaml\n", "run", "text")
	want("check needs a configuration: -f org.yaml\n", "check")
	want("model test needs a configuration: -f org.yaml\n", "model", "test", "main")
	want("or a configuration with -f org.yaml\n", "chat")
	mustSucceed(t, "run", "-f", "org.yaml", "text")
	want("chat needs a configuration: -f org.yaml\n", "chat") // before the first message is read
}

// mustSucceed runs a command in the current directory.
func mustSucceed(t *testing.T, args ...string) {
	t.Helper()
	if status, _, stderr := runIn(t, nil, "", args...); status != 0 {
		t.Fatalf("%q: status %d: %s", args, status, stderr)
	}
}
