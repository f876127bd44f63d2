package prompts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// A task like that of rolecall demo, with a language model. Root creates three roles, hires
// an analyst and a clerk at once and waits for both. Then it hires a writer, and answers.
// The log ends with the table of docs/models.md.
func TestCost_OfDemo(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, c := range []struct {
		name     string
		declared bool
		most     deskCost // ids vary in tokens
	}{
		{"root creates the roles", false, deskCost{requests: 15, in: 23_000, out: 1_000}},
		{"the roles are declared", true, deskCost{requests: 14, in: 21_000, out: 850}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &deskModel{codec: codec, checked: make(chan struct{})}
			result := d.run(t, c.declared)
			got := d.cost
			if got.requests != c.most.requests || got.in > c.most.in || got.out > c.most.out || !strings.Contains(result, "report.md") {
				t.Errorf("got %+v and the result %s, want at most %+v", got, result, c.most)
			}
			fmt.Fprintf(&rows, "| %s | %d | %d | %d %% | %d |\n", c.name, got.requests, got.in, 100*got.cached/got.in, got.out)
		})
	}
	t.Logf("\n| | requests | tokens in | of these cached | tokens out |\n|---|---|---|---|---|\n%s", &rows)
}

// deskCost is what a task costs.
type deskCost struct{ requests, in, cached, out int }

// deskModel is a server of OpenAI's protocol whose model works like the script of
// rolecall demo. It knows only the requests.
type deskModel struct {
	codec   tokenizer.Codec
	checked chan struct{} // closed when root has heard from the clerk

	mu    sync.Mutex // guards the rest
	cost  deskCost
	texts [][]uint // the requests so far, in tokens
}

