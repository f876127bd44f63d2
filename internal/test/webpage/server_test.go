package webpage_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/testbinary"
)

func TestMain(m *testing.M) {
	status := testbinary.RunTests(m)
	stopChromium()
	os.Exit(status)
}

// organization has two operators, a caller, and fay, who approves what payers write. All agents
// run agents.js.
const organization = `
kind: organization
name: test
model: script
limits: {agents: 20000, hires: 10000, rounds: 10000, requests: 100000}
---
kind: model
name: script
type: script
file: agents.js
---
kind: role
name: clerk
toolGroups: [workspace]
---
kind: role
name: reader
toolGroups: [workspace]
tasks: {as: clerk}
---
kind: role
name: payer
toolGroups: [workspace]
approval:
  - tools: [write_file]
    from: {any: [{role: finance}]}
---
kind: role
name: keeper
toolGroups: [artifact, workspace]
---
kind: role
name: finance
toolGroups: []
---
kind: gateway
name: api
tokens:
  - {name: ann, operator: true, sha256: %s}
  - {name: bob, operator: true, sha256: %s}
  - {name: eve, role: reader, sha256: %s}
  - {name: fay, role: finance, sha256: %s}
`

// tokenOf returns the token of a user in these tests.
func tokenOf(user string) string { return "rc_token-of-" + user }

func digest(user string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(tokenOf(user)))) }

// server is a process of rolecall serve, on one address through all its restarts.
type server struct {
	dir, url, addr string
	binary         func() (string, error) // builds the program
	cmd            *exec.Cmd
	output         *buffer.SyncBuffer
	done           chan struct{}
}

// listening matches the line that serve prints when it serves HTTP.
var listening = regexp.MustCompile(`serving http://127\.0\.0\.1:\d+`)

// startServer serves the organization of these tests, and more documents of a configuration,
// until the end of the test.
func startServer(t *testing.T, more ...string) *server {
	t.Helper()
	return startServerOf(t, testbinary.BinaryPath, more...)
}

// startServerOf does the same with another program.
func startServerOf(t *testing.T, binary func() (string, error), more ...string) *server {
	t.Helper()
	external.Skip(t, "a browser")
	s := &server{dir: t.TempDir(), addr: freeAddress(t), binary: binary}
	s.url = "http://" + s.addr
	script, err := os.ReadFile("agents.js")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(organization, digest("ann"), digest("bob"), digest("eve"), digest("fay")) + strings.Join(more, "")
	for name, content := range map[string]string{"organization.yaml": text, "agents.js": string(script)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.start(t)
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("output of rolecall serve:\n%s", s.output)
		}
	})
	return s
}

// freeAddress returns an address of loopback that was free.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts the process and waits until it serves.
func (s *server) start(t *testing.T) {
	t.Helper()
	binary, err := s.binary()
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, os.Getenv("PATH"), binary)
}

// run starts a program, after the command of which serve follows, and waits until it serves.
func (s *server) run(t *testing.T, path string, command ...string) {
	t.Helper()
	command = append(command, "serve", "-f", "organization.yaml", "--data", "data", "--addr", s.addr)
	s.cmd = exec.Command(command[0], command[1:]...) // no context: the server outlives the test's
	s.cmd.Dir, s.cmd.Env = s.dir, []string{"HOME=" + s.dir, "PATH=" + path}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.output, s.done = &buffer.SyncBuffer{}, make(chan struct{})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(s.output, lines.Text())
		if listening.MatchString(lines.Text()) {
			go func() { defer close(s.done); io.Copy(s.output, stderr) }()
			return
		}
	}
	t.Fatalf("rolecall serve ended before it served:\n%s", s.output)
}

// kill ends the process as kill -9 does.
func (s *server) kill() {
	s.cmd.Process.Kill()
	<-s.done
	s.cmd.Wait()
}

// send sends a request as a user, which must succeed, and returns the answer.
func (s *server) send(t *testing.T, user, method, path, body string) string {
	t.Helper()
	text, status := s.trySend(t, user, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: status %d\n%s", method, path, status, text)
	}
	return text
}

// trySend sends a request as a user and returns the answer with its status.
func (s *server) trySend(t *testing.T, user, method, path, body string) (text string, status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+tokenOf(user))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer), response.StatusCode
}
