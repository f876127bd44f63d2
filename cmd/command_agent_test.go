package cmd

import (
	"strings"
	"testing"
)

func TestAgentList_RejectsUnknownTask(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "role", "create", "a")
	if status, stdout, stderr := runCommand(t, dir, "agent", "tree"); status != 0 || stdout != "" || stderr != "there is no agent yet\n" {
		t.Errorf("an empty tree: status %d, %q, %q", status, stdout, stderr)
	}
	status, stdout, stderr := runCommand(t, dir, "agent", "list", "--task", "bogus")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "task_not_found") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}
