package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/model/catalog"
)

// modelServer is a server with OpenAI's protocol. Its behaviour is in the name of the model
// that it is asked for.
func modelServer(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		text := string(body)
		switch {
		case r.URL.Path == "/v1/models":
			fmt.Fprint(w, `{"data":[{"id":"full","max_model_len":16384},{"id":"poor"}]}`)
		case r.URL.Path != "/v1/chat/completions":
			w.WriteHeader(http.StatusNotFound)
		case strings.Contains(text, `"model":"broken"`):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, r.Header.Get("Authorization"))
		case strings.Contains(text, `"tools"`) && strings.Contains(text, `"model":"full"`):
			streamed(w, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"remember_word","arguments":"{\"word\":\"blue\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":40,"completion_tokens":9}}`)
		case strings.Contains(text, `"model":"full"`):
			streamed(w, `{"choices":[{"index":0,"delta":{"content":"ready"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1}}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"ready"},"finish_reason":"stop"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// streamed writes events and the end of a stream.
func streamed(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range append(events, "[DONE]") {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
}

// writeConfig writes a configuration and returns its file.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "org.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// modelConfig declares a model of each behaviour.
func modelConfig(t *testing.T, url string) string {
	return writeConfig(t, fmt.Sprintf(`{kind: model, name: full, type: openai, model: full, baseURL: "%[1]s/v1", contextWindow: 32768}
---
{kind: model, name: poor, type: openai, model: poor, baseURL: "%[1]s/v1"}
---
{kind: model, name: broken, type: openai, model: broken, baseURL: "%[1]s/v1", apiKey: "${BROKEN_KEY}"}
---
{kind: model, name: keyless, type: openai, model: full}
---
{kind: model, name: person, type: human}
---
{kind: model, name: whole, type: openai, model: poor, baseURL: "%[1]s/v1", contextWindow: 1000, stream: false}
`, url))
}

func TestModelTest_Reports(t *testing.T) {
	url := modelServer(t).URL
	file := modelConfig(t, url)
	env := map[string]string{"BROKEN_KEY": canary}
	for _, test := range []struct {
		name   string
		status int
		want   string
	}{
		{"full", 0, `model        full (openai, full at URL/v1)
answers      yes, in TIME: ready
streams      yes
calls tools  yes
tokens       50 in, 10 out
window       32768; the server says 16384 (GET /models: max_model_len)
set          contextWindow: 16384   the server accepts no more
`},
		{"poor", 0, `model        poor (openai, poor at URL/v1)
answers      yes, in TIME: ready
streams      no
calls tools  no
tokens       not reported
window       128000; what the server accepts is not known
set          contextWindow: …   128000 is assumed; set what the server is started with
             stream: false   the server sends answers as a whole
             model: …   another model: this one did not call a tool when it was asked to, so its agents can only answer
`},
		{"whole", 0, `model        whole (openai, poor at URL/v1)
answers      yes, in TIME: ready
streams      not asked for: the document has stream: false
calls tools  no
tokens       not reported
window       1000; what the server accepts is not known
set          model: …   another model: this one did not call a tool when it was asked to, so its agents can only answer
`},
		{"broken", 1, `model    broken (openai, broken at URL/v1)
answers  no: model "broken" does not accept its key (status 401): bad key Bearer ***; check apiKey of this model
`},
	} {
		status, stdout, stderr := runIn(t, env, "", "model", "test", "-f", file, test.name)
		got := strings.ReplaceAll(stdout, url, "URL")
		if before, rest, ok := strings.Cut(got, "yes, in "); ok {
			_, after, _ := strings.Cut(rest, ":")
			got = before + "yes, in TIME:" + after
		}
		if diff := cmp.Diff(test.want, got); diff != "" || status != test.status || stderr != "" {
			t.Errorf("%s: status %d, %s (-want +got):\n%s", test.name, status, stderr, diff)
		}
		noCanary(t, "the report", []byte(stdout+stderr))
	}
}

func TestModelTest_InJSON(t *testing.T) {
	file := modelConfig(t, modelServer(t).URL)
	status, stdout, stderr := runIn(t, nil, "", "model", "test", "--json", "-f", file, "full")
	var got modelReport
	if err := json.Unmarshal([]byte(stdout), &got); status != 0 || err != nil {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	if !got.Answers || !got.Streams || !got.Tools || got.Usage.Input != 50 || got.Window != 32768 || got.Server.Tokens != 16384 || len(got.Advice) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestModelReport_ShowsKnownPrices(t *testing.T) {
	var out strings.Builder
	known := config.Prices{Input: 1_250_000_000, Output: 10_000_000_000, Cached: 125_000_000, Currency: "USD", Listed: true}
	if err := newModelReport(config.Model{Prices: known}, app.ModelReport{}).print(&out); err != nil {
		t.Fatal(err)
	}
	if want := "prices       1.250000 in, 10.000000 out, 0.125000 cached, USD for a million tokens, as of " + catalog.FactsDate; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
	known.Listed = false
	if r := newModelReport(config.Model{Prices: known}, app.ModelReport{}); r.Prices != nil {
		t.Errorf("got %+v for prices of a document", r.Prices)
	}
}

func TestModelTest_RejectsUsage(t *testing.T) {
	file := modelConfig(t, "http://127.0.0.1:1")
	for _, test := range []struct {
		output string
		args   []string
	}{
		{"model test needs a configuration: -f FILE", []string{"full"}},
		{`the configuration has no model "ful" (did you mean "full"?)`, []string{"-f", file, "ful"}},
		{"there are: full, poor, broken, keyless, person, whole", []string{"-f", file, "zzzzzzzz"}},
		{`model "person" is of type human, which asks no server`, []string{"-f", file, "person"}},
		{`model "keyless" needs an API key and the variable OPENAI_API_KEY is not set`, []string{"-f", file, "keyless"}},
		{"takes one model name", []string{"-f", file}},
	} {
		if status, stdout, stderr := runIn(t, nil, "", append([]string{"model", "test"}, test.args...)...); status != 2 || stdout != "" || !strings.Contains(stderr, test.output) {
			t.Errorf("%q: status %d, want 2 with %q: %s%s", test.args, status, test.output, stdout, stderr)
		}
	}
}

// onlineConfig declares services that answer, and with bad also services that do not.
func onlineConfig(t *testing.T, url, program string, bad bool) string {
	text := fmt.Sprintf(`{kind: organization, name: o, model: full}
---
{kind: model, name: full, type: openai, model: full, baseURL: "%[1]s/v1"}
---
{kind: model, name: spare, type: openai, model: full}
---
{kind: model, name: script, type: human}
---
{kind: mcpServer, name: echo, command: "%[2]s", env: {%[3]s: echo}}
---
{kind: source, name: memory, type: sqlite, database: ":memory:"}
---
{kind: source, name: service, type: http, baseUrl: "%[1]s"}
---
{kind: network, name: n, privateAddresses: [127.0.0.1/32]}
`, url, program, echoMode)
	if bad {
		text += fmt.Sprintf(`---
{kind: model, name: broken, type: openai, model: broken, baseURL: "%[1]s/v1", apiKey: "${BROKEN_KEY}"}
---
{kind: role, name: r, model: unset}
---
{kind: model, name: unset, type: anthropic, model: m}
---
{kind: mcpServer, name: gone, command: /no/such/program}
---
{kind: source, name: missing, type: sqlite, database: missing.db}
---
{kind: source, name: pg, type: postgres, host: 127.0.0.1, port: 1, user: u, password: "${BROKEN_KEY}", database: d}
---
{kind: source, name: dead, type: http, baseUrl: "http://127.0.0.1:1/x", headers: {X-Key: "${BROKEN_KEY}"}, queryParams: {k: "${BROKEN_KEY}"}}
`, url)
	}
	return writeConfig(t, text)
}

// check --online prints one line for each service, and fails if one does not answer.
func TestCheck_Online(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	url := modelServer(t).URL
	env := map[string]string{"BROKEN_KEY": canary}
	good := onlineConfig(t, url, program, false)
	status, stdout, stderr := runIn(t, env, "", "check", "--online", "-f", good)
	for _, line := range []string{"model full: answers, in ", "model spare: not contacted: not used, and OPENAI_API_KEY is not set\n", "mcpServer echo: answers, in ", "source memory: answers, in ", "source service: answers, in ", "ok: 1 file"} {
		if !strings.Contains("\n"+stdout, "\n"+line) {
			t.Errorf("no line %q in\n%s%s", line, stdout, stderr)
		}
	}
	if n := strings.Count(stdout, "\n"); status != 0 || n != 7 {
		t.Errorf("status %d, %d lines\n%s%s", status, n, stdout, stderr)
	}
	bad := onlineConfig(t, url, program, true)
	status, stdout, stderr = runIn(t, env, "", "check", "--online", "-f", bad)
	for _, line := range []string{
		"model full: answers, in ", "model broken: failed: model \"broken\" does not accept its key (status 401): bad key Bearer ***; check apiKey of this model\n",
		"model unset: failed: ANTHROPIC_API_KEY is not set\n", "mcpServer echo: answers, in ", "mcpServer gone: failed: ",
		"source missing: failed: ", "source pg: failed: ", "source dead: failed: ",
	} {
		if !strings.Contains("\n"+stdout, "\n"+line) {
			t.Errorf("no line %q in\n%s%s", line, stdout, stderr)
		}
	}
	if status != 1 || strings.Contains(stdout, "ok: ") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	noCanary(t, "the output", []byte(stdout+stderr))
	if _, err := os.Stat(filepath.Join(filepath.Dir(bad), "missing.db")); err == nil {
		t.Error("a database was created")
	}
}

// A model that answers in this process is named, too.
func TestCheck_OnlineOfScript(t *testing.T) {
	dir := t.TempDir()
	runDenied(t, dir)
	status, stdout, stderr := runCommand(t, dir, "check", "--online", "-f", filepath.Join(dir, "org.yaml"))
	if want := "not contacted: there is nothing to ask, because models of type script answer without a service of their own\nok: 2 files"; status != 0 || !strings.Contains(stdout, want) {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

func TestCheck_OnlineInJSON(t *testing.T) {
	file := modelConfig(t, modelServer(t).URL)
	status, stdout, stderr := runIn(t, map[string]string{"BROKEN_KEY": canary}, "", "check", "--online", "--json", "-f", file)
	var got struct {
		OK       bool        `json:"ok"`
		Services []probeItem `json:"services"`
	}
	if err := json.Unmarshal([]byte(stdout), &got); status != 1 || err != nil || len(got.Services) != 6 {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	if s := got.Services; !got.OK || !s[0].OK || s[2].OK || s[2].Error == "" || s[3].Skipped == "" {
		t.Errorf("got %+v", got)
	}
	if status, _, stderr := runIn(t, nil, "", "check", "--online", "--sandbox"); status != 2 || !strings.Contains(stderr, "mutually exclusive") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}
