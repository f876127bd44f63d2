// Package e2e_test runs the real binary against real parts: a mock server that
// speaks the providers' protocols; the reference servers, the conformance suite,
// the inspector and the TypeScript SDK of the Model Context Protocol; and, with
// the tag llm, a small real model.
//
// The parts are installed by make e2e-deps; without them the tests fail.
package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/testbinary"
)

// The program of the tests is the client of the conformance suite too.
func TestMain(m *testing.M) {
	if turns := os.Getenv(asClient); turns != "" {
		os.Exit(clientMain(turns, os.Args[len(os.Args)-1]))
	}
	os.Exit(testbinary.Main(m))
}

// house is a directory with an organization, the input it works on, and the
// data of its runs.
type house struct{ dir string }

// newHouse copies an example and gives its agents a workspace with the files
// named. Each edit replaces a line of organization.yaml, wherever it stands.
func newHouse(t *testing.T, example string, input []string, edits map[string]string) house {
	t.Helper()
	h := house{t.TempDir()}
	if err := os.CopyFS(h.path("example"), os.DirFS(filepath.Join("..", "..", "..", "examples", example))); err != nil {
		t.Fatal(err)
	}
	for _, name := range input {
		copyFile(t, h.path("example", name), h.path("work", name))
	}
	file := h.path("example", "organization.yaml")
	text := read(t, file)
	for old, line := range edits {
		if !strings.Contains(text, "\n"+old+"\n") {
			t.Fatalf("%s has no line %q", file, old)
		}
		text = strings.ReplaceAll(text, "\n"+old+"\n", "\n"+line+"\n")
	}
	write(t, file, text)
	return h
}

func (h house) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

// outcome is what a run left.
type outcome struct {
	status int
	stdout string
	stderr string
}

// run gives the organization a task, from no more environment than env.
func (h house) run(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	binary, err := testbinary.BinaryPath()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"run", "-f", h.path("example"), "--data", h.path("data"), "--workspace", h.path("work")}, args...)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append([]string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH")}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// event is a line of run --json, as far as these tests read it.
type event struct {
	Type     string          `json:"type"`
	Agent    string          `json:"agent"`
	Role     string          `json:"role"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"`
	Group    string          `json:"group"`
	Decision string          `json:"decision"`
	Code     string          `json:"code"`
	Message  json.RawMessage `json:"message"`
	Status   string          `json:"status"`
	Error    string          `json:"error"`
	Result   json.RawMessage `json:"result"`
}

// events reads the lines of run --json.
func (o outcome) events(t *testing.T) []event {
	t.Helper()
	var all []event
	for line := range strings.Lines(o.stdout) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a line that is no event: %v\n%s", err, line)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		t.Fatalf("no event; stderr:\n%s", o.stderr)
	}
	return all
}

// decisions gives what the gate said, a call a line.
func decisions(events []event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == "tool_call" {
			fmt.Fprintln(&b, e.Role, e.Tool, e.Decision, e.Code)
		}
	}
	return b.String()
}

// result gives what the last event says.
func result(t *testing.T, events []event) (status, text string) {
	t.Helper()
	last := events[len(events)-1]
	if last.Type != "result" {
		t.Fatalf("the last event is %s", last.Type)
	}
	if err := json.Unmarshal(last.Result, &text); err != nil && last.Result != nil {
		text = string(last.Result)
	}
	return last.Status, text
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	write(t, to, read(t, from))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
