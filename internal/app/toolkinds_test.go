package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// specification is the configuration of section 5.1 of TrustGraph's specification of tool
// groups, as it is written there.
const specification = `
tool:
  knowledge-query:
    type: knowledge-query
    name: "Knowledge Graph Query"
    description: "Query the knowledge graph for entities and relationships"
    group: ["read-only", "knowledge", "basic"]
    state: "analysis"
    available_in_states: ["undefined", "research"]
  graph-update:
    type: graph-update
    name: "Graph Update"
    description: "Add or modify entities in the knowledge graph"
    group: ["write", "knowledge", "admin"]
    available_in_states: ["analysis", "modification"]
  text-completion:
    type: text-completion
    name: "Text Completion"
    description: "Generate text using language models"
    group: ["read-only", "text", "basic"]
    state: "undefined"
    # No available_in_states = available in all states
  complex-analysis:
    type: mcp-tool
    name: "Complex Analysis Tool"
    description: "Perform complex data analysis"
    group: ["advanced", "compute", "expensive"]
    state: "results"
    available_in_states: ["analysis"]
    mcp_tool_id: "analysis-server"
  reset-workflow:
    type: mcp-tool
    name: "Reset Workflow"
    description: "Reset to initial state"
    group: ["admin"]
    state: "undefined"
    available_in_states: ["analysis", "results"]
`

// trustGraph is an HTTP server with the request and answer shapes of TrustGraph's gateway.
type trustGraph struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
}

func newTrustGraph(t *testing.T) *trustGraph {
	g := &trustGraph{}
	answers := map[string]string{
		"graph-rag":        `{"response":"Ada knows Bob.","end_of_stream":true,"end_of_session":true,"in_token":12,"out_token":5,"model":"m"}`,
		"text-completion":  `{"response":"A text.","in_token":3,"out_token":2,"model":"m","end_of_stream":true}`,
		"structured-query": `{"data":{"rows":[{"n":12345678901234567890}]},"errors":[]}`,
		"prompt":           `{"text":"Dear Ada","end_of_stream":true}`,
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		g.requests = append(g.requests, r.Method+" "+r.URL.EscapedPath()+" "+string(body))
		g.mu.Unlock()
		service := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(string(body), "fail"):
			fmt.Fprint(w, `{"error":{"type":"graph-rag-error","message":"no such collection"}}`)
		case strings.Contains(string(body), "crash"):
			fmt.Fprint(w, `{"error":"'NoneType' object has no attribute"}`)
		case strings.Contains(string(body), "empty"):
			fmt.Fprint(w, `{"data":null,"errors":["no schema fits"]}`)
		default:
			fmt.Fprint(w, answers[service])
		}
	}))
	t.Cleanup(g.Close)
	return g
}

// takeRequests returns the requests since the last call.
func (g *trustGraph) takeRequests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.requests
	g.requests = nil
	return list
}

// newConnectedFixture returns a fixture that contacts MCP servers, as serve does.
func newConnectedFixture(t *testing.T) *fixture {
	t.Helper()
	return openConnected(t, Options{})
}

// openConnected is newConnectedFixture with more options.
func openConnected(t *testing.T, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t}
	o.Data, o.Launcher, o.Fatal = t.TempDir(), launcher, func(err error) { t.Error(err) }
	o.Warn = slog.New(slog.NewTextHandler(&f.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	f.App = a
	return f
}

// mcpFixture is an MCP server over HTTP whose tools can change.
type mcpFixture struct {
	*sdk.Server
	url string
}

func newMCPFixture(t *testing.T, tools ...string) *mcpFixture {
	m := &mcpFixture{Server: sdk.NewServer(&sdk.Implementation{Name: "analysis", Version: "1"}, nil)}
	for _, name := range tools {
		m.addTool(name, "does "+name)
	}
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m.Server }, nil))
	t.Cleanup(server.CloseClientConnections)
	m.url = server.URL
	return m
}

