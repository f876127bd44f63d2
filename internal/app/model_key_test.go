package app

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/providertest"
	"github.com/rolecall/rolecall/org"
)

// keyServer is a provider that accepts one key and records those that it is sent.
type keyServer struct {
	*httptest.Server
	mu    sync.Mutex
	valid string
	sent  []string
}

func newKeyServer(t *testing.T, valid string) *keyServer {
	s := &keyServer{valid: valid}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *keyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.sent = append(s.sent, key)
	w.Header().Set("Content-Type", "application/json")
	if key != s.valid {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"hello, ` + key + `"},"finish_reason":"stop"}]}`))
}

// accept replaces the key that is accepted.
func (s *keyServer) accept(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.valid = key
}

// takeSent returns the keys that were sent since the last takeSent.
func (s *keyServer) takeSent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.sent = nil }()
	return strings.Join(s.sent, " ")
}

// keyEcho is a model that answers with its key.
type keyEcho string

// Generate implements model.Model.
func (k keyEcho) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		yield(model.AnswerDelta{Answer: &model.Answer{Text: string(k), Finish: model.FinishEnd}}, nil)
	}
}

var discardLog = slog.New(slog.DiscardHandler)

// ask returns the text of a model's answer.
func ask(t *testing.T, m model.Model) (string, error) {
	for delta, err := range m.Generate(t.Context(), providertest.HelloRequest()) {
		if err != nil {
			return "", err
		}
		if delta.Answer != nil {
			return delta.Answer.Text, nil
		}
	}
	t.Fatal("no answer")
	return "", nil
}

// When the provider rejects a key from a file, the file is read again, once.
func TestKeyModel_ReadsRejectedKeyAgain(t *testing.T) {
	f := newFixture(t)
	server := newKeyServer(t, "sk-canary-2")
	file := filepath.Join(t.TempDir(), "key")
	write := func(key string) { writeText(t, file, key) }
	m, err := f.newModel(config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: server.URL, Key: "sk-canary-1", KeyFile: file, ContextWindow: 777})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name, file, sent string
		ok               bool
	}{
		{"the file has the same key", "sk-canary-1", "sk-canary-1", false},
		{"the file has another wrong key", "sk-canary-3\n", "sk-canary-1 sk-canary-3", false},
		{"the file has no key", "\n", "sk-canary-3", false},
		{"the file has the right key", "sk-canary-2\n", "sk-canary-3 sk-canary-2", true},
		{"the key is kept", "sk-canary-4", "sk-canary-2", true},
	} {
		write(step.file)
		text, err := ask(t, m)
		if sent := server.takeSent(); sent != step.sent || (err == nil) != step.ok {
			t.Errorf("%s: sent %s, want %s; error %v", step.name, sent, step.sent, err)
		}
		if e, ok := errors.AsType[*model.Error](err); err != nil && (!ok || !e.KeyInvalid) || strings.Contains(text, "canary") {
			t.Errorf("%s: got %q, %v", step.name, text, err)
		}
	}
	if tokens, _ := model.WindowOf(m); tokens != 777 {
		t.Errorf("window of %d tokens", tokens)
	}
	if !f.secrets.redactor().Contains([]byte("sk-canary-2")) || !slices.Contains(f.recordings.secretList(), "sk-canary-2") {
		t.Error("the new key is not redacted")
	}
}

// A model whose key is not in a file asks once.
func TestKeyModel_OnlyForFiles(t *testing.T) {
	server := newKeyServer(t, "right")
	m, err := newFixture(t).newModel(config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: server.URL, Key: "wrong", KeyFrom: "K"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, m); err == nil || server.takeSent() != "wrong" {
		t.Errorf("got %v", err)
	}
}

// The watcher finds a changed secret file when no document has changed, and the record of
// a task does not have the secret.
func TestConfigWatcher_FindsChangedSecret(t *testing.T) {
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "org.yaml"), filepath.Join(dir, "key")
	writeText(t, secret, "sk-canary-1")
	writeText(t, filepath.Join(dir, "agents.js"), `role("root", function* () { return 1; })`)
	writeText(t, file, "kind: organization\nname: o\nmodel: s\n---\n{kind: model, name: s, type: script, file: agents.js}\n---\n"+
		"kind: model\nname: m\ntype: openai\nmodel: gpt\napiKey: ${file:key}\n")
	f := newFixture(t)
	f.options.Files = []string{file}
	cfg, err := config.LoadFiles(f.options.Files, nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: identity.ByOperator("op")}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	task, err := f.Runtime.WaitTask(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var recorded []yamldoc.File
	record, err := f.Runtime.ArtifactStore().ReadBlob(t.Context(), task.Config)
	if err := errors.Join(err, json.Unmarshal(record, &recorded)); err != nil || len(recorded) != 2 {
		t.Fatal(recorded, err)
	}
	for _, f := range recorded {
		if strings.Contains(string(f.Data), "canary") {
			t.Errorf("recorded %s: %s", f.Path, f.Data)
		}
	}
	watcher := f.newConfigWatcher()
	for !watcher.changeSettled() { // the first look
	}
	watcher.reload(t.Context(), false)
	writeText(t, secret, "sk-canary-22")
	if first, second := watcher.changeSettled(), watcher.changeSettled(); first || !second {
		t.Errorf("changed secret: %v, %v, want false, true", first, second)
	}
	watcher.reload(t.Context(), false)
	if key := f.current.Models[1].Key; key != yamldoc.Secret("sk-canary-22") || !f.secrets.redactor().Contains([]byte("sk-canary-22")) {
		t.Errorf("the key is %q", string(key))
	}
	watcher.background.Wait()
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
