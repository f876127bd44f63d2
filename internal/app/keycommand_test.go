//go:build unix

package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/providertest"
)

// shell returns a command that runs a script.
func shell(script string) *config.KeyCommand {
	return &config.KeyCommand{Args: []string{"/bin/sh", "-c", script}, Refresh: time.Hour, Timeout: time.Minute}
}

func TestRunKeyCommand_OutputIsOneKey(t *testing.T) {
	for _, c := range []struct{ name, script, key, problem string }{
		{"one line", "echo sk-canary-1", "sk-canary-1", ""},
		{"no line break", "printf sk-canary-1", "sk-canary-1", ""},
		{"white space around", "printf '\n  sk-canary-1 \r\n\n'", "sk-canary-1", ""},
		{"a message on stderr", "echo renewed >&2; echo sk-canary-1", "sk-canary-1", ""},
		{"a child that keeps the output open", "sleep 600 & echo sk-canary-1", "sk-canary-1", ""},
		{"two lines", "echo sk-canary-1; echo sk-canary-2", "", "it printed 2 lines, and a key is one"},
		{"nothing", "exit 0", "", "it printed nothing"},
		{"an empty line", "echo", "", "it printed nothing"},
		{"no ASCII", "printf 'sk-canary-\\303\\244'", "", "it printed characters that are not printable ASCII"},
		{"too much", "yes sk-canary-1 | head -c 70000", "", "it printed more than 65536 bytes"},
		{"a status and a message", "echo 'log in first' >&2; exit 3", "", "it ended with exit status 3: log in first"},
		{"a status and the key in the message", "echo sk-canary-1; echo 'bad sk-canary-1' >&2; exit 3", "", "it ended with exit status 3: bad ***"},
		{"a long message", "echo sk-canary-1; yes word | head -c 9000 >&2; exit 1", "", "it ended with exit status 1: word word"},
	} {
		key, err := runKeyCommand(t.Context(), *shell(c.script))
		want := `command "/bin/sh" of its apiKey: ` + c.problem
		switch {
		case c.problem == "" && (string(key) != c.key || err != nil):
			t.Errorf("%s: got %q, %v", c.name, string(key), err)
		case c.problem != "" && (key != "" || err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s: got %q, %v, want %q", c.name, string(key), err, want)
		case err != nil && (strings.Contains(err.Error(), "canary") || len(err.Error()) > 500):
			t.Errorf("%s: the error is %q", c.name, err)
		}
	}
}

func TestRunKeyCommand_EndsInTime(t *testing.T) {
	hangs := shell("trap '' TERM; sleep 600")
	hangs.Timeout = 50 * time.Millisecond
	if key, err := runKeyCommand(t.Context(), *hangs); key != "" || err == nil || !strings.HasSuffix(err.Error(), "it did not end within 50ms") {
		t.Errorf("got %q, %v", string(key), err)
	}
	missing := config.KeyCommand{Args: []string{"rolecall-no-such-program"}, Timeout: time.Minute}
	if _, err := runKeyCommand(t.Context(), missing); err == nil || !strings.Contains(err.Error(), `"rolecall-no-such-program" of its apiKey: it cannot be started: `) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runKeyCommand(ctx, *shell("sleep 600")); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("got %v", err)
	}
}

// The command is run at the first request, and again after the provider has rejected its
// key. It is not run when the model is made.
func TestKeyModel_RunsCommand(t *testing.T) {
	f := newFixture(t)
	server := newKeyServer(t, "sk-canary-1")
	dir := t.TempDir()
	runs := func() int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	key := filepath.Join(t.TempDir(), "key")
	writeText(t, key, "sk-canary-1\n")
	command := shell(fmt.Sprintf(`mktemp %s/XXXXXX >/dev/null; cat %s`, dir, key))
	m, err := f.newModel(config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: server.URL, KeyCommand: command, ContextWindow: 777})
	if err != nil || runs() != 0 {
		t.Fatal(err, runs())
	}
	t.Cleanup(func() { _ = m.(*keyModel).Close() })
	if tokens, _ := model.WindowOf(m); tokens != 777 {
		t.Errorf("window of %d tokens", tokens)
	}
	for _, step := range []struct {
		name, key, valid, sent string
		runs                   int
		fails                  string
	}{
		{"the first request", "sk-canary-1\n", "sk-canary-1", "sk-canary-1", 1, ""},
		{"the key is kept", "sk-canary-2\n", "sk-canary-1", "sk-canary-1", 1, ""},
		{"a rejected key is read again", "sk-canary-2\n", "sk-canary-2", "sk-canary-1 sk-canary-2", 2, ""},
		{"once", "sk-canary-3\n", "sk-canary-4", "sk-canary-2 sk-canary-3", 3, "does not accept its key"},
		{"the same key is not sent twice", "sk-canary-3\n", "sk-canary-4", "sk-canary-3", 4, "does not accept its key"},
		{"two lines", "a\nb\n", "sk-canary-4", "sk-canary-3", 5, "does not accept its key"},
	} {
		writeText(t, key, step.key)
		server.accept(step.valid)
		text, err := ask(t, m)
		if sent := server.takeSent(); sent != step.sent || runs() != step.runs || (err == nil) != (step.fails == "") || err != nil && !strings.Contains(err.Error(), step.fails) {
			t.Errorf("%s: sent %s, want %s; %d runs, want %d; error %v", step.name, sent, step.sent, runs(), step.runs, err)
		}
		if strings.Contains(text, "canary") {
			t.Errorf("%s: the key is in %q", step.name, text)
		}
	}
	if !f.secrets.redactor().Contains([]byte("sk-canary-3")) || !slices.Contains(f.recordings.secretList(), "sk-canary-3") {
		t.Error("the key is not redacted")
	}
}

