package cmd

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Each application in a process has metrics of its own and serves them on its socket.
func TestServeSocket_ServesMetrics(t *testing.T) {
	for _, dir := range []string{t.TempDir(), t.TempDir()} {
		c := &common{launcher: launcher, data: dir, err: &bytes.Buffer{}}
		s, err := openSession(c, &terminal{out: io.Discard}, sessionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.MarkReady()
		stop, err := s.ServeSocket()
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		mustRun(t, dir, "role", "create", "a", "--use", "workspace")
		status, text := getUnix(t, filepath.Join(dir, "rolecall.sock"), "http://x/metrics")
		for _, line := range []string{`agent_tool_group_availability{group="workspace"} 4`, "rolecall_commits_total 1", `rolecall_tasks{status="running"} 0`} {
			if status != http.StatusOK || !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("status %d, without %s:\n%s", status, line, text)
			}
		}
	}
}

// getUnix sends a GET request over a Unix socket.
func getUnix(t *testing.T, socket, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