func (m *mcpFixture) addTool(name, description string) {
	m.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"fail":{"type":"boolean"}}}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: strings.Contains(string(r.Params.Arguments), "true"), Content: []sdk.Content{&sdk.TextContent{Text: "did " + r.Params.Name}}}, nil
		})
}

// document returns the document of the server with more fields.
func (m *mcpFixture) document(more string) string {
	return fmt.Sprintf("{kind: mcpServer, name: analysis-server, url: %q%s}", m.url, more)
}

// readSpecification reads the specification with a script of the role analyst and more
// documents.
func (f *fixture) readSpecification(g *trustGraph, script string, more ...string) *config.Config {
	f.t.Helper()
	docs := append([]string{
		"{kind: organization, name: o, model: m}", "{kind: model, name: m, type: script, file: agents.js}",
		"{kind: network, name: n, allowHTTP: true, privateAddresses: [127.0.0.0/8]}",
		fmt.Sprintf("{kind: source, name: trustgraph, type: http, baseUrl: %q}", g.URL),
		"{kind: role, name: reader, toolGroups: [read-only, knowledge, compute, admin]}",
		"{kind: role, name: weak, toolGroups: [text]}",
	}, more...)
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}, {Path: "tools.yaml", Data: []byte(specification)},
		{Path: "agents.js", Data: []byte(script), Named: true},
	}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

// transitions returns the changes of the workflow state on record, since the event after.
func (f *fixture) transitions(after uint64) (list []string) {
	f.t.Helper()
	for e, err := range f.store.FollowEvents(f.t.Context(), after, journal.StoredOnly) {
		if err != nil {
			f.t.Fatal(err)
		}
		if s, ok := e.Body.(journal.StateTransition); ok {
			list = append(list, s.Tool+": "+s.From+" to "+s.To)
		}
	}
	return list
}

// groupTools lists the tools of a group, in the order of registration.
func (f *fixture) groupTools(id toolgroups.GroupID) string {
	info, _ := f.groups.CurrentSnapshot().LookupGroup(id)
	return strings.Join(info.Tools, " ")
}

// An outside caller walks through the workflow of the specification.
func TestSpecification_ServesCallers(t *testing.T) {
	f, g, m := newConnectedFixture(t), newTrustGraph(t), newMCPFixture(t, "complex-analysis", "reset-workflow", "other")
	cfg := f.readSpecification(g, `role("*", function* () {})`, m.document(""))
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	after := f.LastSeq()
	for _, step := range []struct{ tool, args, code, text string }{
		{"complex-analysis", `{}`, "tool_not_available", ""},
		{"graph-update", `{}`, "unknown_tool", ""}, // not offered
		{"analysis-server__other", `{}`, "tool_not_available", ""},
		{"knowledge-query", `{"question":"fail"}`, "tool_execution_failed", "no such collection"},
		{"knowledge-query", `{"question":"Who \"knows\" Bob?"}`, "", `"Ada knows Bob."`},
		{"knowledge-query", `{"question":"again"}`, "tool_not_available", ""},
		{"complex-analysis", `{"fail":true}`, "tool_execution_failed", "did complex-analysis"},
		{"complex-analysis", `{"fail":"text"}`, "invalid_arguments", ""}, // the server's schema
		{"complex-analysis", `{}`, "", `"did complex-analysis"`},
		{"complex-analysis", `{}`, "tool_not_available", ""},
		{"reset-workflow", `{}`, "", `"did reset-workflow"`},
		{"knowledge-query", `{"question":"q"}`, "", `"Ada knows Bob."`},
		{"text-completion", `{"question":"crash"}`, "tool_execution_failed", "NoneType"},
		{"text-completion", `{"question":"Write."}`, "", `"A text."`},
	} {
		code, text := f.invoke(t.Context(), step.tool, step.args)
		if code != step.code || !strings.Contains(text, step.text) {
			t.Errorf("%s %s: %s %s, want %s %s", step.tool, step.args, code, text, step.code, step.text)
		}
	}
	want := []string{
		"knowledge-query:  to analysis", "complex-analysis: analysis to results", "reset-workflow: results to undefined",
		"knowledge-query: undefined to analysis", "text-completion: analysis to undefined",
	}
	if diff := cmp.Diff(want, f.transitions(after)); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
	first := g.takeRequests()[1]
	if want := `POST /api/v1/flow/default/service/graph-rag {"collection":"default","query":"Who \"knows\" Bob?"}`; first != want {
		t.Errorf("sent %s, want %s", first, want)
	}
	if notes := strings.Join(f.ListNotes(), "\n"); !strings.Contains(notes, "tools.yaml:10:3: tool graph-update is not offered: TrustGraph has no HTTP API for graph-update") {
		t.Errorf("notes: %s", notes)
	}
}

