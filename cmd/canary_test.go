package cmd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
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

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
)

// canary is an API key that must not be written anywhere.
const canary = "sk-canary-6b1f0e9d2c"

// echoKey returns a provider that answers with the key it was sent, in every form that is
// redacted: in errors, text, names and arguments of calls, and reasoning.
func echoKey(requests *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key") + r.Header.Get("X-Amz-Security-Token")
		send := func(form string, args ...any) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: "+form+"\n\n", args...)
		}
		if !strings.Contains(key, canary) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		key = echoed(key)
		switch n := requests.Add(1); {
		case n%4 == 1:
			http.Error(w, fmt.Sprintf(`{"error":{"message":"key %s is overloaded"}}`, key), http.StatusServiceUnavailable)
		case n%4 == 2 && strings.Contains(r.URL.Path, "/chat/completions"):
			send(`{"choices":[{"index":0,"delta":{"reasoning_content":%q,"content":%q,"tool_calls":[{"index":0,"id":%q,"function":{"name":%q,"arguments":"{\"name\":\"%s\"}"}}]},"finish_reason":"tool_calls"}]}`, key, key, key, "find_role_by_name", canary)
			send(`[DONE]`)
		case n%4 == 2 && strings.Contains(r.URL.Path, "/responses"):
			send(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"reasoning","encrypted_content":%q},{"type":"message","content":[{"type":"output_text","text":%q}]},{"type":"function_call","call_id":%q,"name":%q,"arguments":"{\"name\":\"%s\"}"}]}}`, key, key, key, "find_role_by_name", canary)
		case n%4 == 2 && strings.Contains(r.URL.Path, "/converse-stream"):
			fmt.Fprintf(w, `{"stopReason":"tool_use","output":{"message":{"content":[{"reasoningContent":{"reasoningText":{"text":%q,"signature":%q}}},{"text":%q},{"toolUse":{"toolUseId":%q,"name":%q,"input":{"name":"%s"}}}]}}}`, key, key, key, key, "find_role_by_name", canary)
		case n%4 == 3 && strings.Contains(r.URL.Path, "/chat/completions"):
			send(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":"stop"}]}`, "the key is "+key)
			send(`[DONE]`)
		default:
			http.Error(w, `{"error":{"message":"no `+key+`","details":[{"key":"`+key+`"}]}}`, http.StatusBadRequest)
		}
	})
}

// API keys appear in no log, error, event, record or recording, even if a provider sends
// them back.
func TestRun_WritesNoKeys(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(echoKey(&requests))
	defer server.Close()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const variable = `apiKey: "${CANARY}"`
	const credentials = `region: eu-central-1, credentials: {accessKeyId: "${CANARY}", secretAccessKey: "${CANARY}", sessionToken: "${CANARY}"}`
	type provider struct{ name, kind, key, from string }
	for _, c := range short.SampleList(t, 3, []provider{
		{"openai", "openai", canary, variable}, {"anthropic", "anthropic", canary, variable}, {"gemini", "gemini", canary, variable},
		{"openai-responses", "openai-responses", canary, variable}, {"bedrock", "bedrock", canary, variable},
		{"credentials of AWS", "bedrock", canary, credentials},
		{"key with surrounding spaces", "openai", " " + canary + " ", variable},
		{"key in a file", "openai", "", `apiKey: "${file:` + keyFile + `}"`},
	}) {
		t.Run(c.name, func(t *testing.T) {
			requests.Store(0)
			key := c.key
			dir := t.TempDir()
			file := filepath.Join(dir, "org.yaml")
			text := "{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: " + c.kind + ", model: m, " + c.from + ", baseURL: \"" + server.URL + "\"}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var output buffer.SyncBuffer
			for _, args := range [][]string{
				{"check", "-f", file, "--json"},
				{"run", "-v", "-f", file, "which key have you?"},
				{"run", "-v", "--json", "-f", file, "which key have you?"},
				{"task", "list", "--json"}, {"role", "list", "--json"}, {"agent", "list", "--json"},
			} {
				c := &common{launcher: launcher, in: strings.NewReader(""), out: &output, err: &output, env: func(name string) (string, bool) { return key, name == "CANARY" }}
				run(t.Context(), c, append(args, "--data", filepath.Join(dir, "data")))
			}
			if requests.Load() == 0 {
				t.Fatal("the provider got no request")
			}
			noCanary(t, "the output", []byte(output.String()))
			noCanaryUnder(t, dir)
		})
	}
}

