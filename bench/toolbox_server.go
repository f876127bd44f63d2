package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// toolServer is a program that serves declared tools from a file that all of them
// read.
type toolServer struct {
	name     string
	argv     func(file, data, address string) []string
	basePath string    // path prefix of its API
	stderr   io.Writer // nil discards
}

// newToolServers returns rolecall and, if it can be installed, MCP Toolbox.
func newToolServers(dir string) ([]toolServer, error) {
	program := must(buildRolecall(dir))
	list := []toolServer{{name: "rolecall", basePath: "/roles/reader", argv: func(file, data, address string) []string {
		return []string{program, "serve", "--json", "-f", file, "-f", "peers/toolbox/reader.yaml", "--data", data, "--addr", address}
	}}}
	peer, err := installToolbox()
	if err != nil {
		return list, err
	}
	return append(list, toolServer{name: "MCP Toolbox 1.12.0", argv: func(file, _, address string) []string {
		_, port, _ := net.SplitHostPort(address)
		return []string{peer, "--config", file, "--port", port, "--enable-api", "--log-level", "ERROR", "--disable-version-check"}
	}}), nil
}

// buildRolecall builds the program in a directory and returns its path.
func buildRolecall(dir string) (string, error) {
	program := must(filepath.Abs(filepath.Join(dir, "rolecall.bin")))
	build := exec.Command("go", "build", "-C", "..", "-o", program, "./cmd/rolecall")
	build.Stderr = os.Stderr
	return program, build.Run()
}

// installToolbox installs MCP Toolbox below peers/toolbox, once.
func installToolbox() (string, error) {
	path := must(filepath.Abs("peers/toolbox/node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox"))
	if _, err := os.Stat(path); err != nil {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		install.Dir = "peers/toolbox"
		if out, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci in bench/peers/toolbox: %w: %s", err, out)
		}
	}
	return path, os.Chmod(path, 0o755)
}

// runningServer is a running toolServer.
type runningServer struct {
	toolServer
	cmd   *exec.Cmd
	url   string
	token string
	ready time.Duration
}

// start starts the program on a new data directory and returns when it answers.
func (s toolServer) start(dir, file string) (*runningServer, error) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	address := l.Addr().String()
	must(0, l.Close())
	argv := s.argv(file, must(os.MkdirTemp(dir, "data-")), address)
	r := &runningServer{toolServer: s, cmd: exec.Command(argv[0], argv[1:]...), url: "http://" + address}
	r.cmd.Stderr = s.stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // so that it never outlives this process
	out := must(r.cmd.StdoutPipe())
	start := time.Now()
	must(0, r.cmd.Start())
	shown := make(chan string, 1)
	go func() {
		var first struct{ Token string }
		_ = json.NewDecoder(out).Decode(&first) // only rolecall prints a token
		shown <- first.Token
		_, _ = io.Copy(io.Discard, out)
	}()
	err := r.waitReady(start)
	if err == nil && s.basePath != "" {
		r.token = <-shown
	}
	return r, err
}

func (r *runningServer) waitReady(start time.Time) error {
	for time.Since(start) < time.Minute {
		got, err := http.Get(r.url + "/healthz")
		if err == nil {
			got.Body.Close()
			r.ready = time.Since(start)
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("%s did not answer within a minute", r.name), r.stop())
}

func (r *runningServer) stop() error {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // the error is that it was killed
	return nil
}

// cpu returns the CPU time that the program has used.
func (r *runningServer) cpu() time.Duration {
	text := must(os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := must(strconv.Atoi(fields[11])) + must(strconv.Atoi(fields[12]))
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory returns the resident memory of the program, in bytes.
func (r *runningServer) memory() int64 { return r.statm(1) }

// filePages returns the part of memory that is pages of files, in bytes. It depends on the
// kernel's cache of the program's file, too.
func (r *runningServer) filePages() int64 { return r.statm(2) }

// statm returns a field of /proc/PID/statm, in bytes.
func (r *runningServer) statm(field int) int64 {
	text := must(os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/statm"))
	return int64(must(strconv.Atoi(strings.Fields(string(text))[field]))) * int64(os.Getpagesize())
}

// request returns a request to a path below the program's base path.
func (r *runningServer) request(method, path, body string, header http.Header) (*http.Request, error) {
	q, err := http.NewRequest(method, r.url+r.basePath+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		q.Header[name] = values
	}
	if r.token != "" {
		q.Header.Set("Authorization", "Bearer "+r.token)
	}
	return q, nil
}

// send returns the body of the answer, whose status must be 200.
func (r *runningServer) send(client *http.Client, method, path, body string, header http.Header) (string, error) {
	q, err := r.request(method, path, body, header)
	if err != nil {
		return "", err
	}
	got, err := client.Do(q)
	if err != nil {
		return "", err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered %s %.300s", r.name, got.Status, text)
	}
	return string(text), err
}