// A scripted agent walks through the same workflow, and sees only what its state allows.
func TestSpecification_ServesAgents(t *testing.T) {
	f, g, m := newConnectedFixture(t), newTrustGraph(t), newMCPFixture(t, "complex-analysis", "reset-workflow")
	script := `role("reader", function* () {
		const seen = [];
		const step = function* (name, args) {
			const r = yield call(name, args);
			seen.push(name + ": " + (r && r.error || r) + " " + (self.state || "undefined") + " [" + tools.filter(t => t.includes("-")).sort().join(" ") + "]");
		};
		yield* step("complex-analysis", {});
		yield* step("knowledge-query", {question: "q"});
		yield* step("complex-analysis", {fail: true});
		yield* step("complex-analysis", {});
		yield* step("reset-workflow", {});
		return seen;
	})`
	if err := f.ApplyConfig(t.Context(), f.readSpecification(g, script, m.document("")), nil); err != nil {
		t.Fatal(err)
	}
	after := f.LastSeq()
	id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByOperator("me"), Role: "reader"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	task, err := f.Runtime.WaitTask(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(task.Result, &got); err != nil {
		t.Fatalf("%s: %v", task.Result, err)
	}
	want := []string{
		"complex-analysis: tool_not_available undefined [knowledge-query text-completion]",
		"knowledge-query: Ada knows Bob. analysis [complex-analysis reset-workflow text-completion]",
		"complex-analysis: tool_execution_failed analysis [complex-analysis reset-workflow text-completion]",
		"complex-analysis: did complex-analysis results [reset-workflow text-completion]",
		"reset-workflow: did reset-workflow undefined [knowledge-query text-completion]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the agent saw (-want +got):\n%s", diff)
	}
	moves := []string{"knowledge-query: undefined to analysis", "complex-analysis: analysis to results", "reset-workflow: results to undefined"}
	if diff := cmp.Diff(moves, f.transitions(after)); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
}

