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

// toolServer is a program that serves declared tools, of a file that all
// understand.
type toolServer struct {
	name string
	argv func(file, data, address string) []string
	base string // before the paths of its API
}

// toolServers gives rolecall and, where it can be had, MCP Toolbox.
func toolServers(dir string) ([]toolServer, error) {
	program := made(filepath.Abs(filepath.Join(dir, "rolecall.bin")))
	build := exec.Command("go", "build", "-C", "..", "-o", program, "./cmd/rolecall")
	build.Stderr = os.Stderr
	made(0, build.Run())
	list := []toolServer{{name: "rolecall", base: "/roles/reader", argv: func(file, data, address string) []string {
		return []string{program, "serve", "--json", "-f", file, "-f", "peers/toolbox/reader.yaml", "--data", data, "--addr", address}
	}}}
	peer, err := peerProgram()
	if err != nil {
		return list, err
	}
	return append(list, toolServer{name: "MCP Toolbox 1.12.0", argv: func(file, _, address string) []string {
		_, port, _ := net.SplitHostPort(address)
		return []string{peer, "--config", file, "--port", port, "--enable-api", "--log-level", "ERROR", "--disable-version-check"}
	}}), nil
}

// peerProgram installs MCP Toolbox below peers/toolbox, once.
func peerProgram() (string, error) {
	path := made(filepath.Abs("peers/toolbox/node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox"))
	if _, err := os.Stat(path); err != nil {
		install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
		install.Dir = "peers/toolbox"
		if out, err := install.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm ci in bench/peers/toolbox: %w: %s", err, out)
		}
	}
	return path, os.Chmod(path, 0o755)
}

// servedTools is such a program at work.
type servedTools struct {
	toolServer
	cmd   *exec.Cmd
	url   string
	token string
	ready time.Duration
}

// start starts the program and returns when it answers. What it keeps is in a
// fresh directory.
func (s toolServer) start(dir, file string) (*servedTools, error) {
	l := made(net.Listen("tcp", "127.0.0.1:0"))
	address := l.Addr().String()
	made(0, l.Close())
	argv := s.argv(file, made(os.MkdirTemp(dir, "data-")), address)
	r := &servedTools{toolServer: s, cmd: exec.Command(argv[0], argv[1:]...), url: "http://" + address}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of this process, however it ends
	out := made(r.cmd.StdoutPipe())
	began := time.Now()
	made(0, r.cmd.Start())
	shown := make(chan string, 1)
	go func() {
		var first struct{ Token string }
		_ = json.NewDecoder(out).Decode(&first) // of rolecall alone
		shown <- first.Token
		_, _ = io.Copy(io.Discard, out)
	}()
	err := r.await(began)
	if err == nil && s.base != "" {
		r.token = <-shown
	}
	return r, err
}

func (r *servedTools) await(began time.Time) error {
	for time.Since(began) < time.Minute {
		got, err := http.Get(r.url + "/healthz")
		if err == nil {
			got.Body.Close()
			r.ready = time.Since(began)
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("%s did not answer within a minute", r.name), r.stop())
}

func (r *servedTools) stop() error {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // it was killed
	return nil
}

// cpu gives the CPU time that the program has used.
func (r *servedTools) cpu() time.Duration {
	text := made(os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	ticks := made(strconv.Atoi(fields[11])) + made(strconv.Atoi(fields[12]))
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory gives what of the program is in memory, in bytes.
func (r *servedTools) memory() int64 {
	text := made(os.ReadFile("/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/statm"))
	return int64(made(strconv.Atoi(strings.Fields(string(text))[1]))) * int64(os.Getpagesize())
}

// request makes a request to a path below the program's base.
func (r *servedTools) request(method, path, body string, header http.Header) (*http.Request, error) {
	q, err := http.NewRequest(method, r.url+r.base+path, strings.NewReader(body))
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

// send gives the answer to a request, which has to be of status 200.
func (r *servedTools) send(client *http.Client, method, path, body string, header http.Header) (string, error) {
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
