package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/short"
)

// mock is a server of the providers' protocols that runs for one test.
type mock struct{ url string }

func (m mock) openAI() string    { return m.url + "/v1" }
func (m mock) anthropic() string { return m.url }
func (m mock) gemini() string    { return m.url }

// startMock serves a play of the folder mock. Options are those of aimock's
// LLMock; nil is its defaults.
func startMock(t *testing.T, play string, options map[string]any) mock {
	t.Helper()
	short.SkipReal(t, "programs of npm")
	if _, err := os.Stat("node_modules/@copilotkit/aimock/package.json"); err != nil {
		t.Fatalf("the mock server is not installed (%v): run make deps", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("the mock server needs node 20.15 or later (%v): install it and run make deps", err)
	}
	args, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	if options == nil {
		args = []byte("{}")
	}
	var ready struct{ URL string }
	start(t, exec.Command(node, "mock/serve.mjs", "mock/"+play+".mjs", string(args)), func(line string) bool {
		return json.Unmarshal([]byte(line), &ready) == nil && ready.URL != ""
	})
	return mock{ready.URL}
}

// journal gives the requests the mock was sent, in order.
func (m mock) journal(t *testing.T) []request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", m.url+"/__aimock/journal", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var list []json.RawMessage
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	all := make([]request, len(list))
	for i, entry := range list {
		if err := json.Unmarshal(entry, &all[i]); err != nil {
			t.Fatalf("a request the test cannot read: %v\n%s", err, entry)
		}
		all[i].raw = string(entry)
	}
	return all
}

// request is an entry of the mock's journal. Every protocol's body is brought
// into the form of OpenAI's; the values of headers with keys are left out.
type request struct {
	raw     string
	Method  string
	Path    string
	Headers map[string]string
	Body    struct {
		Model    string
		Stream   bool
		Messages []struct{ Role string }
		Tools    []struct {
			Function struct {
				Name       string
				Parameters struct{ Type string }
			}
		}
	}
	Response struct {
		Status      int
		ChaosAction string // a fault of chaos
		Interrupted bool   // a stream that broke off
	}
}

// start runs cmd until the test ends; it waits for a line of its output that
// is ready. At the end of the test the program's input ends, it is
// interrupted, and killed when that does not help.
func start(t *testing.T, cmd *exec.Cmd, ready func(line string) bool) {
	t.Helper()
	said := &log{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{}) // closed when all of out is read, which Wait must not cut off
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		defer kill.Stop()
		<-read
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, said)
		}
	})
	lines := bufio.NewReader(out)
	found := await(lines, said, ready)
	go func() {
		defer close(read)
		io.Copy(said, lines)
	}()
	if !found {
		t.Fatalf("%s ended before it was ready", cmd.Path)
	}
}

// await reads lines until one is ready; false when there are no more.
func await(lines *bufio.Reader, said *log, ready func(line string) bool) bool {
	for {
		line, err := lines.ReadString('\n')
		io.WriteString(said, line)
		if ready(line) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// patience is how long a program may take to end.
const patience = 10 * time.Second

// log is a buffer that several may write to.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *log) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
