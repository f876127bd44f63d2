package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("operator")

// brain answers for all agents: a pure function of the request.
type brain func(ctx context.Context, r model.Request) model.Answer

// Generate implements model.Model.
func (b brain) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := b(ctx, r)
		if ctx.Err() != nil {
			yield(model.Delta{}, ctx.Err())
			return
		}
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// probe is the group of the tests: what its tools do is seen from outside.
type probe struct {
	began, ended chan struct{} // one for each call of wait
}

type text struct {
	Text string `json:"text"`
}

type nothing struct{}

// tools are those of the group probe.
func (p *probe) tools(t testing.TB) []tool.Tool {
	say := func(_ context.Context, in text) (string, error) { return in.Text, nil }
	return []tool.Tool{
		made(t)(tool.New("echo", "gives back a text as an object", func(_ context.Context, in text) (text, error) { return in, nil }, &tool.Options{Effect: tool.ReadOnly})),
		made(t)(tool.New("say", "gives back a text", say, &tool.Options{Effect: tool.Idempotent})),
		made(t)(tool.New("fail", "fails", func(context.Context, nothing) (string, error) {
			return "", errcode.New(errcode.FileNotFound, "no file of this name")
		}, nil)),
		made(t)(tool.New("wait", "waits until it is cancelled", p.wait, nil)),
		made(t)(tool.New("count", "reports three steps", count, &tool.Options{Effect: tool.ReadOnly})),
		made(t)(tool.New("advance", "moves to the state late", func(context.Context, nothing) (string, error) { return "moved", nil }, &tool.Options{State: "late"})),
		made(t)(tool.New("late", "is there in the state late", say, &tool.Options{States: []string{"late"}})),
		made(t)(tool.New("never", "is there in no state", say, &tool.Options{States: []string{}})),
	}
}

func (p *probe) wait(ctx context.Context, _ nothing) (string, error) {
	p.began <- struct{}{}
	<-ctx.Done()
	p.ended <- struct{}{}
	return "", ctx.Err()
}

func count(ctx context.Context, _ nothing) (string, error) {
	for i := range 3 {
		tool.Report(ctx, tool.Progress{Done: float64(i + 1), Total: 3, Message: "step\n" + string(rune('a'+i))})
		tool.Report(ctx, tool.Progress{Done: 1, Message: "a step back"})
	}
	return "counted", nil
}

func made(t testing.TB) func(tool.Tool, error) tool.Tool {
	return func(made tool.Tool, err error) tool.Tool {
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
}

// house is an organization behind an MCP server on loopback.
type house struct {
	rt    *runtime.Runtime
	mcp   *mcpserver.Server
	url   string
	probe *probe
	roles map[string]identity.RoleID
}

// plan says how a house is built; the zero plan has a brain that ends at once.
type plan struct {
	brain  brain
	config mcpserver.Config
}

func open(t testing.TB) *house { return plan{}.open(t) }

func (p plan) open(t testing.TB) *house {
	t.Helper()
	if p.brain == nil {
		p.brain = func(context.Context, model.Request) model.Answer {
			return model.Answer{Finish: model.FinishEnd, Text: "done"}
		}
	}
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	rt, err := runtime.New(runtime.Config{
		Store: persisttest.Open(t), Groups: groups, Workspaces: t.TempDir(), Authn: gatewaytest.FakeAuthn{},
		Model: func(string) (model.Model, error) { return p.brain, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	h := &house{rt: rt, probe: &probe{began: make(chan struct{}, 16), ended: make(chan struct{}, 16)}, roles: map[string]identity.RoleID{}}
	if err := builtin.Register(groups, rt, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	h.register(t, toolgroups.Group{ID: "probe", Description: "tools of the tests", Tools: h.probe.tools(t)})
	h.role(t, "tester", "probe")
	h.role(t, "clerk", "workspace", "console")
	h.role(t, "boss", "org_management", "probe", "workspace")
	h.serve(t, p.config)
	return h
}

// serve puts the server on loopback. Who sends a request says its header
// Sender: operator, or USER@ROLE.
func (h *house) serve(t testing.TB, config mcpserver.Config) {
	t.Helper()
	config.Runtime, config.Version = h.rt, "1.2.3"
	var err error
	if h.mcp, err = mcpserver.New(config); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request) {
		if err := h.mcp.Serve(w, r, h.sender(r)); err != nil {
			http.Error(w, string(errcode.Of(err))+": "+errcode.Message(err), http.StatusNotFound)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/{toolset...}", "/roles/{role}/mcp", "/roles/{role}/mcp/{toolset...}"} {
		mux.HandleFunc(path, answer)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		if err := h.mcp.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	h.url = server.URL
}

func (h *house) sender(r *http.Request) identity.Principal {
	user, role, ok := strings.Cut(r.Header.Get("Sender"), "@")
	switch {
	case user == "operator":
		return operator
	case ok:
		return identity.ByCaller(identity.User(user), h.roles[role])
	}
	return identity.Principal{}
}

func (h *house) register(t testing.TB, g toolgroups.Group) {
	t.Helper()
	if _, err := h.rt.Groups().Register("tests", g); err != nil {
		t.Fatal(err)
	}
}

func (h *house) role(t testing.TB, name string, groups ...toolgroups.GroupID) {
	t.Helper()
	set := toolgroups.Of(groups...)
	role, err := h.rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(identity.NewID()), By: operator}, org.RoleSpec{Name: name, Prompt: "p", Use: &set})
	if err != nil {
		t.Fatal(err)
	}
	h.roles[name] = role.ID
}

// give changes which groups a role may use.
func (h *house) give(t testing.TB, role string, groups ...toolgroups.GroupID) {
	t.Helper()
	set := toolgroups.Of(groups...)
	if _, _, err := h.rt.UpdateRole(operator, h.roles[role], org.RoleSpec{Use: &set}, false); err != nil {
		t.Fatal(err)
	}
}

// as is an http.Client whose requests are of a sender; header is added.
type as struct {
	sender string
	header map[string]string
}

// RoundTrip implements http.RoundTripper.
func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sender", a.sender)
	for name, value := range a.header {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client; "" is its newest version.
func (h *house) connect(t testing.TB, sender, path, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: h.url + path, HTTPClient: &http.Client{Transport: as{sender: sender}}, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// names lists what a client sees.
func names(t testing.TB, session *sdk.ClientSession) string {
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

func said(r *sdk.CallToolResult) string {
	if len(r.Content) != 1 {
		return "not one content"
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	if text == nil {
		return "no text"
	}
	return text.Text
}

// answer is what came back of a raw request.
type answer struct {
	status int
	header http.Header
	body   string
}

// post sends a body as it is.
func (h *house) post(t testing.TB, sender, path, body string, header map[string]string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return h.send(t, sender, r, header)
}

func (h *house) send(t testing.TB, sender string, r *http.Request, header map[string]string) answer {
	t.Helper()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	got, err := as{sender, header}.RoundTrip(r)
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

// initialize begins a session by hand and gives its id.
func (h *house) initialize(t testing.TB, sender, path string, header map[string]string) string {
	t.Helper()
	got := h.post(t, sender, path, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, header)
	id := got.header.Get("Mcp-Session-Id")
	if got.status != http.StatusOK || id == "" {
		t.Fatalf("initialize was answered %d %s", got.status, got.body)
	}
	return id
}

// modern are the headers of a request without a session.
func modern(method, name string) map[string]string {
	h := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return h
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func decode(t testing.TB, body string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}
