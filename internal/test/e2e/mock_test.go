package e2e_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/external"
)

// mock is a server of the providers' protocols that runs for one test.
type mock struct{ url string }

func (m mock) openAI() string    { return m.url + "/v1" }
func (m mock) anthropic() string { return m.url }
func (m mock) gemini() string    { return m.url }

// startMock serves a script of the folder mock. Options are those of aimock's LLMock;
// nil means its defaults.
func startMock(t *testing.T, scriptName string, options map[string]any) mock {
	t.Helper()
	external.Skip(t, "programs of npm")
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
	startProgram(t, exec.Command(node, "mock/serve.mjs", "mock/"+scriptName+".mjs", string(args)), func(line string) bool {
		return json.Unmarshal([]byte(line), &ready) == nil && ready.URL != ""
	})
	return mock{ready.URL}
}

// requests returns the requests the mock received, in order.
func (m mock) requests(t *testing.T) []request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", m.url+"/__aimock/journal", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
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
			t.Fatalf("decode request: %v\n%s", err, entry)
		}
		all[i].raw = string(entry)
	}
	return all
}

// request is an entry of the mock's journal. The mock converts bodies of all protocols
// to the form of OpenAI's, and omits the values of headers with keys.
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
		ChaosAction string // a fault injected by the option chaos
		Interrupted bool   // the stream was interrupted
	}
}

// startProgram runs cmd until the test ends, and waits for a line of its output that
// is ready. At the end of the test it closes the program's input, interrupts it, and
// kills it after exitTimeout.
func startProgram(t *testing.T, cmd *exec.Cmd, ready func(line string) bool) {
	t.Helper()
	output := &buffer.SyncBuffer{}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{}) // closed when all of out is read; Wait would close out too early
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(exitTimeout, func() { cmd.Process.Kill() })
		defer kill.Stop()
		<-read
		cmd.Wait()
		if t.Failed() {
			t.Logf("output of %s:\n%s", cmd.Path, output)
		}
	})
	lines := bufio.NewReader(out)
	found := readUntil(lines, output, ready)
	go func() {
		defer close(read)
		io.Copy(output, lines)
	}()
	if !found {
		t.Fatalf("%s exited before it was ready", cmd.Path)
	}
}

// readUntil reads lines until one is ready. It reports false at the end of the input.
func readUntil(lines *bufio.Reader, output *buffer.SyncBuffer, ready func(line string) bool) bool {
	for {
		line, err := lines.ReadString('\n')
		io.WriteString(output, line)
		if ready(line) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// exitTimeout is how long a program may take to exit.
const exitTimeout = 10 * time.Second
