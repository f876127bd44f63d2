package cmd

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
)

// runWith runs a command line with variables of the environment.
func runWith(ctx context.Context, env map[string]string, args ...string) (status int, stdout, stderr string) {
	var out, log bytes.Buffer
	c := &common{launcher: launcher, in: strings.NewReader(""), out: &out, err: &log, env: func(name string) (string, bool) { value, ok := env[name]; return value, ok }}
	status = run(ctx, c, args)
	return status, out.String(), log.String()
}

// A gateway that does not answer is named in the words of the command line.
func TestRun_UnreachableGateway(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, args := range [][]string{{"task", "list"}, {"role", "create", "a"}, {"mcp", "--role", "a"}, {"run", "x"}} {
		status, _, stderr := runWith(t.Context(), map[string]string{urlVariable: closed.URL}, args...)
		want := "rolecall: " + strings.TrimPrefix(closed.URL, "http://") + ` refuses connections; ROLECALL_URL is ` + closed.URL + `: start "rolecall serve" there, or correct or unset the variable` + "\n"
		if status != 1 || stderr != want {
			t.Errorf("%v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

// What is wrong with the variables that name a gateway is said in the words of the command
// line.
func TestRun_GatewayVariables(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := errcode.Code(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		wire.WriteError(w, errcode.New(cmp.Or(code, errcode.Unauthenticated), "GET /api/v1/x").With("required", "operator"))
	}))
	defer server.Close()
	for _, test := range []struct {
		url, token string
		args       string
		status     int
		output     string
	}{
		{"ftp://x", "", "task list", 2, "rolecall: ROLECALL_URL: invalid gateway address; want an http or https URL such as http://127.0.0.1:7464, without a token\n"},
		{server.URL, "no token", "task list", 2, "rolecall: ROLECALL_TOKEN is not a bearer token (RFC 6750): it has characters that no token has\n"},
		{server.URL, "", "task list", 1, "rolecall: unauthenticated: " + server.URL + " requires a token; set ROLECALL_TOKEN to the token that serve prints, or to one that \"rolecall token create\" printed for its configuration\n"},
		{server.URL, "route_not_found", "task list", 1, "rolecall: the process that serves the organization does not know this request: it is of another version of rolecall\n"},
		{server.URL, "method_not_allowed", "task list", 1, "it is of another version of rolecall\n"},
		{server.URL, "insufficient_permissions", "task list", 1, "; the token in ROLECALL_TOKEN acts in a role: use the token of an operator\n"},
		{server.URL, "unauthenticated", "task list", 1, "; check that the configuration lists the token in ROLECALL_TOKEN and that it has not expired\n"},
		{server.URL, "", "backup b", 2, "rolecall: a backup is never sent over a network, and ROLECALL_URL is " + server.URL + "; make it on the machine of the organization, without the variable\n"},
	} {
		status, _, stderr := runWith(t.Context(), map[string]string{urlVariable: test.url, tokenVariable: test.token}, strings.Fields(test.args)...)
		if status != test.status || !strings.HasSuffix(stderr, test.output) {
			t.Errorf("%s %s: status %d, want %d with %q: %q", test.url, test.token, status, test.status, test.output, stderr)
		}
	}
}

// The files that a command line names are named once.
func TestRun_MissingFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range [][]string{{"restore", none}, {"migrate", none}, {"demo", "--input", none}, {"check", "-f", none}, {"run", "-f", none, "x"}} {
		status, _, stderr := runCommand(t, dir, args...)
		if want := "rolecall: " + none + ": no such file or directory\n"; status != 2 || stderr != want {
			t.Errorf("%v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

// A command that a signal ends says so.
func TestRun_NamesSignal(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"task", "list"}, {"role", "create", "b"}, {"backup", filepath.Join(dir, "b")}} {
		status, _, stderr := runWith(ctx, nil, append(args, "--data", dir)...)
		if want := "rolecall: stopped by a signal before the command was done\n"; status != 1 || stderr != want {
			t.Errorf("%v: status %d, %q, want %q", args, status, stderr, want)
		}
	}
}

// Many errors of a configuration are folded; check prints them all on request.
func TestRun_FoldsConfigurationErrors(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for n := range 22 {
		fmt.Fprintf(&text, "{kind: role, name: r%d, toolGroups: [nonesuch]}\n---\n", n)
	}
	file := filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		errors int
		output string
	}{
		{[]string{"check", "-f", file}, 10, `and 12 more; "rolecall check --all -f ` + file + `" shows them` + "\n"},
		{[]string{"run", "-f", file, "x"}, 10, "and 12 more; "},
		{[]string{"role", "list", "-f", file}, 10, "and 12 more; "},
		{[]string{"check", "-f", file, "--all"}, 22, ""},
		{[]string{"check", "-f", file, "--json"}, 22, ""},
	} {
		status, stdout, stderr := runCommand(t, filepath.Join(dir, "data"), test.args...)
		if got := strings.Count(stdout+stderr, "unknown tool group nonesuch"); status != 2 || got != test.errors || !strings.Contains(stderr, test.output) || test.output == "" && strings.Contains(stderr, " more") {
			t.Errorf("%v: status %d, %d errors, want %d with %q:\n%s%s", test.args, status, got, test.errors, test.output, stdout, stderr)
		}
	}
}

// Unknown names get a suggestion, also where only the beginning of --help is read.
func TestRun_SuggestsNames(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "analyst", "--use", "workspace")
	_, _ = runTask(t, dir, "text")
	for _, test := range []struct {
		args   string
		status int
		output string
	}{
		{"rol list", 2, `unknown command "rolecall rol"; did you mean "role"? "rolecall --help" lists the commands`},
		{"role lst", 2, `unknown command "rolecall role lst"; did you mean "list"? `},
		{"role lst --help", 2, `unknown command "rolecall role lst"; did you mean "list"? `},
		{"rol --help", 2, `unknown command "rolecall rol"; did you mean "role"? `},
		{"role bogus -h", 2, `unknown command "rolecall role bogus"; "rolecall role --help"`},
		{"help role lst", 2, `did you mean "list"?`},
		{"role list --jsn", 2, `unknown flag --jsn; did you mean "--json"? "rolecall role list --help" shows the flags`},
		{"role list -json", 2, `unknown flag -j; did you mean "--json"?`},
		{"role list -x", 2, `unknown flag -x; "rolecall role list --help"`},
		{"role list --colour", 2, `unknown flag --colour; "rolecall`},
		{"role show analist", 1, `there is no role "analist"; did you mean "analyst"?`},
		{"role update analist --prompt x", 1, `did you mean "analyst"?`},
		{"role delete analist", 1, `did you mean "analyst"?`},
		{"can --role analist read_file", 1, `denied: role_not_found: tool read_file is not available: there is no role "analist"; did you mean "analyst"?`},
		{"mcp --role analist", 1, `did you mean "analyst"?`},
		{"can --role analyst raed_file", 1, `denied: unknown_tool: there is no tool raed_file; did you mean "read_file"?`},
		{"can --who raed_file", 1, `did you mean "read_file"?`},
		{"can --role analyst read_file --group workspac", 1, `denied: group_not_found: tool read_file is not available: there is no tool group "workspac"; did you mean "workspace"?`},
		{"can --who read_file --group workspac", 1, `did you mean "workspace"?`},
		{"tool show raed_file", 1, `there is no tool raed_file; did you mean "read_file"?`},
		{"tool list --group workspac", 1, `did you mean "workspace"?`},
		{"group show workspac", 1, `there is no tool group "workspac"; did you mean "workspace"?`},
		{"can analyst read_file", 2, `(arguments given: 2); name a role with --role, as in "rolecall can --role analyst read_file"`},
	} {
		status, stdout, stderr := runCommand(t, dir, strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(stdout+stderr, test.output) {
			t.Errorf("%s: status %d, want %d with %q:\n%s%s", test.args, status, test.status, test.output, stdout, stderr)
		}
	}
}

func TestRun_VersionFlag(t *testing.T) {
	dir := t.TempDir()
	for _, more := range [][]string{nil, {"--json"}} {
		if flag, command := mustRun(t, dir, append([]string{"--version"}, more...)...), mustRun(t, dir, append([]string{"version"}, more...)...); flag != command || flag == "" {
			t.Errorf("--version %v prints %q, version prints %q", more, flag, command)
		}
	}
}

// No character is escaped for HTML in what commands print.
func TestPrint_EscapesNothingForHTML(t *testing.T) {
	const text = `a < b && "c" > d \u003c`
	var out bytes.Buffer
	if err := printJSON(&out, map[string]string{"text": text}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"text\": \"a < b && \\\"c\\\" > d \\\\u003c\"\n}\n"; out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	out.Reset()
	if err := printJSONLine(&out, client.Task{Text: "<&>"}); err != nil || !strings.Contains(out.String(), `"text":"<&>"`) {
		t.Errorf("got %s, %v", out.String(), err)
	}
	if got := payloadText([]byte(`{"path":"\u003ca\u003e"}`), 60); got != `{"path":"<a>"}` {
		t.Errorf("got %s", got)
	}
	if got := resultText([]byte(`{"a":"\u0026"}`)); got != `{"a":"&"}` {
		t.Errorf("got %s", got)
	}
}

// A file in the place of a directory is named once, without the system call.
func TestRun_FileForDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{file, filepath.Join(file, "x")} {
		for _, args := range [][]string{{"task", "list"}, {"role", "create", "a"}, {"run", "x"}} {
			status, _, stderr := runCommand(t, data, args...)
			if want := "rolecall: --data " + data + " is not a directory\n"; status != 2 || stderr != want {
				t.Errorf("%v: status %d, %q, want %q", args, status, stderr, want)
			}
		}
	}
	mustRun(t, dir, "role", "create", "a")
	for _, test := range []struct {
		args   []string
		status int
		output string
	}{
		{[]string{"demo", "--data", file}, 1, "create the data directory of the demo: " + file + ": not a directory; use --data DIR for another directory\n"},
		{[]string{"backup", "--data", dir, filepath.Join(dir, "none", "b")}, 2, "there is no directory " + filepath.Join(dir, "none") + " for the backup\n"},
	} {
		status, _, stderr := runWith(t.Context(), nil, test.args...)
		if status != test.status || stderr != "rolecall: "+test.output {
			t.Errorf("%v: status %d, %q, want %q", test.args, status, stderr, test.output)
		}
	}
}
