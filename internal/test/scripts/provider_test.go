package scripts_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// provider implements provider VAR, which starts a server that speaks OpenAI's protocol and
// sets VAR to its address. It accepts the key sk-first until it reads about bread, and sk-second
// from then on. It answers 429 to the first request about eggs.
func provider(ts *testscript.TestScript, neg bool, args []string) {
	p := &mockProvider{key: "sk-first"}
	server := httptest.NewServer(p)
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL+"/v1")
}

// mockProvider is a provider of language models. Its model does what the prompts of
// "rolecall init" ask for.
type mockProvider struct {
	mu     sync.Mutex // guards the fields below
	key    string     // the one that is accepted
	busied bool       // it has answered 429
}

// chatRequest is the part of a request that the mock reads.
type chatRequest struct {
	Messages []struct {
		Role    string
		Content string
	}
	Tools []struct{ Function struct{ Name string } }
}

// ServeHTTP implements http.Handler.
func (p *mockProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q chatRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.NotFound(w, r) // a question about the model, which this provider does not answer
		return
	}
	if status := p.refuse(q.text(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); status != 0 {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"status %d"}}`, status)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tool, arguments, text := q.answer()
	for _, piece := range strings.SplitAfter(text, " ") {
		writeChunk(w, map[string]any{"content": piece}, "")
	}
	if tool != "" {
		encoded, _ := json.Marshal(arguments) // texts always marshal
		writeChunk(w, map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "1", "function": map[string]string{"name": tool, "arguments": string(encoded)}}}}, "")
		writeChunk(w, map[string]any{}, "tool_calls")
	} else {
		writeChunk(w, map[string]any{}, "stop")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// refuse returns the status with which a request is rejected, 0 if it is not.
func (p *mockProvider) refuse(text, key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(text, "bread") {
		p.key = "sk-second"
	}
	if key != p.key {
		return http.StatusUnauthorized
	}
	if strings.Contains(text, "eggs") && !p.busied {
		p.busied = true
		return http.StatusTooManyRequests
	}
	return 0
}

// writeChunk writes a part of a streamed answer, the last one with a reason.
func writeChunk(w http.ResponseWriter, delta map[string]any, reason string) {
	choice := map[string]any{"index": 0, "delta": delta}
	chunk := map[string]any{"choices": []any{choice}}
	if reason != "" {
		choice["finish_reason"] = reason
		chunk["usage"] = map[string]int{"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
	}
	text, _ := json.Marshal(chunk) // maps of JSON values always marshal
	fmt.Fprintf(w, "data: %s\n\n", text)
	_ = http.NewResponseController(w).Flush() // a recorder in front of it may not flush
}

// text returns all texts of a request.
func (q *chatRequest) text() (text string) {
	for _, m := range q.Messages {
		text += m.Role + ": " + m.Content + "\n"
	}
	return text
}

var (
	storedReference = regexp.MustCompile(`artifact:[0-9a-f-]{36}`)
	remembered      = regexp.MustCompile(`Remember the \w+`)
)

// payment matches a payment in a task, such as "50 to post".
var payment = regexp.MustCompile(`(\d+) to (\w+)`)

// nextPayment answers a task that names payments: it makes one after another.
func (q *chatRequest) nextPayment() (tool string, arguments map[string]any, text string) {
	made, list := 0, [][]string(nil)
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			list = append(list, payment.FindAllStringSubmatch(m.Content, -1)...)
		case "tool":
			made++
		}
	}
	if made >= len(list) {
		return "", nil, "all payments were tried"
	}
	amount, _ := strconv.Atoi(list[made][1]) // digits
	return "transfer", map[string]any{"amount": amount, "payee": list[made][2]}, ""
}

// answer returns a tool to call with its arguments, or a text.
func (q *chatRequest) answer() (tool string, arguments map[string]any, text string) {
	all := q.text()
	reference := storedReference.FindString(all)
	switch {
	case q.has("remember_word"): // rolecall model test
		return "remember_word", map[string]any{"word": "blue"}, ""
	case q.has("transfer"):
		return q.nextPayment()
	case q.has("put_artifact") && reference == "":
		return "put_artifact", map[string]any{"type": "note", "content": remembered.FindString(all)}, ""
	case q.has("spawn_agent_with_task") && !strings.Contains(all, `"roleName"`):
		brief := map[string]any{"objective": "remember", "constraints": []string{}, "inputs": "a text", "outputs": "a reference", "completion_criteria": "it is stored"}
		return "spawn_agent_with_task", map[string]any{"roleId": "keeper", "taskBrief": brief, "initialMessage": remembered.FindString(all)}, ""
	case q.has("spawn_agent_with_task") && reference == "":
		return "", nil, "The keeper is at work."
	case strings.Contains(all, "JSON schema"):
		return "", nil, fmt.Sprintf(`{"reference": %q}`, reference)
	case reference != "":
		return "", nil, "The text is stored as " + reference + "."
	}
	return "", nil, "ready"
}

// has reports whether the model may call a tool.
func (q *chatRequest) has(tool string) bool {
	for _, t := range q.Tools {
		if t.Function.Name == tool {
			return true
		}
	}
	return false
}
