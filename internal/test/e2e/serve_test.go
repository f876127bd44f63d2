package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/testbinary"
)

// serveFixture is a directory with a configuration and the data of the processes that
// run there.
type serveFixture struct {
	paths map[string]string // paths outside the directory, by name
	fixture
	env    []string
	binary string // path of the program; "" is rolecall
}

// newServeFixture writes organization.yaml. Every process of the fixture gets env.
func newServeFixture(t *testing.T, text string, env ...string) serveFixture {
	t.Helper()
	fx := serveFixture{fixture: fixture{t.TempDir()}, env: env}
	writeFile(t, fx.path("organization.yaml"), text)
	return fx
}

// command returns the program on the fixture's configuration and data.
func (fx serveFixture) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary := fx.binary
	if binary == "" {
		binary = commandPath(t, "github.com/rolecall/rolecall/cmd/rolecall")
	}
	cmd := exec.Command(binary, append(args, "--data", fx.path("data"))...) // no context: serve stops after the test's context
	cmd.Dir = fx.dir
	cmd.Env = append([]string{"HOME=" + fx.dir, "PATH=" + filepath.Dir(nodePath(t)) + ":" + os.Getenv("PATH")}, fx.env...)
	return cmd
}

// commandPath builds the command of a package and returns its path.
func commandPath(t *testing.T, pkg string) string {
	t.Helper()
	file, err := testbinary.CommandPath(pkg)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// runProgram runs the program to its end.
func (fx serveFixture) runProgram(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := fx.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// mustRun runs the program, which must succeed, and returns its stdout.
func (fx serveFixture) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	o := fx.runProgram(t, args...)
	if o.status != 0 {
		t.Fatalf("rolecall %s: status %d\n%s%s", strings.Join(args, " "), o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// address matches the URL that serve prints.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve runs rolecall serve on a free port until stop or the end of the test, and
// returns its URL. The process must exit with status 0 on SIGTERM.
func (fx serveFixture) serve(t *testing.T, flags ...string) (url string, stop func()) {
	t.Helper()
	cmd := fx.command(t, append([]string{"serve", "-f", fx.path("organization.yaml"), "--addr", "127.0.0.1:0"}, flags...)...)
	cmd.SysProcAttr = ownGroup()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output, lines := &buffer.SyncBuffer{}, bufio.NewReader(stderr)
	found := readUntil(lines, output, func(line string) bool { url = address.FindString(line); return url != "" })
	rest := make(chan struct{})
	go func() { defer close(rest); io.Copy(output, lines) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(3*exitTimeout, func() { killGroup(cmd) })
		defer kill.Stop()
		start := time.Now()
		<-rest
		if took := time.Since(start); took > exitTimeout {
			t.Errorf("rolecall serve took %v to end", took)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("rolecall serve ended with %v", err)
		}
		if t.Failed() {
			t.Logf("output of rolecall serve:\n%s", lastOutput(output.String()))
		}
	}
	t.Cleanup(stop)
	if !found {
		t.Fatal("rolecall serve ended before it listened")
	}
	return url, stop
}

// tokenOf returns the token of a role in these tests.
func tokenOf(role string) string { return "token-of-" + role }

// digest returns the hash of a role's token for a configuration.
func digest(role string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(tokenOf(role)))) }

// sdkClient is a running TypeScript SDK client. It reads operations as JSON lines.
type sdkClient struct {
	in    io.WriteCloser
	lines *bufio.Reader
}

// newSDK connects to the endpoint with a token until the test ends.
func newSDK(t *testing.T, endpoint, token string) *sdkClient {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), nodePath(t), absPath(t, "mcp", "client.mjs"), endpoint, token)
	c := &sdkClient{}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	output := &buffer.SyncBuffer{}
	cmd.Stderr, c.lines = output, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		io.Copy(io.Discard, c.lines)
		cmd.Wait()
		if t.Failed() {
			t.Logf("output of the SDK:\n%s", lastOutput(output.String()))
		}
	})
	var ready struct{ Ready bool }
	if line := c.readLine(t); json.Unmarshal(line, &ready) != nil || !ready.Ready {
		t.Fatalf("connect: %s", line)
	}
	return c
}

func (c *sdkClient) readLine(t *testing.T) []byte {
	t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the SDK ended: %v", err)
	}
	return line
}

// reply is the SDK's answer to an operation.
type reply struct {
	Result json.RawMessage
	Error  struct {
		Code    int
		Message string
	}
}

// callResult is the result of a call.
type callResult struct {
	Content           []struct{ Type, Text string }
	StructuredContent json.RawMessage
	IsError           bool
	Progress          []float64
	Cancelled         bool // set by the operation cancel
}

// text returns the concatenated text contents.
func (a callResult) text() string {
	var b strings.Builder
	for _, part := range a.Content {
		b.WriteString(part.Text)
	}
	return b.String()
}

// request sends an operation and waits for the reply.
func (c *sdkClient) request(t *testing.T, op map[string]any) reply {
	t.Helper()
	c.send(t, op)
	return c.answer(t)
}

func (c *sdkClient) send(t *testing.T, op map[string]any) {
	t.Helper()
	line, err := json.Marshal(op)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

func (c *sdkClient) answer(t *testing.T) (r reply) {
	t.Helper()
	line := c.readLine(t)
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return r
}

// tools returns the names of the tools, sorted.
func (c *sdkClient) tools(t *testing.T) (names []string) {
	t.Helper()
	r := c.request(t, map[string]any{"op": "list"})
	if err := json.Unmarshal(r.Result, &names); err != nil {
		t.Fatalf("decode the list of tools: %+v", r)
	}
	return names
}

// call calls a tool.
func (c *sdkClient) call(t *testing.T, name string, args map[string]any) callResult {
	t.Helper()
	return c.callOp(t, "call", name, args)
}

func (c *sdkClient) callOp(t *testing.T, op, name string, args map[string]any) (a callResult) {
	t.Helper()
	order := map[string]any{"op": op, "name": name}
	if args != nil {
		order["args"] = args
	}
	r := c.request(t, order)
	if err := json.Unmarshal(r.Result, &a); err != nil {
		t.Fatalf("%s %s: %+v", op, name, r)
	}
	return a
}

// runInspector runs the official inspector once against an endpoint.
func runInspector(t *testing.T, endpoint, token string, args ...string) outcome {
	t.Helper()
	args = append([]string{"--cli", endpoint, "--transport", "http", "--header", "Authorization: Bearer " + token, "--method"}, args...)
	return runScript(t, nil, nodeModule(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), args...)
}

// inspectorTools returns the names of the tools that the inspector lists.
func inspectorTools(t *testing.T, endpoint, token string) []string {
	t.Helper()
	return toolNames(t, runInspector(t, endpoint, token, "tools/list"))
}

// toolNames reads the names from the inspector's output.
func toolNames(t *testing.T, o outcome) []string {
	t.Helper()
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(o.stdout), &list); o.status != 0 || err != nil {
		t.Fatalf("status %d, %v:\n%s%s", o.status, err, o.stdout, o.stderr)
	}
	names := make([]string, len(list.Tools))
	for i, tool := range list.Tools {
		names[i] = tool.Name
	}
	return names
}