// All types of tools that call TrustGraph send the shape that its gateway has.
func TestTrustGraphTools_SendItsShapes(t *testing.T) {
	f, g, m := newConnectedFixture(t), newTrustGraph(t), newMCPFixture(t)
	cfg := f.readSpecification(g, `role("*", function* () {})`, m.document(""),
		`{kind: tool, name: letter, type: prompt, description: d, template: "letter {{x}}", flow: "a/b", group: [read-only], arguments: [{name: to-whom, type: string, description: w}, {name: n, type: integer, description: n}]}`,
		`{kind: tool, name: fixed, type: prompt, description: d, template: fixed, group: [read-only]}`,
		`{kind: tool, name: rows, type: structured-query, description: d, collection: 'c"{{.q}}', source: trustgraph, group: [read-only]}`,
		`{kind: source, name: second, type: sqlite, database: ":memory:"}`)
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ tool, args, code, text, sent string }{
		{"letter", `{"to-whom":"A\"da","n":3}`, "", `"Dear Ada"`, `POST /api/v1/flow/a%2Fb/service/prompt {"id":"letter \u007b\u007bx}}","variables":{"to-whom":"A\"da","n":3}}`},
		{"fixed", `{}`, "", `"Dear Ada"`, `POST /api/v1/flow/default/service/prompt {"id":"fixed","variables":{}}`},
		{"rows", `{"question":"How many?"}`, "", `{"rows":[{"n":12345678901234567890}]}`, `POST /api/v1/flow/default/service/structured-query {"collection":"c\"\u007b\u007b.q}}","question":"How many?"}`},
		{"rows", `{"question":"empty"}`, "tool_execution_failed", "no schema fits", ""},
		{"rows", `{}`, "invalid_arguments", "", ""},
		{"text-completion", `{"question":"Write."}`, "", `"A text."`, `POST /api/v1/flow/default/service/text-completion {"prompt":"Write.","system":""}`},
	} {
		code, text := f.invoke(t.Context(), step.tool, step.args)
		sent := strings.Join(g.takeRequests(), "\n")
		if code != step.code || !strings.Contains(text, step.text) || step.sent != "" && sent != step.sent {
			t.Errorf("%s %s: %s %s\nsent %s\nwant %s", step.tool, step.args, code, text, sent, step.sent)
		}
	}
}

