package chrome_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

type obj = map[string]any

// fixture is a module and its dependencies.
type fixture struct {
	modules.Module
	tools map[string]tool.Tool

	mu     sync.Mutex // guards what follows
	policy chrome.Policy
	deny   func(by identity.Principal, h hosts.Host) bool
	images [][]byte
}

// loopback returns a policy that allows all addresses of loopback.
func loopback() chrome.Policy {
	return chrome.Policy{AllowHTTP: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Hosts: hosts.AnyHost()}
}

// newFixture returns a module with these settings. With -short it skips the test.
func newFixture(t *testing.T, settings string, resolver *net.Resolver) *fixture {
	t.Helper()
	external.Skip(t, "a browser")
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("chromium is not installed: run make deps")
	}
	fx := &fixture{policy: loopback()}
	m, err := chrome.New(chrome.Deps{
		Launcher: launcher, Policy: func() chrome.Policy { fx.mu.Lock(); defer fx.mu.Unlock(); return fx.policy },
		Hosts: fx, Artifacts: fx, Resolver: resolver,
	})(modules.Config{Name: "chrome", Settings: json.RawMessage(settings)})
	if err != nil {
		t.Fatal(err)
	}
	fx.Module, fx.tools = m, map[string]tool.Tool{}
	for _, tl := range m.ToolGroups()[0].Tools {
		fx.tools[tl.Definition().Name] = tl
	}
	return fx
}

// newOwnFixture returns a module for this test alone, and closes it.
func newOwnFixture(t *testing.T, settings string) *fixture {
	fx := newFixture(t, settings, nil)
	t.Cleanup(func() { fx.close(t) })
	return fx
}

func (fx *fixture) close(t testing.TB) {
	if err := fx.Module.(interface{ Close() error }).Close(); err != nil {
		t.Error(err)
	}
}

// common is the fixture of sharedFixture.
var common struct {
	once sync.Once
	*fixture
}

// launcher runs the browsers in the sandbox.
var launcher *sandbox.Launcher

func TestMain(m *testing.M) {
	launcher = sandbox.Enter(nil)
	code := m.Run()
	if common.fixture != nil {
		if err := common.Module.(interface{ Close() error }).Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// sharedFixture returns the common fixture, with a policy that allows loopback for all principals.
func sharedFixture(t *testing.T) *fixture {
	t.Helper()
	common.once.Do(func() { common.fixture = newFixture(t, `{"maxBrowsers": 8, "keep": "0s", "maxTabs": 4}`, nil) })
	if common.fixture == nil {
		t.SkipNow() // the first test reported why
	}
	common.setPolicy(loopback(), nil)
	return common.fixture
}

// setPolicy sets the policy, and the hosts that Hosts denies.
func (fx *fixture) setPolicy(p chrome.Policy, deny func(identity.Principal, hosts.Host) bool) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.policy, fx.deny = p, deny
}

func (fx *fixture) MayReach(_ context.Context, by identity.Principal, h hosts.Host) error {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if fx.deny != nil && fx.deny(by, h) {
		return errcode.New(errcode.HostBlocked, "%s may not reach %s", by, h)
	}
	return nil
}

func (fx *fixture) PutImage(_ context.Context, _ tool.Call, _ string, data []byte, meta json.RawMessage) (string, error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.images = append(fx.images, data, meta)
	return "artifact:1", nil
}

// toolResult has the fields of the results of all tools.
type toolResult struct {
	Error       errcode.Code    `json:"error"`
	Message     string          `json:"message"`
	Browser     string          `json:"browser"`
	TabID       string          `json:"tabId"`
	URL         string          `json:"url"`
	Title       string          `json:"title"`
	Status      int             `json:"status"`
	Loading     bool            `json:"loading"`
	Dialogs     int             `json:"dialogs"`
	Windows     int             `json:"windows"`
	Unreachable []string        `json:"unreachable"`
	Element     string          `json:"element"`
	Value       json.RawMessage `json:"value"`
	Content     string          `json:"content"`
	Length      int             `json:"length"`
	Truncated   bool            `json:"truncated"`
	NextOffset  int             `json:"nextOffset"`
	Size        int             `json:"size"`
	Ref         string          `json:"artifactRef"`
	Data        []byte          `json:"data"`
	MediaType   string          `json:"mediaType"`
	Width       int             `json:"width"`
	Height      int             `json:"height"`
	OK          bool            `json:"ok"`
	Lost        string          `json:"lost"`
	Tabs        []struct {
		TabID   string `json:"tabId"`
		URL     string `json:"url"`
		Current bool   `json:"current"`
	} `json:"tabs"`
}

// agent is a principal with its own browser.
type agent struct {
	t  *testing.T
	fx *fixture
	identity.Principal
}

var agents atomic.Int64

// agent returns a new agent, whose tabs are closed at the end of the test.
func (fx *fixture) agent(t *testing.T) agent {
	a := agent{t, fx, identity.ByAgent(identity.AgentID(fmt.Sprint("agent ", agents.Add(1))))}
	t.Cleanup(func() {
		for _, tab := range a.call("chrome_list_tabs", nil).Tabs {
			a.call("chrome_close_tab", obj{"tabId": tab.TabID})
		}
	})
	return a
}

// tryCall calls a tool with arguments that fit its schema.
func (a agent) tryCall(ctx context.Context, name string, args obj) (toolResult, error) {
	a.t.Helper()
	if args == nil {
		args = obj{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	schema, err := argschema.Compile(a.fx.tools[name].Definition().Input)
	if err == nil {
		err = schema.Parse(text)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	result, err := a.fx.tools[name].Call(ctx, tool.Call{ID: "call", Name: name, Args: text, By: a.Principal})
	var out toolResult
	if err == nil {
		err = json.Unmarshal(result.JSON(), &out)
	}
	return out, err
}

// call calls a tool; the result may be a failure.
func (a agent) call(name string, args obj) toolResult {
	a.t.Helper()
	out, err := a.tryCall(context.WithoutCancel(a.t.Context()), name, args)
	if err != nil {
		a.t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

// mustCall calls a tool and checks that it succeeds.
func (a agent) mustCall(name string, args obj) toolResult {
	a.t.Helper()
	out := a.call(name, args)
	if out.Error != "" {
		a.t.Fatalf("%s %v: %s: %s", name, args, out.Error, out.Message)
	}
	return out
}

// wantError calls a tool and checks that it fails with this code and text.
func (a agent) wantError(code errcode.Code, text, name string, args obj) toolResult {
	a.t.Helper()
	out := a.call(name, args)
	if out.Error != code || !strings.Contains(out.Message, text) {
		a.t.Errorf("%s %v: got %q %q, want %s with %q", name, args, out.Error, out.Message, code, text)
	}
	return out
}

// wantValue checks the value of an expression in the page.
func (a agent) wantValue(expression, want string) {
	a.t.Helper()
	if got := string(a.mustCall("chrome_evaluate", obj{"expression": expression}).Value); got != want {
		a.t.Errorf("%s: got %s, want %s", expression, got, want)
	}
}

// site serves pages by path, and counts connections.
type site struct {
	*httptest.Server
	connections atomic.Int64
}

// serveSite starts a site with these pages; more answers requests for other paths.
func serveSite(t *testing.T, pages map[string]string, more http.HandlerFunc) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		switch {
		case ok:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<!doctype html><title>" + r.URL.Path + "</title>" + page))
		case more != nil:
			more(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// parseObj parses a JSON object.
func parseObj(text string) (o obj) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}
