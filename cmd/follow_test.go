package cmd

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// task follow reads the report of a task that has ended once. The report has all agents and
// their usage.
func TestTaskFollow_ReadsReportOnce(t *testing.T) {
	dir := t.TempDir()
	id := runDenied(t, dir)
	s := serveSession(t, filepath.Join(dir, "org.yaml"), dir)
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/tasks/"+id) {
			reads.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	env := map[string]string{urlVariable: server.URL, tokenVariable: s.Tokens.StartupToken()}
	status, stdout, stderr := runIn(t, env, "", "task", "follow", id)
	if status != 0 || stdout != "plain\n" || reads.Load() != 1 {
		t.Errorf("status %d after %d reads: %s%s", status, reads.Load(), stdout, stderr)
	}
}