// Groups, states, effects and flags of a server hold for its tools that have none of their own.
func TestLabels_OfServersAndModules(t *testing.T) {
	f := newConnectedFixture(t)
	m := newMCPFixture(t, "read", "write", "hidden")
	docs := []string{
		"{kind: role, name: reader, toolGroups: [files, kit, stats-tools]}",
		m.document(", group: [files], state: open, available_in_states: [undefined], effect: idempotent, flags: [private], pin: false"),
		"{kind: tool, of: analysis-server/write, group: [kit], state: '', applicable-states: [open], effect: mutating, flags: []}",
		"{kind: tool, of: analysis-server/hidden, group: []}",
		"{kind: tool, of: analysis-server/later, group: [kit]}",
		"{kind: tool, name: alias, type: mcp-tool, description: d, mcp_tool_id: analysis-server/read, available_in_states: [open], flags: [outside]}",
		"{kind: tool, name: other, type: mcp-tool, description: d, mcp_tool_id: analysis-server/read, group: [kit2]}",
		"{kind: module, name: textstats, type: textstats, group: [stats-tools], available_in_states: [open]}",
		"{kind: source, name: mem, type: sqlite, database: ':memory:', group: [of-mem], state: seen, effect: mutating, flags: [untrusted, private]}",
		"{kind: tool, name: plain, type: sqlite-sql, source: mem, description: d, statement: SELECT 1}",
		"{kind: tool, name: hinted, type: sqlite-sql, source: mem, description: d, statement: SELECT 1, annotations: {readOnlyHint: true, openWorldHint: false}, state: own, flags: []}",
		"{kind: tool, name: lonely, type: sqlite-sql, source: mem, description: d, statement: SELECT 1, group: [], state: '', effect: idempotent, available_in_states: []}",
		"{kind: toolset, name: listed, tools: [analysis-server/hidden, textstats/count_words, alias]}",
	}
	if err := f.ApplyConfig(t.Context(), f.read(docs...), nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[toolgroups.GroupID]string{
		"files": "alias analysis-server__read", "kit": "analysis-server__write", "listed": "analysis-server__hidden count_words alias", "default": "", "of-mem": "plain hinted",
		"mcp-tool/analysis-server": "alias other", "kit2": "other", "stats-tools": f.groupTools("textstats"), "analysis-server": "analysis-server__hidden analysis-server__read analysis-server__write",
	} {
		if got := f.groupTools(id); got != want {
			t.Errorf("group %s: %q, want %q", id, got, want)
		}
	}
	for name, want := range map[string]string{
		"analysis-server__read": "idempotent [undefined] open [private]", "analysis-server__write": "mutating [open]  []", "alias": "idempotent [open] open [outside]", "other": "idempotent [undefined] open [private]",
		"count_words": "readOnly [open]  []", "plain": "mutating [] seen [untrusted private]", "hinted": "readOnly [] own []", "lonely": "idempotent []  [untrusted private]",
	} {
		h, ok := f.groups.CurrentSnapshot().LookupTool(name)
		if got := ""; !ok {
			t.Errorf("no tool %s", name)
		} else if got = fmt.Sprint(h.Definition.Effect, " ", h.Definition.States, " ", h.Definition.State, " ", h.Definition.Flags.Names()); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := f.allowedTools("analysis-server__read", "analysis-server__write", "analysis-server__hidden", "count_words", "alias"); got != "analysis-server__read" {
		t.Errorf("allowed before: %s", got)
	}
	if code, _ := f.invoke(t.Context(), "analysis-server__hidden", `{}`); code != "tool_not_available" {
		t.Errorf("a tool in no group: %s", code)
	}
	if code, _ := f.invoke(t.Context(), "analysis-server__read", `{}`); code != "" {
		t.Errorf("read: %s", code)
	}
	for _, name := range []string{"analysis-server__write", "alias"} {
		if code, text := f.invoke(t.Context(), name, `{}`); code != "" {
			t.Errorf("%s in its state: %s %s", name, code, text)
		}
	}
	m.addTool("later", "comes later")
	f.waitGroup(t, "kit", "analysis-server__write analysis-server__later")
}

// waitGroup waits until a group has these tools.
func (f *fixture) waitGroup(t *testing.T, id toolgroups.GroupID, want string) {
	t.Helper()
	changed := make(chan struct{}, 1)
	f.groups.WatchGroups(func([]toolgroups.GroupID) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	for f.groupTools(id) != want {
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("group %s: %q, want %q", id, f.groupTools(id), want)
		}
	}
}

// A reload that changes labels only does not change what they do not name.
func TestReconfigure_Labels(t *testing.T) {
	f, m := newConnectedFixture(t), newMCPFixture(t, "read")
	role := "{kind: role, name: reader, toolGroups: [files, other]}"
	files := "{kind: toolset, name: other, tools: [analysis-server/read]}"
	if err := f.ApplyConfig(t.Context(), f.read(role, files, m.document(", group: [files]")), nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ docs, allowed, module string }{
		{"{kind: toolset, name: other, tools: []}\n---\n" + m.document(", group: [files]"), "analysis-server__read", ""},
		{"{kind: toolset, name: other, tools: []}\n---\n{kind: toolset, name: files, tools: []}\n---\n" + m.document(""), "", ""},
		{files + "\n---\n{kind: toolset, name: files, tools: []}\n---\n" + m.document(", available_in_states: [never]"), "", "module analysis-server is reloaded"},
		{files + "\n---\n{kind: toolset, name: files, tools: []}\n---\n" + m.document(""), "analysis-server__read", "module analysis-server is reloaded"},
	} {
		summary, err := f.reconfigure(t.Context(), f.read(role, step.docs))
		if got := f.allowedTools("analysis-server__read"); err != nil || got != step.allowed || strings.Join(summary, ";") != step.module {
			t.Errorf("%s:\nallowed %q, %q, %v; want %q, %q", step.docs, got, summary, err, step.allowed, step.module)
		}
	}
}

// A tool of type mcp-tool is unavailable while the definition that it calls is in quarantine.
func TestMCPTool_NeedsAnAcceptedDefinition(t *testing.T) {
	f, m := newConnectedFixture(t), newMCPFixture(t, "other")
	docs := []string{
		"{kind: role, name: reader, toolGroups: [files]}", m.document(", group: [files]"),
		"{kind: tool, name: alias, type: mcp-tool, description: d, mcp_tool_id: analysis-server/read}",
		"{kind: tool, of: analysis-server/read, effect: readOnly}",
	}
	if err := f.ApplyConfig(t.Context(), f.read(docs...), nil); err != nil {
		t.Fatal(err)
	}
	if code, text := f.invoke(t.Context(), "alias", `{}`); code != "tool_unavailable" || !strings.Contains(text, `alias did not run: the MCP server \"analysis-server\" has no tool \"read\" that the operator has accepted`) {
		t.Errorf("before the server has it: %s %s", code, text)
	}
	changed := make(chan struct{}, 16)
	defer f.pins.WatchQuarantine(func() { changed <- struct{}{} })()
	m.addTool("read", "reads")
	for {
		<-changed
		if p, err := f.pins.ReadPins(t.Context(), modules.OwnerOf("analysis-server")); err != nil || len(p.Pending) > 0 {
			break
		}
	}
	if code, _ := f.invoke(t.Context(), "alias", `{}`); code != "tool_unavailable" {
		t.Errorf("in quarantine: %s", code)
	}
	if got := f.groupTools("files"); got != "alias analysis-server__other" {
		t.Errorf("the group has %s", got)
	}
}

// A document about a tool that a module does not have is a mistake.
func TestLabels_OfUnknownTool(t *testing.T) {
	f := newConnectedFixture(t)
	stats := "{kind: module, name: textstats, type: textstats}"
	err := f.ApplyConfig(t.Context(), f.read(stats, "{kind: tool, of: textstats/count_txt, group: [a]}", "{kind: toolset, name: s, tools: [textstats/nothing]}"), nil)
	for _, want := range []string{`org.yaml:3:18: of: module textstats has no tool "count_txt"`, `org.yaml:5:1: tools: module textstats has no tool "nothing"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := f.ApplyConfig(t.Context(), f.read(stats), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reconfigure(t.Context(), f.read(stats, "{kind: toolset, name: s, tools: [textstats/nothing]}")); err == nil {
		t.Error("a toolset with an unknown tool of a running module is accepted")
	}
}

// The recorded cases of TrustGraph's tool filter hold for tools of type mcp-tool. Groups
// that no document may name are rejected.
func TestMCPTool_TrustGraphCases(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "toolgroups", "testdata", "tool_filter.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Filter []struct {
			ID       string
			Tools    map[string]json.RawMessage
			Groups   []string
			State    string
			Expected []string
		}
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all.Filter) != 20 {
		t.Fatalf("%d cases, %v", len(all.Filter), err)
	}
	compared := 0
	for _, c := range all.Filter {
		docs := []string{"{kind: mcpServer, name: s, command: s}"}
		for name, fields := range c.Tools {
			if fields[0] == '"' { // no configuration
				fields = json.RawMessage(`{}`)
			}
			rest := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSpace(string(fields)), "}"), "{")
			docs = append(docs, strings.TrimSuffix(fmt.Sprintf("{kind: tool, name: %s, type: mcp-tool, description: d, %s", name, rest), ", ")+"}")
		}
		f := newFixture(t)
		cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Join(docs, "\n---\n"))}}, nil)
		if err != nil {
			if !strings.Contains(err.Error(), `"*" is not a tool group that a tool can join`) && !strings.Contains(err.Error(), "must not be empty") {
				t.Errorf("%s: %v", c.ID, err)
			}
			continue
		}
		if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		asked := toolgroups.SetOf("default")
		if c.Groups != nil {
			asked = toolgroups.SetOfNames(c.Groups...)
		}
		s := f.groups.CurrentSnapshot()
		got := []string{}
		for _, d := range s.Compile(s.PinOwners(asked)).ForState(c.State).ToolDefinitions() {
			if _, declared := c.Tools[d.Name]; declared {
				got = append(got, d.Name)
			}
		}
		slices.Sort(got)
		slices.Sort(c.Expected)
		if diff := cmp.Diff(c.Expected, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.ID, diff)
		}
		compared++
	}
	if compared < 15 {
		t.Errorf("only %d cases were compared", compared)
	}
}
