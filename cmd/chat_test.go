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
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/internal/test/buffer"
)

// chatServer is a model that counts the messages of the user. It calls a tool when the last
// message is "look", and does not answer to "wait", which it reports on waiting.
func chatServer(t *testing.T, waiting chan<- struct{}) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		heard := 0
		for _, m := range q.Messages {
			if m.Role == "user" {
				heard++
			}
		}
		switch last := q.Messages[len(q.Messages)-1]; {
		case strings.LastIndex(last.Content, "wait") > strings.LastIndex(last.Content, "go on"): // the message after an interrupted one has both
			waiting <- struct{}{}
			<-r.Context().Done()
		case strings.Contains(last.Content, "look"):
			streamed(w, `{"choices":[{"index":0,"delta":{"content":"let me see","tool_calls":[{"index":0,"id":"1","function":{"name":"list_files","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`)
		default:
			streamed(w, `{"choices":[{"index":0,"delta":{"content":"heard "}}]}`, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":"stop"}]}`, heard))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// chatConfig declares an organization whose agents are run by the server at url.
func chatConfig(t *testing.T, url string) string {
	return writeConfig(t, fmt.Sprintf("{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: openai, model: m, baseURL: %q}\n---\n{kind: role, name: reader, toolGroups: [workspace]}\n", url))
}

// chatting is a chat whose input and signals come from a test.
type chatting struct {
	*common
	in       *io.PipeWriter
	signals  chan os.Signal
	out, log *buffer.SyncBuffer
	ended    chan error
}

// startChat starts a chat in the data directory data.
func startChat(t *testing.T, file, data, role string) *chatting {
	read, write := io.Pipe()
	ch := &chatting{in: write, signals: make(chan os.Signal), out: new(buffer.SyncBuffer), log: new(buffer.SyncBuffer), ended: make(chan error, 1)}
	ch.common = &common{launcher: launcher, data: data, in: read, out: ch.out, err: ch.log, env: func(string) (string, bool) { return "", false }}
	if file != "" {
		ch.files = []string{file}
	}
	go func() { ch.ended <- runChat(t.Context(), ch.common, role, ch.signals) }()
	return ch
}

// send writes a line of input.
func (ch *chatting) send(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(ch.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// wantTasks checks the statuses of the tasks in a data directory.
func wantTasks(t *testing.T, data string, want ...string) {
	t.Helper()
	var list struct{ Items []struct{ Status string } }
	if err := json.Unmarshal([]byte(mustRun(t, data, "task", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, task := range list.Items {
		got = append(got, task.Status)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("tasks %v, want %v", got, want)
	}
}

// Each line is answered with the whole conversation. Calls are shown on stderr. The end of
// the input ends the task.
func TestChat_AnswersEachLine(t *testing.T) {
	file, data := chatConfig(t, chatServer(t, nil).URL), filepath.Join(t.TempDir(), "data")
	ch := startChat(t, file, data, "reader")
	for _, line := range []string{"one", "", "two", "look", "three"} {
		ch.send(t, line)
	}
	if err := ch.in.Close(); err != nil {
		t.Fatal(err)
	}
	err := <-ch.ended
	if want := "heard 1\nheard 2\nlet me see\nheard 3\nheard 4\n"; err != nil || ch.out.String() != want {
		t.Errorf("%v, got %q, want %q\n%s", err, ch.out.String(), want, ch.log.String())
	}
	for _, want := range []string{"+ reader  may call ", "\n  reader  list_files {}\n", "\nthe conversation is recorded: "} {
		if !strings.Contains(ch.log.String(), want) {
			t.Errorf("no %q in\n%s", want, ch.log.String())
		}
	}
	wantTasks(t, data, "cancelled")
}

// The return of a script ends the conversation. Its value is printed once.
func TestChat_EndsWithScript(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "org.yaml")
	for name, text := range map[string]string{file: waits, filepath.Join(dir, "agents.js"): waitsScript} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ch := startChat(t, file, filepath.Join(dir, "data"), "")
	ch.send(t, "text")
	if err := <-ch.ended; err != nil || ch.out.String() != "plain\n" || !strings.HasSuffix(ch.log.String(), "the agent has ended the conversation\n") || strings.Contains(ch.log.String(), "plain") {
		t.Errorf("%v, %q\n%s", err, ch.out.String(), ch.log.String())
	}
	wantTasks(t, filepath.Join(dir, "data"), "done")
}

// Ctrl-C interrupts an answer, and the conversation goes on. Pressed twice it ends it.
func TestChat_IsInterrupted(t *testing.T) {
	waiting := make(chan struct{})
	file, data := chatConfig(t, chatServer(t, waiting).URL), filepath.Join(t.TempDir(), "data")
	ch := startChat(t, file, data, "")
	ch.send(t, "wait")
	<-waiting
	ch.signals <- os.Interrupt
	ch.send(t, "go on") // is read when the turn has ended
	ch.send(t, "wait")
	<-waiting
	ch.signals <- os.Interrupt
	ch.send(t, "go on")
	ch.send(t, "wait")
	<-waiting
	ch.signals <- syscall.SIGTERM
	err := <-ch.ended
	if n := strings.Count(ch.log.String(), "the answer is interrupted"); err != nil || n != 2 || strings.Count(ch.out.String(), "heard ") != 2 {
		t.Errorf("%v, %d interrupted answers\n%s\n%s", err, n, ch.out.String(), ch.log.String())
	}
	wantTasks(t, data, "cancelled")

	ch = startChat(t, file, data, "")
	ch.signals <- os.Interrupt
	ch.signals <- os.Interrupt
	if err := <-ch.ended; err != nil || !strings.Contains(ch.log.String(), "press Ctrl-C again") {
		t.Errorf("%v\n%s", err, ch.log.String())
	}
	wantTasks(t, data, "cancelled") // no line, no task
}

// A process that serves the data directory runs the agent.
func TestChat_ThroughServer(t *testing.T) {
	file, data := chatConfig(t, chatServer(t, nil).URL), filepath.Join(t.TempDir(), "data")
	serveSession(t, file, data)
	ch := startChat(t, "", data, "reader")
	ch.send(t, "one")
	ch.send(t, "two")
	if err := ch.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ch.ended; err != nil || ch.out.String() != "heard 1\nheard 2\n" {
		t.Errorf("%v, got %q\n%s", err, ch.out.String(), ch.log.String())
	}
	wantTasks(t, data, "cancelled")
	ch = startChat(t, "", data, "raeder") // no line is sent
	if err := <-ch.ended; exitStatus(err) != 2 || !strings.Contains(err.Error(), `there is no role "raeder" (did you mean "reader"?)`) {
		t.Errorf("unknown role: %v", err)
	}
}

// A person reads what to do before the first line; a program that pipes lines does not.
func TestChat_GreetsPerson(t *testing.T) {
	for _, asks := range []bool{false, true} {
		var log strings.Builder
		c := &common{launcher: launcher, in: strings.NewReader(""), out: io.Discard, err: &log}
		ch := newChat(c, nil, newTerminal(c.err), nil)
		ch.interactive = asks
		if err := ch.run(t.Context()); err != nil {
			t.Error(err)
		}
		want := ""
		if asks {
			want = "each line is a message to the agent; Ctrl-C interrupts its answer, Ctrl-D ends the conversation\n> \n"
		}
		if log.String() != want {
			t.Errorf("asks %v: got %q, want %q", asks, log.String(), want)
		}
	}
}

func TestChat_RejectsUsage(t *testing.T) {
	dir := t.TempDir()
	file, data := chatConfig(t, "http://127.0.0.1:1"), filepath.Join(dir, "data")
	person := writeConfig(t, "{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: human}\n")
	for _, test := range []struct {
		output string
		args   []string
	}{
		{"chat prints no JSON", []string{"--json", "-f", file}},
		{"no organization in " + data, nil},
		{`chat reads stdin, and so does model "m" of type human`, []string{"-f", person}},
		{`--role: there is no role "raeder" (did you mean "reader"?)`, []string{"-f", file, "--role", "raeder"}},
		{"takes no arguments", []string{"hello"}},
	} {
		if status, stdout, stderr := runIn(t, nil, "hi\n", append([]string{"chat", "--data", data}, test.args...)...); status != 2 || stdout != "" || !strings.Contains(stderr, test.output) {
			t.Errorf("%q: status %d, want 2 with %q: %s%s", test.args, status, test.output, stdout, stderr)
		}
	}
}

// What a person typed before the question of a tool does not answer it. It goes to the agent later.
func TestChat_LineBeforeQuestion(t *testing.T) {
	lines := make(chan inputLine, 3)
	ch := &chat{screen: &terminal{out: io.Discard}, lines: lines, busy: true}
	lines <- inputLine{text: "yes"}
	lines <- inputLine{text: "then go on"}
	end := ch.beginQuestion()
	lines <- inputLine{text: "no"}
	if got, err := ch.nextLine(t.Context()); got != "no" || err != nil {
		t.Errorf("the answer is %q, %v", got, err)
	}
	end()
	if line, ok := ch.nextEarly(); ok {
		t.Errorf("%q is sent while the agent answers", line.text)
	}
	ch.busy = false
	for _, want := range []string{"yes", "then go on"} {
		if line, ok := ch.nextEarly(); line.text != want || !ok {
			t.Errorf("got %q, %v, want %q", line.text, ok, want)
		}
	}
	if line, ok := ch.nextEarly(); ok {
		t.Errorf("%q is sent twice", line.text)
	}
}
