package cmd

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The usage of a task is printed when it runs, and not when its recording is played.
func TestRun_PrintsUsageOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"well done"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":600}}}`)
	}))
	defer server.Close()
	dir := t.TempDir()
	do := func(want string, args ...string) (out, log string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		c := &common{launcher: launcher, in: strings.NewReader(""), out: &stdout, err: &stderr, env: func(string) (string, bool) { return "", false }}
		if status := run(t.Context(), c, args); status != 0 || !strings.Contains(stdout.String(), want) {
			t.Fatalf("%v: status %d, no %q in\n%s%s", args, status, want, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "{kind: organization, name: o, model: m}\n---\n"
	live := file("live.yaml", head+"{kind: model, name: m, type: openai, model: x, stream: false, prices: {input: 1}, baseURL: "+server.URL+"}")
	data := filepath.Join(dir, "data")
	_, log := do("well done", "run", "-f", live, "--data", data, "begin")
	if !strings.Contains(log, "used 1020 tokens, 20 of them output; cost 0.001000\n") {
		t.Errorf("no usage in:\n%s", log)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(log, "task "), "\n")
	do("tokens   1000 in (600 cached), 20 out\ncost     0.001000\n", "task", "show", "--data", data, id)
	do("MODEL  TOKENS                        COST\nm      1000 in (600 cached), 20 out  0.001000\n", "task", "show", "--data", data, id)
	do("unit     the currency of the configured prices\n", "task", "show", "--data", data, id)
	do(`"usage": {
    "input": 1000,
    "cached": 600,
    "output": 20,
    "costNano": 1000000
  }`, "task", "show", "--json", "--data", data, id)
	euro := file("euro.yaml", head+"{kind: model, name: m, type: openai, model: x, stream: false, prices: {input: 1, currency: EUR}, baseURL: "+server.URL+"}")
	do("well done", "run", "-f", euro, "--data", data, "begin")
	if shown, _ := do("cost     0.001000 EUR\n", "task", "show", "--data", data, "last"); strings.Contains(shown, "unit") {
		t.Errorf("the unit is shown twice:\n%s", shown)
	}
	again := file("again.yaml", head+"{kind: model, name: m, type: replay, file: "+filepath.Join(data, "recordings", id+".jsonl")+"}")
	if _, log := do("well done", "run", "-f", again, "--data", data, "begin"); strings.Contains(log, "used") {
		t.Errorf("a recording uses nothing, got:\n%s", log)
	}
}
