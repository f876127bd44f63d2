package mcpserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// resumeFixture has a tool that reports a step, waits, and reports another one.
type resumeFixture struct {
	*fixture
	began   chan struct{} // a value for each call
	goOn    chan struct{} // ends the wait of a call
	ended   chan struct{} // a value for each call that is cancelled
	session map[string]string
}

func openResumeFixture(t *testing.T, window time.Duration) *resumeFixture {
	f := &resumeFixture{began: make(chan struct{}, 100), goOn: make(chan struct{}), ended: make(chan struct{}, 100), session: map[string]string{}}
	f.fixture = fixtureConfig{config: mcpserver.Config{ResumeWindow: window}}.open(t)
	steps := func(ctx context.Context, _ noArgs) (string, error) {
		tool.ReportProgress(ctx, tool.Progress{Done: 1, Message: "first"})
		f.began <- struct{}{}
		select {
		case <-f.goOn:
		case <-ctx.Done():
			f.ended <- struct{}{}
			return "", ctx.Err()
		}
		tool.ReportProgress(ctx, tool.Progress{Done: 2, Message: "second"})
		return "all steps", nil
	}
	f.register(t, toolgroups.Group{ID: "long", Tools: []tool.Tool{must(t)(tool.New("steps", "d", steps, nil))}})
	f.role(t, "walker", "long")
	f.session["ann"] = f.initialize(t, "ann@walker", "/mcp", nil)
	return f
}

// header returns the headers of a request in the session of ann.
func (f *resumeFixture) header() map[string]string {
	return map[string]string{"Mcp-Session-Id": f.session["ann"], "Mcp-Protocol-Version": "2025-11-25"}
}

// stream is an event stream that a client reads.
type stream struct {
	lines *bufio.Scanner
	cut   func()
	last  string // the id of the last event
}

// open sends a request whose answer is an event stream.
func (f *resumeFixture) open(t *testing.T, method, body string, header map[string]string) *stream {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, method, f.url+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	got, err := senderTransport{"ann@walker", header}.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(got.Body)
		t.Fatalf("%s was answered %d %s", method, got.StatusCode, text)
	}
	t.Cleanup(func() { cut(); got.Body.Close() })
	return &stream{lines: bufio.NewScanner(got.Body), cut: cut}
}

const callSteps = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"steps","arguments":{},"_meta":{"progressToken":1}}}`

// call begins a call, and reads its stream until the first step.
func (f *resumeFixture) call(t *testing.T) *stream {
	s := f.open(t, http.MethodPost, callSteps, f.header())
	s.until(t, "first")
	waitFor(t, "the call", f.began)
	return s
}

// resume continues a stream behind its last event.
func (f *resumeFixture) resume(t *testing.T, s *stream) *stream {
	header := f.header()
	header["Last-Event-ID"] = s.last
	return f.open(t, http.MethodGet, "", header)
}

// until reads a stream until an event with a text, and returns all that it has read.
func (s *stream) until(t *testing.T, text string) string {
	t.Helper()
	var all strings.Builder
	for s.lines.Scan() {
		line := s.lines.Text()
		fmt.Fprintln(&all, line)
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.last = id
		}
		if strings.Contains(line, text) {
			return all.String()
		}
	}
	t.Fatalf("the stream ended before %q: %s", text, all.String())
	return ""
}

// A call goes on when its client loses the stream. The client that resumes gets what it has missed, once, and the tool
// runs once.
func TestResume_ClientGetsWhatItMissed(t *testing.T) {
	f := openResumeFixture(t, 0)
	first := f.call(t)
	first.cut()
	f.goOn <- struct{}{}
	resumed := f.resume(t, first)
	got := resumed.until(t, "all steps")
	if strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("the client that resumes gets %s", got)
	}
	again := f.resume(t, first).until(t, "all steps") // it was kept until the session ends
	if !strings.Contains(again, "second") || len(f.began) > 0 {
		t.Errorf("resumed again: %s; the tool ran %d times more", again, len(f.began))
	}
}

// A client may resume before the server has seen that the first connection is lost. The new request takes the stream.
func TestResume_TakesStreamOfOpenConnection(t *testing.T) {
	f := openResumeFixture(t, 0)
	first := f.call(t)
	header := f.header()
	header["Last-Event-ID"] = strings.Split(first.last, "_")[0] + "_0"
	second := f.open(t, http.MethodGet, "", header)
	second.until(t, "first")
	f.goOn <- struct{}{}
	second.until(t, "all steps")
	if first.lines.Scan(); strings.Contains(first.lines.Text(), "all steps") {
		t.Error("two requests read one stream")
	}
}

// Only the caller of a session reads its events, and events that are not kept are reported as such.
func TestResume_OfOthersIsUnknown(t *testing.T) {
	f := openResumeFixture(t, 0)
	first := f.call(t)
	own := f.header()
	own["Last-Event-ID"] = first.last
	other := f.initialize(t, "bob@walker", "/mcp", nil)
	for _, test := range []struct {
		name, sender, session, event string
		status                       int
		want                         string
	}{
		{"another caller in the session", "bob@walker", f.session["ann"], first.last, http.StatusNotFound, "no such session"},
		{"another role of the same person", "ann@tester", f.session["ann"], first.last, http.StatusNotFound, "no such session"},
		{"another caller with its own session", "bob@walker", other, first.last, http.StatusBadRequest, "are not kept"},
		{"a session from before a restart", "ann@walker", "gone", first.last, http.StatusNotFound, "no such session"},
		{"an event that never was", "ann@walker", f.session["ann"], strings.Split(first.last, "_")[0] + "_99", http.StatusBadRequest, "are not kept"},
		{"a stream that never was", "ann@walker", f.session["ann"], "none_0", http.StatusBadRequest, "are not kept"},
		{"no event", "ann@walker", f.session["ann"], "x", http.StatusBadRequest, "are not kept"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+"/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		got := f.send(t, test.sender, r, map[string]string{"Mcp-Session-Id": test.session, "Mcp-Protocol-Version": "2025-11-25", "Last-Event-ID": test.event})
		if got.status != test.status || !strings.Contains(got.body, test.want) || strings.Contains(got.body, "first") {
			t.Errorf("%s: %d %s", test.name, got.status, got.body)
		}
	}
	f.goOn <- struct{}{}
	first.until(t, "all steps")
}

// A call whose stream is not resumed in time is cancelled, and so is one that its client cancels meanwhile.
func TestResume_LostCallEnds(t *testing.T) {
	f := openResumeFixture(t, time.Millisecond)
	f.call(t).cut()
	waitFor(t, "the end of a call without a client", f.ended)
	f = openResumeFixture(t, time.Hour)
	f.call(t).cut()
	got := f.post(t, "ann@walker", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, f.header())
	waitFor(t, "the end of a call that is cancelled without a stream", f.ended)
	if got.status != http.StatusAccepted {
		t.Errorf("its cancellation was answered %d", got.status)
	}
}

// A call that waits for its client counts to the limits of its sender.
func TestResume_LostCallCounts(t *testing.T) {
	f := openResumeFixture(t, time.Hour)
	for i := range 64 {
		s := f.open(t, http.MethodPost, strings.Replace(callSteps, `"id":7`, fmt.Sprintf(`"id":%d`, i+100), 1), f.header())
		s.until(t, "first")
		s.cut()
	}
	got := f.post(t, "ann@walker", "/mcp", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, f.header())
	if got.status != http.StatusTooManyRequests {
		t.Errorf("one more call was answered %d %s", got.status, got.body)
	}
}