// streamKey returns a provider that streams the key it was sent, a character at a time. The
// key is in the arguments of a call. It is also in a text that reaches its maximum length
// within the key. The parts are fewer than a watcher's queue holds.
func streamKey(requests *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta, finish string) {
			fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, finish)
		}
		const text, call = `{"content":%q}`, `{"tool_calls":[{"index":0,"function":{"arguments":%q}}]}`
		stream := func(form, text, finish string) {
			for _, c := range text {
				send(fmt.Sprintf(form, string(c)), "null")
			}
			send("{}", finish)
			fmt.Fprint(w, "data: [DONE]\n\n")
		}
		switch requests.Add(1) {
		case 1:
			send(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"find_role_by_name","arguments":""}}]}`, "null")
			stream(call, `{"name":"`+key+` `+escaped(key)+`"}`, `"tool_calls"`)
		case 2:
			stream(text, "The key is "+key+", or "+key[:len(key)/2], `"length"`)
		default:
			stream(text, key[len(key)/2:]+".", `"stop"`)
		}
	})
}

// escaped returns text with all its bytes as escapes of JSON.
func escaped(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

// watchedOutput is an output that closes written when its first byte comes.
type watchedOutput struct {
	buffer.SyncBuffer
	once    sync.Once
	written chan struct{}
}

// Write implements io.Writer.
func (o *watchedOutput) Write(p []byte) (int, error) {
	o.once.Do(func() { close(o.written) })
	return o.SyncBuffer.Write(p)
}

// The parts of a streamed answer hold no key when they are joined, nor does what is
// recorded of it.
func TestRun_StreamsNoKeys(t *testing.T) {
	var requests atomic.Int64
	var stderr buffer.SyncBuffer
	stdout := watchedOutput{written: make(chan struct{})}
	provider := streamKey(&requests)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-stdout.written // else the command may begin to watch in the middle of the answers
		provider.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	text := "{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: openai, model: m, apiKey: \"${CANARY}\", baseURL: \"" + server.URL + "\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &common{launcher: launcher, in: strings.NewReader(""), out: &stdout, err: &stderr, env: func(name string) (string, bool) { return canary, name == "CANARY" }}
	run(t.Context(), c, []string{"run", "--json", "-f", file, "--data", filepath.Join(dir, "data"), "which key have you?"})
	var view partialAnswer
	var texts, args string
	for line := range strings.Lines(stdout.String()) {
		if !strings.Contains(line, `"type":"model_delta"`) {
			continue
		}
		var d journal.ModelDelta
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		view.add(d)
		texts, args = texts+d.Text, args+d.Args
	}
	if requests.Load() != 3 || !strings.HasPrefix(texts, "The key is ***, or ") || !strings.Contains(args, "***") {
		t.Errorf("got the deltas %q and %q of %d requests\n%s\n%s", texts, args, requests.Load(), stdout.String(), stderr.String())
	}
	for where, text := range map[string]string{"the text": texts, "the arguments": args, "the live view": view.text, "the output": stdout.String() + stderr.String()} {
		noCanary(t, where, []byte(text))
		forbidden(t, where, []byte(text), escaped(canary))
	}
	noCanaryUnder(t, dir)
}

// runProgram returns a provider that calls run_command with a line, then answers.
func runProgram(line string) http.Handler {
	var requests atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		message := `{"content":"measured"}`
		if requests.Add(1) == 1 {
			args, _ := json.Marshal(map[string]string{"command": line}) // strings always marshal
			message = fmt.Sprintf(`{"tool_calls":[{"id":"c","function":{"name":"run_command","arguments":%q}}]}`, args)
		}
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, message)
	})
}

// Programs without a sandbox get values of env, and nothing writes these unless a program
// prints them. They get no other variable of the process.
func TestRun_WritesNoEnvironment(t *testing.T) {
	const ofProcess, ofFile = "process-9d1c7b", "file-51c0aa"
	t.Setenv("ROLECALL_TEST_CANARY", ofProcess)
	server := httptest.NewServer(runProgram(`echo lengths ${#GIVEN} ${#OF_FILE} ${#ROLECALL_TEST_CANARY}; no-such-program "$GIVEN"`))
	defer server.Close()
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	file := filepath.Join(dir, "org.yaml")
	for path, text := range map[string]string{secret: ofFile + "\n", file: `{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: openai, model: m, baseURL: "` + server.URL + `", stream: false}
---
{kind: role, name: worker, toolGroups: [command]}
---
{kind: command, name: programs, sandbox: none, env: {GIVEN: "${CANARY}", OF_FILE: "${file:` + secret + `}"}}
`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var output buffer.SyncBuffer
	for _, args := range [][]string{
		{"check", "-f", file, "--json"},
		{"run", "-v", "--json", "-f", file, "--role", "worker", "--workspace", t.TempDir(), "measure"},
		{"task", "show", "last", "--json"}, {"log", "--json"}, {"agent", "list", "--json"},
	} {
		c := &common{launcher: launcher, in: strings.NewReader(""), out: &output, err: &output, env: func(name string) (string, bool) { return canary, name == "CANARY" }}
		run(t.Context(), c, append(args, "--data", filepath.Join(dir, "data")))
	}
	if want := fmt.Sprintf("lengths %d %d 0", len(canary), len(ofFile)); !strings.Contains(output.String(), want) {
		t.Errorf("the program did not print %q:\n%s", want, &output)
	}
	for _, value := range []string{canary, ofProcess, ofFile} {
		forbidden(t, "the output", []byte(output.String()), value)
		noneUnder(t, dir, value)
	}
}

// canaryForms returns the key, and what base64 shows of it at each alignment.
func canaryForms() []string {
	forms := []string{canary}
	for before := range 3 {
		digits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + canary))
		forms = append(forms, digits[4:(before+len(canary))*8/6])
	}
	return forms
}

// noCanary checks that a text does not contain the key.
func noCanary(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, form := range canaryForms() {
		forbidden(t, where, text, form)
	}
}

// forbidden checks that a text does not contain a key.
func forbidden(t *testing.T, where string, text []byte, key string) {
	t.Helper()
	if i := bytes.Index(text, []byte(key)); i >= 0 {
		t.Errorf("the key is in %s: …%s…", where, text[max(0, i-200):min(len(text), i+100)])
	}
}

// noCanaryUnder checks all files of a folder.
func noCanaryUnder(t *testing.T, dir string) {
	t.Helper()
	for _, form := range canaryForms() {
		noneUnder(t, dir, form)
	}
}

// noneUnder checks that no file of a folder contains a key.
func noneUnder(t *testing.T, dir, key string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		forbidden(t, path, text, key)
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("checked %d files, %v", files, err)
	}
}
