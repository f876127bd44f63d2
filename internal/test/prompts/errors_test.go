package prompts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// wrongCall is a call whose result the golden file has. $self stands for the id of the agent
// that calls, $other for that of an agent of another task, $artifact for an artifact.
type wrongCall struct {
	tool, args string
	cut        bool // the answer was cut off at its limit
}

const fullBrief = `"objective":"o","constraints":[],"inputs":"i","outputs":"o","completion_criteria":"c"`

// wrongCalls are the calls by role. The leader has all built-in groups, and may hire agents.
// The worker has tools that fail, and no other ones.
var wrongCalls = map[string][]wrongCall{
	"leader": {
		{tool: "summarize_file", args: `{}`},
		{tool: "read_fil", args: `{"path":"a.txt"}`},
		{tool: "hidden", args: `{}`},
		{tool: "list_files", args: `{"pth":"a"}`},
		{tool: "list_files", args: `{"path":7}`},
		{tool: "read_file", args: `{}`},
		{tool: "read_file", args: `"{'path': 'a.txt'}"`},
		{tool: "read_file", args: `"{\"path\": \"a.txt\"}"`},
		{tool: "read_file", args: `{"path":"a.txt","path":"b.txt"}`},
		{tool: "read_file", args: `{"PATH":"a.txt"}`},
		{tool: "write_file", args: `"{\"path\": \"a.txt\", \"content\": \"Once up"`, cut: true},

		{tool: "find_role_by_name", args: `{"name":"nobody"}`},
		{tool: "find_role_by_name", args: `{"name":"worker","query":"work"}`},
		{tool: "create_role", args: `{"name":"root","rolePrompt":"p"}`},
		{tool: "create_role", args: `{"name":"worker-1","rolePrompt":"p","toolGroups":["wrokspace"]}`},
		{tool: "create_role", args: `{"name":"helper","rolePrompt":"p","toolGroups":[]}`},
		{tool: "create_role", args: `{"name":"helper","rolePrompt":"q","toolGroups":[]}`},
		{tool: "spawn_agent", args: `{"roleId":"nobody","taskBrief":"help"}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":{}}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":{` + fullBrief + `,"goal":"g"}}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":["help"]}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":"help","parentAgentId":"root"}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":{` + fullBrief + `,"collaborators":[{"agentId":"helper-9","role":"helper"}]}}`},
		{tool: "spawn_agent_with_task", args: `{"roleId":"helper","taskBrief":"help","initialMessage":" "}`},
		{tool: "spawn_agent", args: `{"roleId":"helper","taskBrief":"help"}`}, // helper-1
		{tool: "terminate_agent", args: `{"agentId":"helper-7"}`},
		{tool: "terminate_agent", args: `{"agentId":"$self"}`},
		{tool: "send_message", args: `{"to":"helper-7","payload":"hello"}`},
		{tool: "send_message", args: `{"to":"$other","payload":"hello"}`},
		{tool: "send_message", args: `{"to":["user","nobody"],"payload":"hello"}`},
		{tool: "send_message", args: `{"to":"user","payload":"hello","quickReplies":["1","2","3","4","5","6","7","8","9","10","11"]}`},
		{tool: "send_message", args: `{"to":"user","payload":"hello","quickReplies":"yes"}`},
		{tool: "send_message", args: `{"to":"user","payload":"hello","quickReplies":[" "]}`},

		{tool: "read_file", args: `{"path":"../secret.txt"}`},
		{tool: "read_file", args: `{"path":"missing.txt"}`},
		{tool: "read_file", args: `{"path":"a.txt","length":0}`},
		{tool: "read_file", args: `{"path":"."}`},
		{tool: "list_files", args: `{"path":"a.txt"}`},
		{tool: "write_file", args: `{"path":"fixed.txt","content":"x"}`},
		{tool: "write_file", args: `{"path":"b.txt"}`},
		{tool: "write_file", args: `{"path":"b.bin","content":"***","encoding":"base64"}`},
		{tool: "write_file", args: `{"path":"b.txt","artifactRef":"artifact:nope"}`},
		{tool: "write_file", args: `{"path":"large.txt","content":"` + strings.Repeat("x", 3000) + `"}`},
		{tool: "get_artifact", args: `{"ref":"artifact:nope"}`},
		{tool: "put_artifact", args: `{"type":"t"}`},
		{tool: "put_artifact", args: `{"type":"t","content":"` + strings.Repeat("x", 3000) + `"}`},

		{tool: "compress_context", args: `{"summary":" "}`},
		{tool: "run_command", args: `{"command":"sudo ls"}`},
		{tool: "http_request", args: `{"url":"http://example.com/"}`},
		{tool: "http_request", args: `{"url":"https://"}`},
		{tool: "http_request", args: `{"url":"https://127.0.0.1/"}`},
		{tool: "http_request", args: `{"url":"https://elsewhere.example/"}`},
	},
	"worker": {
		{tool: "hidden", args: `{}`},
		{tool: "read_file", args: `{"path":"a.txt"}`},
		{tool: "functions.fial", args: `{}`},
		{tool: "fail", args: `{}`},
		{tool: "panic", args: `{}`},
		{tool: "panic_in_action", args: `{}`},
		{tool: "flood", args: `{}`},
		{tool: "long_list", args: `{}`},
		{tool: "broken_json", args: `{}`},
		{tool: "unserializable", args: `{}`},
	},
	"gated":   {{tool: "hidden", args: `{}`}, {tool: "nothing", args: `{}`}},
	"guest":   {{tool: "write_file", args: `{"path":"a.txt","content":"x"}`}},
	"bound":   {{tool: "read_file", args: `{"path":"a.txt"}`}, {tool: "create_role", args: `{"name":"wide","rolePrompt":"p","toolGroups":["workspace"]}`}, {tool: "spawn_agent", args: `{"roleId":"thieves","taskBrief":"help"}`}, {tool: "send_message", args: `{"to":"clerk-1","payload":"x"}`}},
	"crowded": {{tool: "console_print", args: `{"text":"1"}`}, {tool: "console_print", args: `{"text":"2"}`}, {tool: "console_print", args: `{"text":"3"}`}},
}

