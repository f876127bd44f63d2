package cmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

// lineSteps is a writer that takes what a command prints, for a test that waits for a line.
type lineSteps struct{ lines chan string }

func (w lineSteps) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w.lines <- strings.TrimSuffix(line, "\n")
	}
	return len(text), nil
}

// want waits for a line that matches, and fails if a line before it matches not.
func (w lineSteps) want(t *testing.T, pattern string, not ...string) {
	t.Helper()
	for {
		var line string
		select {
		case line = <-w.lines:
		case <-t.Context().Done():
			t.Fatalf("no line matches %s", pattern)
		}
		if regexp.MustCompile(pattern).MatchString(line) {
			return
		}
		for _, n := range not {
			if strings.Contains(line, n) {
				t.Fatalf("got %q before %s", line, pattern)
			}
		}
	}
}

// With --watch the list goes on with requests, votes and ends, also after the process that serves
// has restarted, until the command is interrupted.
func TestApprovalList_Watch(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		dir := t.TempDir()
		file := filepath.Join(dir, "org.yaml")
		text := "{kind: role, name: clerk, toolGroups: [workspace], approval: [{tools: [write_file], from: {any: [{role: finance}]}}]}\n---\n{kind: role, name: finance, toolGroups: []}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		call := func(t *testing.T, s *session, user identity.UserName) string {
			t.Helper()
			clerk, _ := s.Runtime.Org().RoleByName("clerk")
			a, err := s.Runtime.InvokeTool(t.Context(), identity.ByCaller(user, clerk.ID), "write_file", json.RawMessage(`{"path":"a","content":"b"}`))
			if err != nil {
				t.Fatal(err)
			}
			return a.Approval()
		}
		// line matches a line about a request.
		line := func(kind, id string) string {
			if asJSON {
				return `^{"type":"` + kind + `".*"id":"` + id
			}
			return `Z  ` + kind + `  ` + id + `  write_file  role clerk`
		}
		out, log := lineSteps{make(chan string, 1000)}, lineSteps{make(chan string, 1000)}
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		var second string
		t.Run("first process", func(t *testing.T) {
			s := serveSession(t, file, dir)
			first := call(t, s, "clara")
			args := []string{"--data", dir, "approval", "list", "--watch"}
			if asJSON {
				args = append(args, "--json")
			}
			c := &common{in: strings.NewReader(""), out: out, err: log, env: func(string) (string, bool) { return "", false }}
			go func() { ended <- run(ctx, c, args) }()
			if asJSON {
				out.want(t, line("waiting", first))
				out.want(t, `"listed"`)
			} else {
				out.want(t, `^ID +TOOL +ROLE +FOR`)
				out.want(t, `^`+first+` +write_file +clerk +clara +0`)
			}
			second = call(t, s, "carl")
			out.want(t, line("requested", second))
			if _, err := s.Runtime.DecideApprovals(t.Context(), identity.ByOperator("ops"), runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{{ID: first, Reason: "no \x1b[31m"}}); err != nil {
				t.Fatal(err)
			}
			out.want(t, line("denied", first), "\x1b")
		})
		log.want(t, connectionLost)
		t.Run("second process", func(t *testing.T) {
			s := serveSession(t, file, dir)
			third := call(t, s, "cora")
			out.want(t, line("(requested|waiting)", third), second)
			interrupt()
			if status := <-ended; status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// Without a process that serves, --watch lists once and says so.
func TestApprovalList_WatchNeedsProcess(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	status, stdout, stderr := runCommand(t, dir, "approval", "list", "--watch")
	if status != 1 || !strings.Contains(stdout, "UNTIL") || !strings.Contains(stderr, "no process serves") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// --decided lists what became of calls. It shows no characters that change a terminal.
func TestApprovalList_Decided(t *testing.T) {
	row := decidedRow(client.DecidedApproval{ID: "1", Tool: "transfer", Role: "clerk", Status: "failed", Code: "tool_execution_failed", Short: "a\x1b[2Jb", By: "user:fay@1"})
	if got := strings.Join(row, "|"); !strings.Contains(got, "1|transfer|clerk|operator|failed tool_execution_failed|user:fay@1|") || strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "reader", "--use", "workspace")
	if got := mustRun(t, dir, "approval", "list", "--decided", "--json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("%q", got)
	}
	if status, _, stderr := runCommand(t, dir, "approval", "list", "--decided", "--watch"); status != 2 {
		t.Errorf("status %d: %s", status, stderr)
	}
}
