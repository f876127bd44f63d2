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

	"github.com/rolecall/rolecall/internal/test/testbinary"
)

// estate is a directory with a configuration of its own and the data of what
// runs there.
type estate struct {
	dirs map[string]string // what lies beside it, by name
	house
	env []string
}

// newEstate writes organization.yaml. Every program of the estate gets env.
func newEstate(t *testing.T, text string, env ...string) estate {
	t.Helper()
	e := estate{house: house{t.TempDir()}, env: env}
	write(t, e.path("organization.yaml"), text)
	return e
}

// command is the program, on the estate's configuration and data.
func (e estate) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := testbinary.BinaryPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, append(args, "--data", e.path("data"))...) // no context: serve ends after the test's
	cmd.Dir = e.dir
	cmd.Env = append([]string{"HOME=" + e.dir, "PATH=" + filepath.Dir(nodePath(t)) + ":" + os.Getenv("PATH")}, e.env...)
	return cmd
}

// rolecall runs the program to its end.
func (e estate) rolecall(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := e.command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must runs the program and wants it to succeed.
func (e estate) must(t *testing.T, args ...string) string {
	t.Helper()
	o := e.rolecall(t, args...)
	if o.status != 0 {
		t.Fatalf("rolecall %s: status %d\n%s%s", strings.Join(args, " "), o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// address finds where serve says that it is.
var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// serve runs rolecall serve on a free port until stop or the end of the test,
// and gives where. Ended by SIGTERM, it has to end well.
func (e estate) serve(t *testing.T) (url string, stop func()) {
	t.Helper()
	cmd := e.command(t, "serve", "-f", e.path("organization.yaml"), "--addr", "127.0.0.1:0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, lines := &log{}, bufio.NewReader(stderr)
	found := await(lines, said, func(line string) bool { url = address.FindString(line); return url != "" })
	rest := make(chan struct{})
	go func() { defer close(rest); io.Copy(said, lines) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(3*patience, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer kill.Stop()
		began := time.Now()
		<-rest
		if took := time.Since(began); took > patience {
			t.Errorf("rolecall serve took %v to end", took)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("rolecall serve ended with %v", err)
		}
		if t.Failed() {
			t.Logf("rolecall serve said:\n%s", tail(said.String()))
		}
	}
	t.Cleanup(stop)
	if !found {
		t.Fatal("rolecall serve ended before it listened")
	}
	return url, stop
}

// tokenOf is the token that the tests give a role; digest is what a
// configuration says of it.
func tokenOf(role string) string { return "token-of-" + role }

func digest(role string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(tokenOf(role)))) }

// sdk is the TypeScript SDK, connected as a client.
type sdk struct {
	in    io.WriteCloser
	lines *bufio.Reader
}

// newSDK connects to the endpoint with a token until the test ends.
func newSDK(t *testing.T, endpoint, token string) *sdk {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), nodePath(t), absolute(t, "mcp", "client.mjs"), endpoint, token)
	c := &sdk{}
	var err error
	if c.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &log{}
	cmd.Stderr, c.lines = said, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.in.Close()
		io.Copy(io.Discard, c.lines)
		cmd.Wait()
		if t.Failed() {
			t.Logf("the SDK said:\n%s", tail(said.String()))
		}
	})
	var ready struct{ Ready bool }
	if line := c.read(t); json.Unmarshal(line, &ready) != nil || !ready.Ready {
		t.Fatalf("no connection: %s", line)
	}
	return c
}

func (c *sdk) read(t *testing.T) []byte {
	t.Helper()
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the SDK ended: %v", err)
	}
	return line
}

// reply is what the SDK says of an order.
type reply struct {
	Result json.RawMessage
	Error  struct {
		Code    int
		Message string
	}
}

// answered is the result of a call.
type answered struct {
	Content           []struct{ Type, Text string }
	StructuredContent json.RawMessage
	IsError           bool
	Progress          []float64
	Cancelled         bool // of cancel
}

// text gives all that a call answered, as one text.
func (a answered) text() string {
	var b strings.Builder
	for _, part := range a.Content {
		b.WriteString(part.Text)
	}
	return b.String()
}

// ask gives the client an order and waits for what it says.
func (c *sdk) ask(t *testing.T, order map[string]any) reply {
	t.Helper()
	c.send(t, order)
	return c.answer(t)
}

func (c *sdk) send(t *testing.T, order map[string]any) {
	t.Helper()
	line, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
}

func (c *sdk) answer(t *testing.T) (r reply) {
	t.Helper()
	line := c.read(t)
	if err := json.Unmarshal(line, &r); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return r
}

// tools lists the names of the tools, sorted.
func (c *sdk) tools(t *testing.T) (names []string) {
	t.Helper()
	r := c.ask(t, map[string]any{"op": "list"})
	if err := json.Unmarshal(r.Result, &names); err != nil {
		t.Fatalf("no list of tools: %+v", r)
	}
	return names
}

// call calls a tool that the client has.
func (c *sdk) call(t *testing.T, name string, args map[string]any) answered {
	t.Helper()
	return c.order(t, "call", name, args)
}

func (c *sdk) order(t *testing.T, op, name string, args map[string]any) (a answered) {
	t.Helper()
	order := map[string]any{"op": op, "name": name}
	if args != nil {
		order["args"] = args
	}
	r := c.ask(t, order)
	if err := json.Unmarshal(r.Result, &a); err != nil {
		t.Fatalf("%s %s: %+v", op, name, r)
	}
	return a
}

// inspect runs the official inspector once against an endpoint.
func inspect(t *testing.T, endpoint, token string, args ...string) outcome {
	t.Helper()
	args = append([]string{"--cli", endpoint, "--transport", "http", "--header", "Authorization: Bearer " + token, "--method"}, args...)
	return script(t, nil, part(t, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), args...)
}

// inspected lists the names of the tools that the inspector sees.
func inspected(t *testing.T, endpoint, token string) []string {
	t.Helper()
	return toolNames(t, inspect(t, endpoint, token, "tools/list"))
}

// toolNames reads what the inspector says of a list.
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
