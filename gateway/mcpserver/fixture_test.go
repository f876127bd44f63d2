package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

type obj = map[string]any

var operator = identity.ByOperator("operator")

// modelFunc is a model that answers for all agents with a pure function of the
// request.
type modelFunc func(ctx context.Context, r model.Request) model.Answer

// Generate implements model.Model.
func (f modelFunc) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a := f(ctx, r)
		if ctx.Err() != nil {
			yield(model.AnswerDelta{}, ctx.Err())
			return
		}
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// probe provides the tools of the tests; wait reports when it starts and ends.
type probe struct {
	began, ended chan struct{} // one value for each call of wait
}

type textArgs struct {
	Text string `json:"text"`
}

type noArgs struct{}

// tools returns the tools of the group probe.
func (p *probe) tools(t testing.TB) []tool.Tool {
	say := func(_ context.Context, in textArgs) (string, error) { return in.Text, nil }
	return []tool.Tool{
		must(t)(tool.New("echo", "returns a text as an object", func(_ context.Context, in textArgs) (textArgs, error) { return in, nil }, &tool.Options{Effect: tool.ReadOnly})),
		must(t)(tool.New("say", "returns a text", say, &tool.Options{Effect: tool.Idempotent})),
		must(t)(tool.New("fail", "fails", func(context.Context, noArgs) (string, error) {
			return "", errcode.New(errcode.FileNotFound, "no file of this name")
		}, nil)),
		must(t)(tool.New("wait", "waits until it is cancelled", p.wait, nil)),
		must(t)(tool.New("count", "reports three steps", count, &tool.Options{Effect: tool.ReadOnly})),
		must(t)(tool.New("advance", "moves to the state late", func(context.Context, noArgs) (string, error) { return "moved", nil }, &tool.Options{State: "late"})),
		must(t)(tool.New("late", "available in the state late", say, &tool.Options{States: []string{"late"}})),
		must(t)(tool.New("never", "available in no state", say, &tool.Options{States: []string{}})),
	}
}

func (p *probe) wait(ctx context.Context, _ noArgs) (string, error) {
	p.began <- struct{}{}
	<-ctx.Done()
	p.ended <- struct{}{}
	return "", ctx.Err()
}

func count(ctx context.Context, _ noArgs) (string, error) {
	for i := range 3 {
		tool.ReportProgress(ctx, tool.Progress{Done: float64(i + 1), Total: 3, Message: "step\n" + string(rune('a'+i))})
		tool.ReportProgress(ctx, tool.Progress{Done: 1, Message: "a step back"})
	}
	return "counted", nil
}

