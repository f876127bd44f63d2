package webpage_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// writingOrganization has agents whose model is at an address.
const writingOrganization = `
---
kind: model
name: slow
type: openai
baseURL: %s/v1
model: slow
---
kind: role
name: poet
toolGroups: []
model: slow
`

// slowModel answers in two parts. The second one waits until more is closed.
type slowModel struct {
	first, second string
	more          chan struct{}
}

// ServeHTTP implements http.Handler in the protocol of OpenAI.
func (m slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) {
		text, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		fmt.Fprintf(w, "data: %s\n\n", text)
		http.NewResponseController(w).Flush()
	}
	chunk(map[string]any{"role": "assistant", "content": m.first}, nil)
	select {
	case <-m.more:
	case <-r.Context().Done():
		return
	}
	chunk(map[string]any{"content": m.second}, nil)
	chunk(map[string]any{}, "stop")
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// A task shows what its model has written so far, in all tabs, as text. The recorded answer takes
// its place. Two tabs that show the task need one stream for it, and no other of the events.
func TestPage_TextWhileAModelWrites(t *testing.T) {
	m := slowModel{"Once upon " + markup, " a time.", make(chan struct{})}
	model := httptest.NewServer(m)
	t.Cleanup(model.Close)
	s := startServer(t, fmt.Sprintf(writingOrganization, model.URL))
	var events, texts atomic.Int32 // streams that are open
	closed := make(chan struct{}, 100)
	proxied := s.behind(t, func(_ http.ResponseWriter, r *http.Request) bool {
		open := &events
		if r.FormValue("deltas") != "" {
			open = &texts
		}
		if r.FormValue("follow") != "" && strings.HasSuffix(r.URL.Path, "/events") {
			open.Add(1)
			go func() { <-r.Context().Done(); open.Add(-1); closed <- struct{}{} }()
		}
		return false
	})
	var task struct{ ID string }
	decode(t, s.send(t, "ann", "POST", "/api/v1/tasks", `{"text":"hire poet"}`), &task)
	browser := newBrowser(t)
	first, second := openTab(t, browser, proxied), openTab(t, browser, proxied)
	first.signIn("ann")
	first.goTo("#/task/" + task.ID)
	first.wait(`document.querySelector(".writing .text")?.textContent.startsWith("Once upon <img")`)
	first.wait(`document.querySelector(".outcome")?.innerText.includes("is writing “Once upon <img")`)
	first.wait(`[...document.querySelectorAll("svg.lanes rect.model title")].some((t) => t.textContent.startsWith("answer of its model"))`)
	second.open("/#/task/" + task.ID)
	for _, p := range []*tab{second, first} {
		p.wait(`document.querySelector(".writing .text")?.textContent.startsWith("Once upon <img")`)
		if p.eval(`document.querySelector("main img, main b, main script") === null && !document.title.includes("owned")`) != true {
			t.Error("the text has become elements")
		}
	}
	for events.Load() != 1 || texts.Load() != 1 { // a stream that another one has replaced may still end
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatalf("%d streams of events and %d of texts are open, want 1 of each", events.Load(), texts.Load())
		}
	}
	close(m.more)
	for _, p := range []*tab{first, second} {
		p.wait(`document.querySelector(".writing") === null && [...document.querySelectorAll(".talk .text")].some((t) => t.textContent.startsWith("Once upon <img") && t.textContent.endsWith(" a time."))`)
		p.checkProblems("writing")
	}
}
