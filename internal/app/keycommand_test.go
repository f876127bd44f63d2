//go:build unix

package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
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
		{"a status", "exit 3", "", "it ended with exit status 3"},
	} {
		key, err := runKeyCommand(t.Context(), *shell(c.script), nil)
		want := "the command of its apiKey failed: " + c.problem
		switch {
		case c.problem == "" && (string(key) != c.key || err != nil):
			t.Errorf("%s: got %q, %v", c.name, string(key), err)
		case c.problem != "" && (key != "" || err == nil || err.Error() != want):
			t.Errorf("%s: got %q, %v, want %q", c.name, string(key), err, want)
		}
	}
}

// The operator reads what the command wrote to stderr, without keys. The error does not have
// it.
func TestRunKeyCommand_StderrIsForOperator(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"a message", "echo 'log in first' >&2; exit 3", "log in first"},
		{"its key in the message", "echo sk-canary-1; echo 'bad sk-canary-1' >&2; exit 3", "bad ***"},
		{"another secret in the message", "echo 'as sk-canary-2' >&2; exit 3", "as ***"},
		{"a long message", "echo sk-canary-1; yes word | head -c 9000 >&2; exit 3", "word word"},
	} {
		_, err := runKeyCommand(t.Context(), *shell(c.script), redact.New("sk-canary-2"))
		if err == nil || err.Error() != "the command of its apiKey failed: it ended with exit status 3" {
			t.Errorf("%s: got %v", c.name, err)
			continue
		}
		want := `command "/bin/sh" of its apiKey: it ended with exit status 3: ` + c.want
		if got := operatorText(err); !strings.HasPrefix(got, want) || strings.Contains(got, "canary") || len(got) > 500 {
			t.Errorf("%s: the operator reads %q", c.name, got)
		}
	}
}