// must fails the test if a tool cannot be built.
func must(t testing.TB) func(tool.Tool, error) tool.Tool {
	return func(made tool.Tool, err error) tool.Tool {
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// fixture is a runtime with roles and an MCP server on loopback.
type fixture struct {
	rt     *runtime.Runtime
	files  string // where workspaces are
	server *mcpserver.Server
	url    string
	probe  *probe
	roles  map[string]identity.RoleID
}

// fixtureConfig configures a fixture. The zero value has a model that ends its
// turn at once.
type fixtureConfig struct {
	model     modelFunc
	store     journal.Store // nil is a new one
	config    mcpserver.Config
	wrapStore func(journal.Store) journal.Store // wraps the store of the runtime; may be nil
}

// openFixture opens a fixture with the default configuration.
func openFixture(t testing.TB) *fixture { return fixtureConfig{}.open(t) }

func (p fixtureConfig) open(t testing.TB) *fixture {
	t.Helper()
	if p.model == nil {
		p.model = func(context.Context, model.Request) model.Answer {
			return model.Answer{Finish: model.FinishEnd, Text: "done"}
		}
	}
	if p.store == nil {
		p.store = persisttest.Open(t)
	}
	groups, files := toolgroups.NewManager(toolgroups.ReservedIDs()...), t.TempDir()
	if p.wrapStore != nil {
		p.store = p.wrapStore(p.store)
	}
	rt, err := runtime.New(runtime.Config{
		Store: p.store, Groups: groups, Workspaces: files, Authn: gatewaytest.FakeAuthn{},
		Model: func(string) (model.Model, error) { return p.model, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f := &fixture{rt: rt, files: files, probe: &probe{began: make(chan struct{}, 16), ended: make(chan struct{}, 16)}, roles: map[string]identity.RoleID{}}
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	f.register(t, toolgroups.Group{ID: "probe", Description: "tools of the tests", Tools: f.probe.tools(t)})
	f.role(t, "tester", "probe")
	f.role(t, "clerk", "workspace", "console")
	f.role(t, "boss", "org_management", "probe", "workspace")
	f.serveHTTP(t, p.config)
	return f
}

// serveHTTP serves MCP on loopback. The header Sender authenticates requests:
// operator, or USER@ROLE.
func (f *fixture) serveHTTP(t testing.TB, config mcpserver.Config) {
	t.Helper()
	config.Runtime, config.Version = f.rt, "1.2.3"
	var err error
	if f.server, err = mcpserver.New(config); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request) {
		if err := f.server.Serve(w, r, f.sender(r)); err != nil {
			http.Error(w, string(errcode.CodeOf(err))+": "+errcode.Message(err), http.StatusNotFound)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/{toolset...}", "/roles/{role}/mcp", "/roles/{role}/mcp/{toolset...}"} {
		mux.HandleFunc(path, answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := f.server.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	f.url = server.URL
}

func (f *fixture) sender(r *http.Request) identity.Principal {
	user, role, ok := strings.Cut(r.Header.Get("Sender"), "@")
	switch {
	case user == "operator":
		return operator
	case ok:
		return identity.ByCaller(identity.UserName(user), f.roles[role])
	}
	return identity.Principal{}
}

func (f *fixture) register(t testing.TB, g toolgroups.Group) {
	t.Helper()
	if _, err := grouptest.RegisterGroup(f.rt.GroupManager(), "tests", g); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) role(t testing.TB, name string, groups ...toolgroups.GroupID) {
	t.Helper()
	set := toolgroups.SetOf(groups...)
	role, err := f.rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: operator}, org.RoleSpec{Name: name, Prompt: "p", Use: &set})
	if err != nil {
		t.Fatal(err)
	}
	f.roles[name] = role.ID
}

// setGroups replaces the groups that a role uses.
func (f *fixture) setGroups(t testing.TB, role string, groups ...toolgroups.GroupID) {
	t.Helper()
	set := toolgroups.SetOf(groups...)
	if _, _, err := f.rt.UpdateRole(operator, f.roles[role], org.RoleSpec{Use: &set}, false); err != nil {
		t.Fatal(err)
	}
}

// senderTransport is an http.RoundTripper that sends requests as a sender, with
// further headers.
type senderTransport struct {
	sender string
	header map[string]string
}

// RoundTrip implements http.RoundTripper.
func (a senderTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sender", a.sender)
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client; version "" is the newest.
func (f *fixture) connect(t testing.TB, sender, path, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url + path, HTTPClient: &http.Client{Transport: senderTransport{sender: sender}}, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// toolNames returns the names that tools/list returns, in order.
func toolNames(t testing.TB, session *sdk.ClientSession) string {
	t.Helper()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// groupTools lists the tools of groups as toolNames does.
func (f *fixture) groupTools(ids ...toolgroups.GroupID) string {
	var names []string
	for _, d := range f.rt.GroupManager().CurrentSnapshot().ToolDefinitions(ids...) {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// textOf returns the only text of a result.
func textOf(r *sdk.CallToolResult) string {
	if len(r.Content) != 1 {
		return "not one content"
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	if text == nil {
		return "no text"
	}
	return text.Text
}

// answer is the response to a raw request.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a body unchanged.
func (f *fixture) post(t testing.TB, sender, path, body string, header map[string]string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return f.send(t, sender, r, header)
}

func (f *fixture) send(t testing.TB, sender string, r *http.Request, header map[string]string) answer {
	t.Helper()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	got, err := senderTransport{sender, header}.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var b strings.Builder
	if _, err := io.Copy(&b, got.Body); err != nil {
		t.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, b.String()}
}

// initialize starts a session with a raw request and returns its id.
func (f *fixture) initialize(t testing.TB, sender, path string, header map[string]string) string {
	t.Helper()
	got := f.post(t, sender, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, header)
	id := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || id == "" {
		t.Fatalf("initialize was answered %d %s", got.status, got.body)
	}
	return id
}

// statelessHeader returns the headers of a request in a version without
// sessions.
func statelessHeader(method, name string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

const statelessMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func decodeJSON(t testing.TB, body string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// answerJSON returns the JSON of an answer, which may be an event stream.
func answerJSON(a answer) gjson.Result {
	return gjson.Parse(answerDocument(a.body))
}

// answerDocument returns the document of an answer, which may be an event
// stream of one.
func answerDocument(body string) string {
	if _, data, ok := strings.Cut(body, "data: "); ok {
		return data
	}
	return body
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// receivedSoon reports whether a value arrives within a short time. It is for
// values that may legitimately not come.
func receivedSoon(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(200 * time.Millisecond):
		return false
	}
}

// waitFor receives a value and fails the test if none arrives.
func waitFor(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: nothing came", what)
	}
}