// unprovoked are the codes that this test does not provoke, and why.
var unprovoked = map[errcode.Code]string{
	"reserved_group_id": "of modules", "duplicate_group_id": "of modules", "invalid_group_definition": "of modules", "invalid_group_def": "of modules",
	"cannot_unregister_reserved": "of modules", "duplicate_tool_name": "of modules",
	"tool_unavailable":         "of modules whose server does not answer",
	"tool_timeout":             "takes the time limit of the gate",
	"no_tools_available":       "ends the turn before the model is asked",
	"input_unavailable":        "of tools that ask, and no built-in tool does",
	"input_required":           "of clients without a session",
	"question_not_found":       "of operators and clients",
	"unauthenticated":          "of callers that present a token",
	"authorization_required":   "of MCP servers with OAuth",
	"argument_not_granted":     "of roles with bounds",
	"approval_required":        "of callers and programs; the call of an agent waits",
	"approval_denied":          "no tool of this test needs an approval",
	"approval_not_found":       "of operators and clients",
	"budget_exceeded":          "pauses the task",
	"rate_limited":             "needs many calls at once",
	"storage_low":              "needs a full disk",
	"item_not_found":           "the answer to the operator about a configuration item that was not applied",
	"task_not_found":           "of operators and clients",
	"sender_terminated":        "needs an agent that ends during its call",
	"task_stalled":             "ends the task",
	"incomplete_result":        "of a program that embeds rolecall",
	"task_cancelled":           "ends the task",
	"paused":                   "of people and of programs that drive a task; an agent that is paused is not denied",
	"invalid_result":           "the runtime corrects the model in a message",
	"script_diverged":          "of scripts and recordings",
	"llm_call_failed":          "ends the turn; the parent reads it in a message",
	"max_tool_rounds_exceeded": "ends the turn; the parent reads it in a message",
	"context_limit_exceeded":   "ends the turn; the parent reads it in a message",
	"turn_aborted":             "ends the turn",
	"command_timeout":          "takes the time limit of the command",
	"request_timeout":          "takes the time limit of the request",
	"request_aborted":          "needs a request that is cut off",
	"invalid_config":           "of configurations",
	"invalid_answer":           "the runtime corrects the model in a message",
	"workspace_not_bound":      "needs a runtime without a folder for workspaces",
	"internal":                 "needs a disk that fails",
	"conflict":                 "of operators and clients",
}

