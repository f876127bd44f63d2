package cmd

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// canary is a key that must be written nowhere.
const canary = "sk-canary-6b1f0e9d2c"

// echo answers whatever it is asked with the key it was sent: in errors, in
// text, in names and arguments of calls, in reasoning.
func echo(asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		say := func(form string, args ...any) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: "+form+"\n\n", args...)
		}
		if !strings.Contains(key, canary) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		switch n := asked.Add(1); {
		case n%4 == 1:
			http.Error(w, fmt.Sprintf(`{"error":{"message":"key %s is tired"}}`, key), http.StatusServiceUnavailable)
		case n%4 == 2 && strings.Contains(r.URL.Path, "/chat/completions"):
			say(`{"choices":[{"index":0,"delta":{"reasoning_content":%q,"content":%q,"tool_calls":[{"index":0,"id":%q,"function":{"name":%q,"arguments":"{\"name\":\"%s\"}"}}]},"finish_reason":"tool_calls"}]}`, key, key, key, "find_role_by_name", canary)
			say(`[DONE]`)
		case n%4 == 3 && strings.Contains(r.URL.Path, "/chat/completions"):
			say(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}]}`, "the key is "+key)
			say(`[DONE]`)
		default:
			http.Error(w, `{"error":{"message":"no `+key+`","details":[{"key":"`+key+`"}]}}`, http.StatusBadRequest)
		}
	})
}

// transcript is what several write to at once, as to a terminal.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String gives all that was written.
func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Keys never reach a log, an error, an event, a record or a recording, also
// when a provider sends them back.
func TestKeysAreWrittenNowhere(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(echo(&asked))
	defer server.Close()
	for _, c := range []struct{ name, kind, key string }{
		{"openai", "openai", canary}, {"anthropic", "anthropic", canary}, {"gemini", "gemini", canary},
		{"a key with space around it", "openai", " " + canary + " "},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked.Store(0)
			key := c.key
			dir := t.TempDir()
			file := filepath.Join(dir, "org.yaml")
			text := "{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: " + c.kind + ", model: m, apiKey: \"${CANARY}\", baseURL: \"" + server.URL + "\"}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var said transcript
			for _, args := range [][]string{
				{"check", "-f", file, "--json"},
				{"run", "-v", "-f", file, "which key have you?"},
				{"run", "-v", "--json", "-f", file, "which key have you?"},
				{"task", "list", "--json"}, {"role", "list", "--json"}, {"agent", "list", "--json"},
			} {
				c := &common{launcher: launcher, in: strings.NewReader(""), out: &said, err: &said, env: func(name string) (string, bool) { return key, name == "CANARY" }}
				run(t.Context(), c, append(args, "--data", filepath.Join(dir, "data")))
			}
			if asked.Load() == 0 {
				t.Fatal("the provider was not asked")
			}
			noCanary(t, "what was printed", said.text.Bytes())
			noCanaryUnder(t, dir)
		})
	}
}

func noCanary(t *testing.T, where string, text []byte) {
	t.Helper()
	if i := bytes.Index(text, []byte(canary)); i >= 0 {
		t.Errorf("the key stands in %s: …%s…", where, text[max(0, i-200):min(len(text), i+100)])
	}
}

func noCanaryUnder(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		noCanary(t, path, text)
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("looked at %d files, %v", files, err)
	}
}
