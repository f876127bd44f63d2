package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stepServer is a model that sends what it receives from pieces, each as a part of an answer.
// An empty piece ends the answer.
func stepServer(t *testing.T, pieces <-chan string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(format string, args ...any) {
			fmt.Fprintf(w, "data: "+format+"\n\n", args...)
			_ = http.NewResponseController(w).Flush()
		}
		for {
			select {
			case piece := <-pieces:
				if piece == "" {
					send(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`)
					send("[DONE]")
					return
				}
				text, _ := json.Marshal(piece) // a string always marshals
				send(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, text)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// At a terminal the text is shown as it comes, with the time, tokens and cost below it. What
// is drawn only for a while is gone at the end.
func TestChat_DrawsLive(t *testing.T) {
	pieces := make(chan string)
	file := writeConfig(t, fmt.Sprintf("{kind: organization, name: o, model: m}\n---\n{kind: model, name: m, type: openai, model: m, prices: {input: 100000, currency: USD}, baseURL: %q}\n---\n{kind: role, name: reader, toolGroups: []}\n", stepServer(t, pieces).URL))
	f := newFakeTerminal(t, 40, 20)
	read, write := io.Pipe()
	c := &common{launcher: launcher, data: filepath.Join(t.TempDir(), "data"), files: []string{file}, in: read, out: f, err: f, env: func(string) (string, bool) { return "", false }}
	ended := make(chan error, 1)
	go func() { ended <- runChat(t.Context(), c, "reader", make(chan os.Signal)) }()
	say := func(line string) {
		fmt.Fprintln(write, line)
	}
	say("hi")
	f.waitFor(`may call nothing\n\d+s\n`) // before the first piece
	pieces <- "One\nTw"
	f.waitFor(`One\nTw\n`)
	pieces <- "o\x1b[2J"
	f.waitFor(`One\nTwo�\[2J\n\d+s\n`)
	pieces <- ""
	say("again")
	f.waitFor(`s · 12 tokens · cost 1\.000000 USD\n`)
	pieces <- strings.Repeat("long ", 20)
	f.waitFor(`long long\n`)
	pieces <- ""
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`(?s)\nthe conversation is recorded.*`).ReplaceAllString(f.String(), "\n")
	if want := "+ reader  may call nothing\nOne\nTwo�[2J\nlong long long long long long long long\nlong long long long long long long long\nlong long long long\n"; got != want {
		t.Errorf("the terminal shows\n%swant\n%s", got, want)
	}
}
