// Package e2e_test runs the real binary against real programs. A mock server speaks
// the providers' protocols. The reference servers, the conformance suite, the
// inspector and the TypeScript SDK of the Model Context Protocol take part, and so
// does the client of MCP Toolbox. With the tag llm, a small real model takes part
// too.
//
// make deps installs these programs. Without them the tests fail.
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

	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/testbinary"
)

// TestMain also makes the test program the client of the conformance suite.
func TestMain(m *testing.M) {
	if lockFile := os.Getenv(clientEnv); lockFile != "" {
		os.Exit(clientMain(lockFile, os.Args[len(os.Args)-1]))
	}
	os.Exit(testbinary.RunTests(withServers{m}))
}

// withServers runs the tests and then stops the databases that they started.
type withServers struct{ tests *testing.M }

// Run implements the argument of testbinary.RunTests.
func (s withServers) Run() int { return dbtest.RunTests(s.tests) }

// fixture is a directory with an organization, its input, and the data of its runs.
type fixture struct{ dir string }

// newFixture copies an example and puts the named input files into the agents'
// workspace. Each edit replaces a line of organization.yaml everywhere.
func newFixture(t *testing.T, example string, input []string, edits map[string]string) fixture {
	t.Helper()
	fx := fixture{t.TempDir()}
	if err := os.CopyFS(fx.path("example"), os.DirFS(filepath.Join("..", "..", "..", "examples", example))); err != nil {
		t.Fatal(err)
	}
	for _, name := range input {
		copyFile(t, fx.path("example", name), fx.path("work", name))
	}
	file := fx.path("example", "organization.yaml")
	text := readFile(t, file)
	for old, line := range edits {
		if !strings.Contains(text, "\n"+old+"\n") {
			t.Fatalf("%s has no line %q", file, old)
		}
		text = strings.ReplaceAll(text, "\n"+old+"\n", "\n"+line+"\n")
	}
	writeFile(t, file, text)
	return fx
}

func (fx fixture) path(parts ...string) string {
	return filepath.Join(append([]string{fx.dir}, parts...)...)
}

// outcome is the result of a finished process.
type outcome struct {
	status int
	stdout string
	stderr string
}

// run runs a task with no other environment than env.
func (fx fixture) run(t *testing.T, env []string, args ...string) outcome {
	t.Helper()
	binary, err := testbinary.BinaryPath()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"run", "-f", fx.path("example"), "--data", fx.path("data"), "--workspace", fx.path("work")}, args...)
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append([]string{"HOME=" + fx.dir, "PATH=" + os.Getenv("PATH")}, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// event contains the fields of a line of run --json that these tests read.
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
			t.Fatalf("decode event: %v\n%s", err, line)
		}
		all = append(all, e)
	}
	if len(all) == 0 {
		t.Fatalf("no event; stderr:\n%s", o.stderr)
	}
	return all
}

// decisions formats the gate's decisions, one call per line.
func decisions(events []event) string {
	var b strings.Builder
	for _, e := range events {
		if e.Type == "tool_call" {
			fmt.Fprintln(&b, e.Role, e.Tool, e.Decision, e.Code)
		}
	}
	return b.String()
}

// finalResult returns the status and result of the last event.
func finalResult(t *testing.T, events []event) (status, text string) {
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
	writeFile(t, to, readFile(t, from))
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