// run runs a task and returns its result.
func (d *deskModel) run(t *testing.T, declared bool) string {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	work := t.TempDir()
	line := `203.0.113.7 - - [17/Mar/2026:14:03:11 +0000] "GET /cart HTTP/1.1" 503 512 "-" "curl/8"` + "\n"
	if err := os.WriteFile(filepath.Join(work, "access.log"), []byte(strings.Repeat(line, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	m := openai.New(provider.Config{BaseURL: server.URL, Model: "desk"})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: memory.New(), Groups: groups, Workspaces: t.TempDir(), Model: func(string) (model.Model, error) { return m, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	if declared {
		for _, r := range deskRoles {
			createRole(t, rt, r.Name, r.RolePrompt, r.ToolGroups...)
		}
	}
	id, err := rt.StartTask(t.Context(), org.TaskSpec{Text: "Find out what went wrong in access.log.", Workspace: work, Caller: operator})
	if err != nil {
		t.Fatal(err)
	}
	task, err := rt.WaitTask(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return string(task.Result)
}

// deskRole holds the arguments of create_role.
type deskRole struct {
	Name       string               `json:"name"`
	ToolGroups []toolgroups.GroupID `json:"toolGroups"`
	RolePrompt string               `json:"rolePrompt"`
}

// The roles of examples/incident-desk.
var deskRoles = []deskRole{
	{"analyst", []toolgroups.GroupID{toolgroups.Workspace, toolgroups.Command}, "You read access logs. Count, never estimate. Say how many lines you could not read."},
	{"clerk", []toolgroups.GroupID{toolgroups.Console}, "You keep the desk's console. Report what you could not do, with the reason you were given."},
	{"writer", []toolgroups.GroupID{toolgroups.Artifact, toolgroups.Workspace}, "You write incident reports for people who were not there. What happened comes first, then the figures."},
}

// deskRequest holds the fields of a request that deskModel reads.
type deskRequest struct {
	Messages []deskMessage   `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
}

type deskMessage struct {
	Role    string          `json:"role"`
	Content string          `json:"content,omitempty"`
	Calls   json.RawMessage `json:"tool_calls,omitempty"`
	Call    string          `json:"tool_call_id,omitempty"`
}

// ServeHTTP answers a request and counts its tokens.
func (d *deskModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in deskRequest
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := d.answer(in)
	d.count(in, answer)
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": answer, "finish_reason": "stop"}}})
}

// count adds a request and its answer to the cost. A provider has in its cache what is the
// beginning of an earlier request, from 1,024 tokens on.
func (d *deskModel) count(in deskRequest, answer deskMessage) {
	request := encodeTokens(d.codec, string(in.Tools))
	for _, m := range in.Messages {
		request = append(request, encodeTokens(d.codec, m.Role+"\n"+m.Content+string(m.Calls))...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	cached := 0
	for _, earlier := range d.texts {
		n := 0
		for n < min(len(earlier), len(request)) && earlier[n] == request[n] {
			n++
		}
		cached = max(cached, n)
	}
	d.texts = append(d.texts, request)
	if cached >= 1024 {
		d.cost.cached += cached
	}
	d.cost.requests++
	d.cost.in += len(request)
	d.cost.out += len(encodeTokens(d.codec, answer.Content+string(answer.Calls)))
}

// encodeTokens returns a text in tokens.
func encodeTokens(codec tokenizer.Codec, text string) []uint {
	ids, _, err := codec.Encode(text)
	if err != nil {
		panic(err) // only without a vocabulary
	}
	return ids
}

// answer returns what the agent of a request does next.
func (d *deskModel) answer(in deskRequest) deskMessage {
	calls := 0 // answers with calls so far
	for _, m := range in.Messages {
		if m.Calls != nil {
			calls++
		}
	}
	_, role, worker := strings.Cut(in.Messages[0].Content, `with the role "`)
	role, _, _ = strings.Cut(role, `"`)
	switch {
	case !worker:
		return d.lead(in)
	case role == "analyst" && calls == 0:
		return callTools("list_files", map[string]any{"path": "."})
	case role == "analyst" && calls == 1:
		return callTools("read_file", map[string]any{"path": "access.log"})
	case role == "analyst":
		<-d.checked
		return answerText("40 lines, 40 read, 40 with status 503, all of /cart, from 2026-03-17 14:03 to 14:03.")
	case role == "clerk" && calls == 0:
		return callTools("console_print", map[string]any{"text": "incident desk: access.log"})
	case role == "clerk" && calls == 1:
		return callTools("run_command", map[string]any{"command": "wc -c access.log"})
	case role == "clerk":
		return answerText("The case is open. The size of access.log was not checked: run_command is not a tool of mine.")
	case calls == 0:
		report := "# Incident report: access.log\n\n40 of 40 requests failed with a server error, all at 14:03 on 2026-03-17.\n\n## Figures\n\n| path | errors |\n|---|---|\n| /cart | 40 |\n"
		return callTools("put_artifact", map[string]any{"type": "report", "content": report}, "write_file", map[string]any{"path": "report.md", "content": report})
	}
	return answerText("The report is in report.md, and is kept as an artifact.")
}

// lead returns what root does next.
func (d *deskModel) lead(in deskRequest) deskMessage {
	heard := map[string]bool{} // the roles whose agents have answered
	called := ""
	for _, m := range in.Messages {
		called += string(m.Calls)
		for _, r := range deskRoles {
			if m.Role == "user" && strings.Contains(m.Content, `"role":"`+r.Name+`"`) {
				heard[r.Name] = true
			}
		}
	}
	declared := strings.Contains(in.Messages[0].Content, `- "analyst"`)
	switch {
	case called == "" && !declared:
		var args []any
		for _, r := range deskRoles {
			args = append(args, "create_role", r)
		}
		return callTools(args...)
	case !strings.Contains(called, "spawn_agent"):
		return callTools("spawn_agent_with_task", hireFor("analyst", "Count what access.log says.", "access.log"),
			"spawn_agent_with_task", hireFor("clerk", "Open the case of access.log and check its size.", "access.log"))
	case heard["clerk"] && !heard["analyst"]:
		close(d.checked)
		return answerText("I wait for the analyst.")
	case len(heard) == 0:
		return answerText("I wait for the analyst and the clerk.")
	case !strings.Contains(called, "Write the report"):
		return callTools("spawn_agent_with_task", hireFor("writer", "Write the report on access.log.", "40 lines, all with status 503, all of /cart. run_command was refused to the clerk."))
	case !heard["writer"]:
		return answerText("I wait for the writer.")
	}
	return answerText("All 40 requests in access.log failed with status 503. The report is in report.md. The clerk may not run programs.")
}

// hireFor returns the arguments of spawn_agent_with_task.
func hireFor(role, objective, inputs string) map[string]any {
	return map[string]any{"roleId": role, "initialMessage": objective, "taskBrief": map[string]any{
		"objective": objective, "constraints": []string{"A refusal is reported, not worked around."}, "inputs": inputs,
		"outputs": "The findings in a few lines.", "completion_criteria": "All of it was done or refused.",
	}}
}

// callTools returns an answer that calls tools: names, each with its arguments.
func callTools(pairs ...any) deskMessage {
	var calls []any
	for pair := range slices.Chunk(pairs, 2) {
		args, _ := json.Marshal(pair[1]) // maps and structs of texts always marshal
		calls = append(calls, map[string]any{"id": fmt.Sprint("call_", len(calls)), "type": "function", "function": map[string]any{"name": pair[0], "arguments": string(args)}})
	}
	doc, _ := json.Marshal(calls)
	return deskMessage{Role: "assistant", Calls: doc}
}

func answerText(text string) deskMessage { return deskMessage{Role: "assistant", Content: text} }