// wrongModel makes the wrong calls of its role, one in an answer, and keeps their results.
type wrongModel struct {
	other string // an agent of another task

	mu      sync.Mutex // guards the fields below
	results map[string][]json.RawMessage
	free    chan struct{} // closed when the tasks may end
}

// Window implements model.LanguageModel.
func (*wrongModel) Window() int { return 16_000 }

// Generate implements model.Model.
func (m *wrongModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	answer := m.answer(ctx, r)
	return func(yield func(model.AnswerDelta, error) bool) { yield(model.AnswerDelta{Answer: answer}, nil) }
}

func (m *wrongModel) answer(ctx context.Context, r model.Request) *model.Answer {
	var results []json.RawMessage
	for _, item := range r.Items {
		if item.Result != nil {
			results = append(results, item.Result.Content)
		}
	}
	calls := wrongCalls[r.Self.Role]
	if r.Self.Role == "other" { // its agent is there until the test has ended
		select {
		case <-m.free:
		case <-ctx.Done():
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results[r.Self.Role] = results
	if len(results) >= len(calls) {
		return &model.Answer{Text: "done", Finish: model.FinishEnd}
	}
	next := calls[len(results)]
	if r.Self.Role == "crowded" {
		answer := &model.Answer{Finish: model.FinishToolCalls}
		for _, c := range calls {
			answer.Calls = append(answer.Calls, model.Call{Name: c.tool, Args: json.RawMessage(c.args)})
		}
		return answer
	}
	args := strings.NewReplacer("$self", string(r.Self.ID), "$other", m.other).Replace(next.args)
	answer := &model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: next.tool, Args: json.RawMessage(args)}}}
	if next.cut {
		answer.Stop, answer.Usage = model.Length, model.TokenUsage{Input: 100, Output: 256}
	}
	return answer
}

