//go:build llm

package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// roleTools are the tools that each role of any-model may call. The test does not ask
// the runtime for them, because it tests the runtime.
var roleTools = map[string][]string{
	"root":     {"find_role_by_name", "create_role", "spawn_agent", "spawn_agent_with_task", "terminate_agent", "send_message"},
	"analyst":  {"read_file", "write_file", "list_files", "get_workspace_info"},
	"reporter": {"console_print"},
}

// A model this small understands little and hallucinates. The organization must still
// end, and no call outside an agent's role may be allowed.
func TestSmallModel_StaysWithinRoles(t *testing.T) {
	url := startLlama(t)
	for _, c := range []struct {
		name  string
		edits map[string]string
	}{
		{"model of root, analyst and reporter", map[string]string{"model: script": "model: local"}},
		{"model of analyst and reporter, script for root", map[string]string{
			"toolGroups: [workspace]": "toolGroups: [workspace]\nmodel: local",
			"toolGroups: [console]":   "toolGroups: [console]\nmodel: local",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fx := newFixture(t, "any-model", []string{"orders.txt"}, c.edits)
			orders := readFile(t, fx.path("work", "orders.txt"))
			o := fx.run(t, []string{"LOCAL_BASE_URL=" + url + "/v1"}, "--json", "--timeout", "15m",
				"--group", "org_management", "--group", "workspace", "--group", "console", question)
			events := o.events(t)
			t.Logf("events:\n%s", o.summary(events))
			checkEnded(t, o, events)
			checkPermissions(t, events)
			if !slices.ContainsFunc(events, allowed("write_file")) {
				if now := readFile(t, fx.path("work", "orders.txt")); now != orders || listFiles(t, fx.path("work")) != "orders.txt" {
					t.Errorf("no agent wrote a file, and the workspace contains %s and %q", listFiles(t, fx.path("work")), now)
				}
			}
		})
	}
}

// checkEnded checks that the task is done, or failed with a reason.
func checkEnded(t *testing.T, o outcome, events []event) {
	t.Helper()
	last := events[len(events)-1]
	switch {
	case last.Type != "result":
		t.Errorf("the last event is %s; stderr:\n%s", last.Type, o.stderr)
	case last.Status == "done" && o.status == 0:
	case last.Status == "failed" && o.status == 1 && last.Code != "" && last.Error != "":
	default:
		t.Errorf("the task is %s (%s: %s) and the status %d", last.Status, last.Code, last.Error, o.status)
	}
}

// checkPermissions checks that no call outside the agent's role was allowed. Roles
// that the model created itself may call what the task may.
func checkPermissions(t *testing.T, events []event) {
	t.Helper()
	all := slices.Concat(roleTools["root"], roleTools["analyst"], roleTools["reporter"])
	calls := 0
	for _, e := range events {
		if e.Type != "tool_call" {
			continue
		}
		calls++
		tools, declared := roleTools[e.Role]
		if !declared {
			tools = all
		}
		if e.Decision == "allowed" && !slices.Contains(tools, e.Tool) || e.Decision != "allowed" && e.Decision != "denied" {
			t.Errorf("%s called %s: %s", e.Role, e.Tool, e.Decision)
		}
	}
	if calls == 0 {
		t.Error("the model called no tool: nothing was tested")
	}
}

func allowed(tool string) func(event) bool {
	return func(e event) bool { return e.Type == "tool_call" && e.Tool == tool && e.Decision == "allowed" }
}

// summary formats calls and outcome for the test log.
func (o outcome) summary(events []event) string {
	var b strings.Builder
	b.WriteString(o.stderr)
	for _, e := range events {
		if e.Type == "tool_call" {
			fmt.Fprintf(&b, "%s %s %.200s: %s %s\n", e.Role, e.Tool, e.Args, e.Decision, e.Code)
		}
	}
	last := events[len(events)-1]
	fmt.Fprintf(&b, "%s %s %s %.500s", last.Status, last.Code, last.Error, last.Result)
	return b.String()
}

// modelEnv names a model to use instead of the installed one.
const modelEnv = "ROLECALL_LLM_MODEL"

// modelPath returns the file of the model.
func modelPath() string { return cmp.Or(os.Getenv(modelEnv), ".venv/model.gguf") }

// startLlama serves the small model and returns its URL.
func startLlama(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(".venv/ready"); err != nil {
		t.Fatalf("llama.cpp is not installed (%v): run make test-llm", err)
	}
	const both = `exec "$@" 2>&1` // the server logs to stderr
	cmd := exec.Command("sh", "-c", both, "sh", ".venv/bin/llama-server", "--model", modelPath(), "--host", "127.0.0.1", "--port", "0",
		"--jinja", "--chat-template-file", "llm.jinja", "--ctx-size", "8192", "--parallel", "1", "--threads", "2", "--temp", "0.3", "--seed", "7")
	cmd.Env = append(os.Environ(), "OMP_WAIT_POLICY=passive") // a thread that waits leaves its core to the others
	var url string
	startProgram(t, cmd, func(line string) bool {
		url = address.FindString(line)
		return url != ""
	})
	return url
}
