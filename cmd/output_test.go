package cmd

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// brokenWriter is a full disk.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// No command reports success if its output was lost.
func TestRun_FailsIfOutputIsLost(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	file := filepath.Join(dir, "org.yaml")
	for _, args := range []string{
		"", "--help", "help run", "run --help", "completion bash", "version", "version --json", "log", "log --json", "task list", "agent tree", "agent transcript root", "task show last",
		"role list --json", "tool list", "group list", "can --role clerk", "check -f " + file, "check --online -f " + file, "token create ci --role r", "token list -f " + file, "artifact list", "tool show read_file",
	} {
		var stderr bytes.Buffer
		c := &common{launcher: launcher, in: strings.NewReader(""), out: brokenWriter{}, err: &stderr, env: func(string) (string, bool) { return "", false }}
		status := run(t.Context(), c, append(strings.Fields(args), "--data", dir))
		if status != 1 || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%s: status %d, %s", args, status, stderr.String())
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}
