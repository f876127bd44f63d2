package cmd

import (
	"strings"
	"testing"
)

func TestAgentList_RejectsUnknownTask(t *testing.T) {
	status, stdout, stderr := runCommand(t, t.TempDir(), "agent", "list", "--task", "bogus")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "task_not_found") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}