// failingTools are the tools of the group probe.
func failingTools(t *testing.T) []tool.Tool {
	t.Helper()
	var list []tool.Tool
	add := func(name string, effect tool.Effect, run func() (any, error)) {
		t.Helper()
		one, err := tool.New(name, "Fail.", func(context.Context, struct{}) (any, error) { return run() }, &tool.Options{Effect: effect})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	add("fail", tool.ReadOnly, func() (any, error) { return nil, errors.New("the printer is out of paper") })
	add("panic", tool.ReadOnly, func() (any, error) { panic("ouch") })
	add("panic_in_action", tool.Mutating, func() (any, error) { panic("ouch") })
	add("flood", tool.ReadOnly, func() (any, error) { return strings.Repeat("x", 9<<20), nil })
	add("long_list", tool.ReadOnly, func() (any, error) {
		return map[string]any{"rows": slices.Repeat([]string{strings.Repeat("row ", 20)}, 1000), "table": "sales"}, nil
	})
	add("broken_json", tool.ReadOnly, func() (any, error) { return tool.Result{Structured: json.RawMessage(`{"a":`)}, nil })
	add("unserializable", tool.ReadOnly, func() (any, error) { return map[string]any{"f": func() {}}, nil })
	return list
}

// wrongResults runs a task of each role and returns what their models read.
func wrongResults(t *testing.T) map[string][]json.RawMessage {
	t.Helper()
	m := &wrongModel{results: map[string][]json.RawMessage{}, free: make(chan struct{})}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Workspaces: t.TempDir(), Model: func(string) (model.Model, error) { return m, nil },
		Storage: runtime.StorageLimits{WorkspaceBytes: 2000, ArtifactBytes: 2000}, Limits: runtime.Limits{Calls: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{Network: builtin.PublicNetwork}); err != nil {
		t.Fatal(err)
	}
	hidden, err := tool.New("hidden", "Hide.", func(context.Context, struct{}) (any, error) { return "hidden", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, tools := range map[toolgroups.GroupID][]tool.Tool{"probe": failingTools(t), "others": {hidden}} {
		if _, err := grouptest.RegisterGroup(groups, "test", toolgroups.Group{ID: id, Tools: tools}); err != nil {
			t.Fatal(err)
		}
	}
	addRoles(t, rt)
	other := start(t, rt, org.TaskSpec{Role: "other", Caller: operator})
	task, _ := rt.Org().TaskByID(other)
	m.other = string(task.Top)
	for _, role := range []string{"leader", "worker", "gated", "guest", "bound", "crowded"} {
		spec := org.TaskSpec{Text: "Make mistakes.", Role: role, Caller: operator, Workspace: wrongWorkspace(t), ReadOnly: role == "guest"}
		if _, err := rt.WaitTask(t.Context(), start(t, rt, spec)); err != nil {
			t.Fatal(err)
		}
	}
	close(m.free)
	if _, err := rt.WaitTask(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	return m.results
}

// addRoles creates the roles of wrongCalls.
func addRoles(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	all := toolgroups.SetOf(toolgroups.ReservedIDs()...)
	probe, none, lead, wide := toolgroups.SetOf("probe"), toolgroups.SetOf(), toolgroups.SetOf(toolgroups.OrgManagement, toolgroups.Console), toolgroups.SetOf("others")
	gated := toolgroups.Gated
	any, apis := toolgroups.AllGroups(), hosts.HostRule{Allow: []hosts.HostPattern{{Name: "api.example"}, {Name: "127.0.0.1"}, {Name: "example.com"}}}
	for _, spec := range []org.RoleSpec{
		{Name: "leader", Use: &all, Grant: &any, Hosts: &apis}, {Name: "worker", Use: &probe}, {Name: "gated", Use: &probe, ToolGated: &gated},
		{Name: "guest", Use: &all}, {Name: "bound", Use: &lead, Grant: &lead}, {Name: "crowded", Use: &lead}, {Name: "other", Use: &none}, {Name: "thieves", Use: &wide},
	} {
		spec.Prompt = "p"
		if _, err := rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(spec.Name), By: operator}, spec); err != nil {
			t.Fatal(err)
		}
	}
}

// wrongWorkspace returns a folder with the files a.txt and fixed.txt, which are read-only.
func wrongWorkspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a.txt": 0o644, "fixed.txt": 0o444} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func start(t *testing.T, rt *runtime.Runtime, spec org.TaskSpec) identity.TaskID {
	t.Helper()
	id, err := rt.StartTask(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Every error that a model reads says in plain English what was wrong and what would be right.
func TestErrors_SayWhatWouldBeRight(t *testing.T) {
	results := wrongResults(t)
	var text bytes.Buffer
	seen := map[errcode.Code]bool{}
	for _, role := range []string{"leader", "worker", "gated", "guest", "bound", "crowded"} {
		calls := wrongCalls[role]
		if len(results[role]) != len(calls) {
			t.Fatalf("role %s: %d results of %d calls", role, len(results[role]), len(calls))
		}
		fmt.Fprintf(&text, "# %s\n\n", role)
		for i, c := range calls {
			result := requestID.ReplaceAllString(sameIDs(string(results[role][i])), "")
			seen[errcode.Code(gjson.Get(result, "error").Str)] = true
			if code := gjson.Get(result, "error").Str; code == "" && !strings.Contains(result, `"found":false`) && !strings.Contains(result, `"truncated":true`) {
				continue // only other calls need it
			}
			fmt.Fprintf(&text, "%s(%s)\n%s\n\n", c.tool, shorten(c.args), shorten(result))
		}
	}
	checkGolden(t, "errors.txt", text.String())
	for _, code := range allCodes(t) {
		switch why, listed := unprovoked[code]; {
		case seen[code] && listed:
			t.Errorf("%s is provoked, and listed as not: %s", code, why)
		case !seen[code] && !listed:
			t.Errorf("no call provokes %s", code)
		}
	}
}

// requestID is what differs between two requests of http_request.
var requestID = regexp.MustCompile(`"(requestId|latencyMs)":[^,}]*,?`)

// longRun is a long repetition in an argument or a result.
var longRun = regexp.MustCompile(`(x{20})x+|("(row ){20}",?)+`)

func shorten(text string) string { return longRun.ReplaceAllString(text, "$1$3...") }

// allCodes returns the values of the constants of package errcode.
func allCodes(t *testing.T) (list []errcode.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../errcode/errcode.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if value, ok := spec.Values[0].(*ast.BasicLit); ok {
				code, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, errcode.Code(code))
			}
		}
		return true
	})
	if len(list) < 50 {
		t.Fatalf("found %d codes", len(list))
	}
	return list
}
