package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// The secrets of the triggers of tests.
const (
	token  = "a-token-of-32-bytes-abcdefghijkl"
	secret = "a-secret-of-32-bytes-abcdefghijk"
)

var secrets = map[string]string{"ALERT_TOKEN": token, "GITHUB_SECRET": secret}

func lookupSecret(name string) (string, bool) {
	v, ok := secrets[name]
	return v, ok
}

// fixture is an App whose agents answer with what they were told, unless hold is closed later.
type fixture struct {
	*app.App
	t    *testing.T
	dir  string
	logs buffer.SyncBuffer
	hold chan struct{} // agents wait until it is closed
	http http.Handler
}

// newFixture serves a data directory with a configuration.
func newFixture(t *testing.T, docs ...string) *fixture {
	return openFixture(t, t.TempDir(), docs...)
}

func openFixture(t *testing.T, dir string, docs ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: dir, hold: make(chan struct{})}
	close(f.hold)
	echo := gatewaytest.ModelFunc(func(r model.Request) model.Answer {
		<-f.hold
		return gatewaytest.EndAnswer("done")
	})
	log := slog.New(slog.NewTextHandler(&f.logs, nil))
	a, err := app.Open(app.Options{
		Data: dir, Serve: true, Log: log, Env: lookupSecret, Fatal: func(err error) { t.Error(err) },
		Models: func(string) (model.Model, error) { return echo, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.App = a
	t.Cleanup(func() { f.close() })
	f.apply(docs...)
	if f.http, err = a.Handler(); err != nil {
		t.Fatal(err)
	}
	return f
}

// close closes the App, once.
func (f *fixture) close() {
	if a := f.App; a != nil {
		if err := a.Close(); err != nil {
			f.t.Error(err)
		}
		f.App = nil
	}
}

// apply applies documents.
func (f *fixture) apply(docs ...string) {
	f.t.Helper()
	if err := f.ApplyConfig(f.t.Context(), f.read(docs...), nil); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) read(docs ...string) *config.Config {
	f.t.Helper()
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}}, lookupSecret)
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

// role is a role without tools.
const role = "{kind: role, name: oncall, prompt: p, toolGroups: []}"

// hook is a trigger with a token.
const hook = `{kind: trigger, name: alerts, type: http, token: {secret: "${ALERT_TOKEN}"}, role: oncall, text: "Look at {{.payload}}."}`

// post sends a body to a trigger. Headers are pairs of names and values.
func (f *fixture) post(path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.http.ServeHTTP(w, r)
	return w
}

// start posts a body with the token of the tests, and returns the task.
func (f *fixture) start(name, body string, header ...string) identity.TaskID {
	f.t.Helper()
	return f.accepted(f.post("/hooks/"+name, body, append([]string{"Authorization", "Bearer " + token}, header...)...))
}

// accepted returns the task of an answer.
func (f *fixture) accepted(w *httptest.ResponseRecorder) identity.TaskID {
	f.t.Helper()
	var answer struct{ Task identity.TaskID }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusAccepted || answer.Task == "" {
		f.t.Fatalf("answer: %d %s", w.Code, w.Body)
	}
	return answer.Task
}

// sign returns the signature of a body as GitHub sends it.
func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// task returns the record of a task that has ended.
func (f *fixture) task(id identity.TaskID) org.Task {
	f.t.Helper()
	if _, err := f.Runtime.WaitTask(f.t.Context(), id); err != nil {
		f.t.Fatal(err)
	}
	task, err := f.Runtime.TaskRecord(f.t.Context(), id)
	if err != nil {
		f.t.Fatal(err)
	}
	return task
}

// started returns the event of the start of a task.
func (f *fixture) started(id identity.TaskID) journal.TaskStarted {
	f.t.Helper()
	for e, err := range f.Runtime.JournalStore().FollowTask(f.t.Context(), id, 0, journal.WaitForMore) {
		if err != nil {
			f.t.Fatal(err)
		}
		if s, ok := e.Body.(journal.TaskStarted); ok {
			return s
		}
	}
	f.t.Fatal("the task has no start")
	return journal.TaskStarted{}
}

// tasks counts the tasks.
func (f *fixture) tasks() int { return len(f.Runtime.Org().ListTasks()) }

// document returns the YAML blocks of docs/triggers.md that have a text.
func document(t *testing.T, text string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "triggers.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(data), "```yaml\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		if strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("docs/triggers.md has no block with %q", text)
	return ""
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// together calls a function n times at once.
func together(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}

// digest returns the SHA-256 of a token of the gateway.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