// A command that prints no key fails the request with what is wrong. Only the operator can
// fix it.
func TestKeyModel_CommandFails(t *testing.T) {
	m, err := newFixture(t).newModel(config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: "http://127.0.0.1:1", KeyCommand: shell("echo 'log in first' >&2; exit 1")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask(t, m)
	e := providertest.WantError(t, err, "llm_call_failed", false, `model "m" has no API key: command "/bin/sh" of its apiKey: it ended with exit status 1: log in first`)
	if !e.NeedsOperator {
		t.Error("the task goes on")
	}
	if err := m.(*keyModel).Close(); err != nil {
		t.Error(err)
	}
	if _, err := ask(t, m); err == nil || !strings.Contains(err.Error(), "the model is closed") {
		t.Errorf("after Close: %v", err)
	}
}

// keyReads is a source of keys for a keyModel whose reads take a second.
type keyReads struct {
	mu    sync.Mutex
	count int
}

func (k *keyReads) config(refresh time.Duration) keyConfig {
	return keyConfig{
		refresh: refresh,
		hide:    func(yamldoc.Secret) {},
		log:     discardLog,
		build:   func(key yamldoc.Secret) model.Model { return keyEcho(key) },
		read: func(ctx context.Context) (yamldoc.Secret, error) {
			time.Sleep(time.Second)
			k.mu.Lock()
			defer k.mu.Unlock()
			k.count++
			return yamldoc.Secret(fmt.Sprint("key-", k.count)), ctx.Err()
		},
	}
}

// Concurrent requests share one read, which a request that is cancelled does not end.
func TestKeyModel_SharesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads keyReads
		m := newKeyModel("m", "", reads.config(50*time.Minute))
		cancelled, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 20 {
			ctx := t.Context()
			if i%2 == 1 {
				ctx = cancelled
			}
			all.Go(func() {
				_, key, err := m.acquire(ctx)
				if ctx == cancelled && err != context.Canceled || ctx != cancelled && (err != nil || key != "key-1") {
					t.Errorf("got %q, %v", string(key), err)
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "key-1"}, {49 * time.Minute, "key-1"}, {2 * time.Minute, "key-2"}, {time.Minute, "key-2"}} {
			time.Sleep(step.after)
			if text, err := ask(t, m); text != step.want || err != nil {
				t.Errorf("after %v: got %q, %v, want %q", step.after, text, err, step.want)
			}
		}
		if err := m.Close(); err != nil || reads.count != 2 {
			t.Errorf("%d reads, %v", reads.count, err)
		}
	})
}

// check runs no command of a key, and with --online it runs it once.
func TestProbeServices_RunsKeyCommand(t *testing.T) {
	f := newFixture(t)
	server := newKeyServer(t, "sk-canary-1")
	cfg := &config.Config{Models: []config.Model{
		{Name: "good", Type: "openai", Model: "gpt", BaseURL: server.URL, KeyCommand: shell("echo sk-canary-1")},
		{Name: "bad", Type: "openai", Model: "gpt", BaseURL: server.URL, KeyCommand: shell("echo sk-canary-1; echo sk-canary-1")},
	}}
	list := f.ProbeServices(t.Context(), cfg)
	if len(list) != 2 || list[0].Err != nil || list[1].Err == nil || !strings.Contains(list[1].Err.Error(), "it printed 2 lines, and a key is one") {
		t.Errorf("got %+v", list)
	}
	if sent := server.takeSent(); sent != "sk-canary-1" {
		t.Errorf("sent %s", sent)
	}
	r, err := ProbeModel(t.Context(), cfg.Models[0])
	if err != nil || r.Err != nil || strings.Contains(r.Text, "canary") {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := ProbeModel(t.Context(), cfg.Models[1]); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("got %v", err)
	}
}