func TestRunKeyCommand_EndsInTime(t *testing.T) {
	hangs := shell("trap '' TERM; sleep 600")
	hangs.Timeout = 50 * time.Millisecond
	if key, err := runKeyCommand(t.Context(), *hangs, nil); key != "" || err == nil || !strings.HasSuffix(err.Error(), "it did not end within 50ms") {
		t.Errorf("got %q, %v", string(key), err)
	}
	missing := config.KeyCommand{Args: []string{"rolecall-no-such-program"}, Timeout: time.Minute}
	if _, err := runKeyCommand(t.Context(), missing, nil); err == nil || !strings.Contains(operatorText(err), `"rolecall-no-such-program" of its apiKey: it cannot be started: `) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runKeyCommand(ctx, *shell("sleep 600"), nil); err == nil || !strings.Contains(err.Error(), "canceled") {
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
	m.(*keyModel).config.retry = 0
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

// A command that prints no key fails the request. Only the operator can fix it, and only the
// log has what the command wrote. Requests that follow soon do not run it again.
func TestKeyModel_CommandFails(t *testing.T) {
	f, logged, runs := newFixture(t), &bytes.Buffer{}, filepath.Join(t.TempDir(), "runs")
	f.options.Log = slog.New(slog.NewTextHandler(logged, nil))
	command := shell("echo run >>" + runs + "; echo 'log in first' >&2; exit 1")
	m, err := f.newModel(config.Model{Name: "m", Type: "openai", Model: "gpt", BaseURL: "http://127.0.0.1:1", KeyCommand: command})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = ask(t, m)
		e := providertest.WantError(t, err, "llm_call_failed", false, `model "m" has no API key: the command of its apiKey failed: it ended with exit status 1`)
		if !e.NeedsOperator || strings.Contains(err.Error(), "log in") {
			t.Errorf("got %v", err)
		}
	}
	if n, err := os.ReadFile(runs); string(n) != "run\n" || err != nil {
		t.Errorf("the command was run: %q, %v", n, err)
	}
	if text := logged.String(); strings.Count(text, "log in first") != 1 || !strings.Contains(text, "model=m") {
		t.Errorf("logged %s", text)
	}
	if err := m.(*keyModel).Close(); err != nil {
		t.Error(err)
	}
	if _, err := ask(t, m); err == nil || !strings.Contains(err.Error(), "the model is closed") {
		t.Errorf("after Close: %v", err)
	}
}

// A command does not see the keys of other providers. It sees what programs that print keys
// need.
func TestRunKeyCommand_HidesKeysOfProviders(t *testing.T) {
	hidden := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"}
	shown := []string{"AWS_PROFILE", "CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CONFIG_DIR", "VAULT_ADDR", "HTTPS_PROXY"}
	script := "echo seen"
	for _, name := range append(hidden, shown...) {
		t.Setenv(name, "sk-canary")
		script += "${" + name + ":+-" + name + "}"
	}
	key, err := runKeyCommand(t.Context(), *shell(script), nil)
	if want := "seen-" + strings.Join(shown, "-"); string(key) != want || err != nil {
		t.Errorf("got %s, %v, want %s", string(key), err, want)
	}
}

// keyReads is a source of keys for a keyModel whose reads take a second.
type keyReads struct {
	mu    sync.Mutex
	count int
	fails error // of the next reads
}

func (k *keyReads) config(refresh time.Duration) keyConfig {
	return keyConfig{
		refresh: refresh,
		retry:   keyRetryDelay,
		hide:    func(yamldoc.Secret) {},
		log:     discardLog,
		build:   func(key yamldoc.Secret) model.Model { return keyEcho(key) },
		read: func(ctx context.Context) (yamldoc.Secret, error) {
			time.Sleep(time.Second)
			k.mu.Lock()
			defer k.mu.Unlock()
			k.count++
			if k.fails != nil {
				return "", k.fails
			}
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

// A key whose time is over is used for a grace time while no other can be read. A failure is
// remembered for some seconds.
func TestKeyModel_UsesKeyWhileRefreshFails(t *testing.T) {
	const none = ""
	for _, c := range []struct{ refresh, grace time.Duration }{{50 * time.Minute, 10 * time.Minute}, {2 * time.Minute, 2 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			var reads keyReads
			m := newKeyModel("m", "", reads.config(c.refresh))
			for _, step := range []struct {
				after time.Duration
				fails error
				want  string
				reads int
			}{
				{0, nil, "key-1", 1},
				{c.refresh, errors.New("no network"), "key-1", 2},
				{8 * time.Second, errors.New("no network"), "key-1", 2},
				{3 * time.Second, errors.New("no network"), "key-1", 3},
				{c.grace, errors.New("no network"), none, 4},
				{9 * time.Second, nil, none, 4},
				{time.Second, nil, "key-5", 5},
				{c.refresh - 2*time.Second, nil, "key-5", 5},
			} {
				time.Sleep(step.after)
				reads.fails = step.fails
				text, err := ask(t, m)
				if text != step.want || (err == nil) != (step.want != none) || reads.count != step.reads {
					t.Errorf("after %v: got %q, %v, want %q; %d reads, want %d", step.after, text, err, step.want, reads.count, step.reads)
				}
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// rejectedModel is a model whose key is not accepted.
type rejectedModel struct{}

// Generate implements model.Model.
func (rejectedModel) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		yield(model.AnswerDelta{}, &model.Error{KeyInvalid: true, Err: errcode.New(errcode.LLMCallFailed, "key rejected")})
	}
}

// A provider that rejects each key has the key read again once in some seconds, also if the
// command prints the same key.
func TestKeyModel_ReadsRejectedKeyRarely(t *testing.T) {
	for name, fails := range map[string]error{"the same key": nil, "no key": errors.New("no network")} {
		synctest.Test(t, func(t *testing.T) {
			var reads keyReads
			config := reads.config(50 * time.Minute)
			config.build = func(yamldoc.Secret) model.Model { return rejectedModel{} }
			read := config.read
			config.read = func(ctx context.Context) (yamldoc.Secret, error) {
				_, err := read(ctx)
				return "key", err
			}
			m := newKeyModel("m", "key", config)
			reads.fails = fails
			for i, want := range []int{1, 1, 2} {
				if _, err := ask(t, m); err == nil || err.Error() != "llm_call_failed: key rejected" || reads.count != want {
					t.Errorf("%s, request %d: got %v, %d reads, want %d", name, i, err, reads.count, want)
				}
				time.Sleep(6 * time.Second)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// check runs no command of a key, and with --online it runs it once.
func TestProbeServices_RunsKeyCommand(t *testing.T) {
	f := newFixture(t)
	server := newKeyServer(t, "sk-canary-1")
	cfg := &config.Config{Models: []config.Model{
		{Name: "good", Type: "openai", Model: "gpt", BaseURL: server.URL, KeyCommand: shell("echo sk-canary-1")},
		{Name: "bad", Type: "openai", Model: "gpt", BaseURL: server.URL, KeyCommand: shell("echo 'log in first' >&2; echo sk-canary-1; echo sk-canary-1")},
	}}
	list := f.ProbeServices(t.Context(), cfg)
	if len(list) != 2 || list[0].Err != nil || list[1].Err == nil || !strings.Contains(list[1].Err.Error(), "it printed 2 lines, and a key is one: log in first") {
		t.Errorf("got %+v", list)
	}
	if sent := server.takeSent(); sent != "sk-canary-1" {
		t.Errorf("sent %s", sent)
	}
	r, err := ProbeModel(t.Context(), cfg.Models[0])
	if err != nil || r.Err != nil || strings.Contains(r.Text, "canary") {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := ProbeModel(t.Context(), cfg.Models[1]); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "log in first") {
		t.Errorf("got %v", err)
	}
}
