package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
)

// waits is an organization whose root agent answers the task "text" and waits for ever
// in any other.
const waits = `{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: script, file: agents.js}
`

const waitsScript = `role("root", function* (task) {
  if (task.payload.text === "text") return "plain";
  yield call("send_message", { to: "root", payload: 1, delayMs: 600000 });
  yield receive();
});`

// runTask runs a task of the organization waits and returns its id and stderr.
func runTask(t *testing.T, dir string, args ...string) (id, stderr string) {
	t.Helper()
	file := filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{file: waits, filepath.Join(dir, "agents.js"): waitsScript} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, stderr = runCommand(t, dir, append([]string{"run", "-f", file}, args...)...)
	id, _, found := strings.Cut(strings.TrimPrefix(stderr, "task "), "\n")
	if !found {
		t.Fatalf("no task in %s", stderr)
	}
	return id, stderr
}

func TestTaskCancel_RejectsEndedTask(t *testing.T) {
	dir := t.TempDir()
	done, _ := runTask(t, dir, "text")
	cancelled, _ := runTask(t, dir, "--timeout", "1ms", "wait")
	for id, state := range map[string]string{done: "done", cancelled: "cancelled"} {
		status, stdout, stderr := runCommand(t, dir, "task", "cancel", id, "--reason", "late")
		if want := "rolecall: cancel task " + id + ": the task has ended (" + state + ")\n"; status != 1 || stdout != "" || stderr != want {
			t.Errorf("status %d, %q, %q, want %q", status, stdout, stderr, want)
		}
	}
}

// The error of a cancelled task says once that it was cancelled.
func TestRun_CancelledTaskIsNamedOnce(t *testing.T) {
	dir := t.TempDir()
	id, stderr := runTask(t, dir, "--timeout", "1ms", "wait")
	if want := "rolecall: task_cancelled: timeout of 1ms exceeded\n"; !strings.HasSuffix(stderr, want) {
		t.Errorf("got %q, want %q at the end", stderr, want)
	}
	if shown := mustRun(t, dir, "task", "show", id); !strings.Contains(shown, "task_cancelled: timeout of 1ms exceeded\n") {
		t.Errorf("task show prints\n%s", shown)
	}
}

// task show counts the calls and denials of a task and of each of its agents.
func TestTaskShow_CountsCalls(t *testing.T) {
	dir := t.TempDir()
	id := runDenied(t, dir)
	shown := mustRun(t, dir, "task", "show", id)
	for _, want := range []string{`(?m)^calls    2, 1 denied$`, `(?m)^elapsed  [0-9.]+m?s$`, `(?m)^NAME  AGENT  +STATUS    CALLS  DENIED  TOKENS  COST$`, `(?m)^root  [0-9a-f-]{36}  finished  2      1       -       -$`} {
		if !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("no %s in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "MODEL") {
		t.Errorf("a script is shown as a language model:\n%s", shown)
	}
	var task client.Task
	if err := json.Unmarshal([]byte(mustRun(t, dir, "task", "show", id, "--json")), &task); err != nil {
		t.Fatal(err)
	}
	want := wire.CallCounts{Total: 2, Denied: 1}
	if task.Calls != want || len(task.Agents) != 1 || task.Agents[0].Calls != want || task.Agents[0].ID != task.Agent || task.Elapsed <= 0 || task.ByModel != nil {
		t.Errorf("got %+v", task)
	}
}
