//go:build llm

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What the roles of any-model may call, written down a second time: the
// runtime's own word is what is tested.
var mayCall = map[string][]string{
	"root":     {"find_role_by_name", "create_role", "spawn_agent", "spawn_agent_with_task", "terminate_agent", "send_message"},
	"analyst":  {"read_file", "write_file", "list_files", "get_workspace_info"},
	"reporter": {"console_print"},
}

// A model this small understands little of what it is asked and makes things
// up. The organization comes to its end all the same, and nothing happens that
// a role does not allow.
func TestASmallModelStaysWithinItsRoles(t *testing.T) {
	url := startLlama(t)
	for _, c := range []struct {
		name  string
		edits map[string]string
	}{
		{"root, analyst and reporter think with it", map[string]string{"model: script": "model: local"}},
		{"analyst and reporter think with it, root with the script", map[string]string{
			"toolGroups: [workspace]": "toolGroups: [workspace]\nmodel: local",
			"toolGroups: [console]":   "toolGroups: [console]\nmodel: local",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t, "any-model", []string{"orders.txt"}, c.edits)
			orders := read(t, h.path("work", "orders.txt"))
			o := h.run(t, []string{"LOCAL_BASE_URL=" + url + "/v1"}, "--json", "--timeout", "15m",
				"--group", "org_management", "--group", "workspace", "--group", "console", question)
			events := o.events(t)
			t.Logf("what it did:\n%s", o.told(events))
			mustEnd(t, o, events)
			mustStayWithin(t, events)
			if !slices.ContainsFunc(events, allowed("write_file")) {
				if now := read(t, h.path("work", "orders.txt")); now != orders || list(t, h.path("work")) != "orders.txt" {
					t.Errorf("nobody wrote a file, and the workspace holds %s and %q", list(t, h.path("work")), now)
				}
			}
		})
	}
}

// mustEnd wants a task that is done, or failed with a reason.
func mustEnd(t *testing.T, o outcome, events []event) {
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

// mustStayWithin wants no allowed call that the agent's role does not hold.
// Roles that the model made up itself may call what the task may.
func mustStayWithin(t *testing.T, events []event) {
	t.Helper()
	all := slices.Concat(mayCall["root"], mayCall["analyst"], mayCall["reporter"])
	calls := 0
	for _, e := range events {
		if e.Type != "tool_call" {
			continue
		}
		calls++
		tools, declared := mayCall[e.Role]
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

// told gives calls and outcome, for who reads the log of the test.
func (o outcome) told(events []event) string {
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

// startLlama serves the small model and gives its address.
func startLlama(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(".venv/ready"); err != nil {
		t.Fatalf("llama.cpp is not installed (%v): run make test-llm", err)
	}
	const both = `exec "$@" 2>&1` // it logs to stderr
	cmd := exec.Command("sh", "-c", both, "sh", ".venv/bin/llama-server", "--model", ".venv/model.gguf", "--host", "127.0.0.1", "--port", "0",
		"--jinja", "--chat-template-file", "llm.jinja", "--ctx-size", "8192", "--parallel", "1", "--temp", "0.3", "--seed", "7")
	var url string
	start(t, cmd, func(line string) bool {
		url = address.FindString(line)
		return url != ""
	})
	return url
}
