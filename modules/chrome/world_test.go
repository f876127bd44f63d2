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

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/tool"
)

type obj = map[string]any

// world is a module and what it needs of its process.
type world struct {
	modules.Module
	tools map[string]tool.Tool

	mu     sync.Mutex // guards what follows
	policy chrome.Policy
	deny   func(by identity.Principal, h hosts.Host) bool
	kept   [][]byte
}

// loopback lets everything on loopback be reached.
func loopback() chrome.Policy {
	return chrome.Policy{AllowHTTP: true, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Hosts: hosts.Any()}
}

// newWorld makes a module, or skips the test where there is no browser.
func newWorld(t *testing.T, settings string, resolver *net.Resolver) *world {
	t.Helper()
	short.SkipReal(t, "a browser")
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("there is no chromium on this machine: run make deps")
	}
	w := &world{policy: loopback()}
	m, err := chrome.New(chrome.Deps{
		Policy: func() chrome.Policy { w.mu.Lock(); defer w.mu.Unlock(); return w.policy },
		Hosts:  w, Artifacts: w, Resolver: resolver,
	})(modules.Config{Name: "chrome", Settings: json.RawMessage(settings)})
	if err != nil {
		t.Fatal(err)
	}
	w.Module, w.tools = m, map[string]tool.Tool{}
	for _, made := range m.Groups()[0].Tools {
		w.tools[made.Definition().Name] = made
	}
	return w
}

// own is a world of this test alone.
func own(t *testing.T, settings string) *world {
	w := newWorld(t, settings, nil)
	t.Cleanup(func() { w.close(t) })
	return w
}

func (w *world) close(t testing.TB) {
	if err := w.Module.(interface{ Close() error }).Close(); err != nil {
		t.Error(err)
	}
}

// common is the world of those tests that need no other.
var common struct {
	once sync.Once
	*world
}

func TestMain(m *testing.M) {
	code := m.Run()
	if common.world != nil {
		if err := common.Module.(interface{ Close() error }).Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared gives the common world as new: nobody has rules, loopback is open.
func shared(t *testing.T) *world {
	t.Helper()
	common.once.Do(func() { common.world = newWorld(t, `{"maxContexts": 200, "maxTabs": 4}`, nil) })
	if common.world == nil {
		t.SkipNow() // the first test said why
	}
	common.set(loopback(), nil)
	return common.world
}

func (w *world) set(p chrome.Policy, deny func(identity.Principal, hosts.Host) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy, w.deny = p, deny
}

func (w *world) MayReach(_ context.Context, by identity.Principal, h hosts.Host) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deny != nil && w.deny(by, h) {
		return errcode.New(errcode.HostBlocked, "%s may not reach %s", by, h)
	}
	return nil
}

func (w *world) PutImage(_ context.Context, _ tool.Call, _ string, data []byte, meta json.RawMessage) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept = append(w.kept, data, meta)
	return "artifact:1", nil
}

// answer is what any tool answers.
type answer struct {
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
	Size        int             `json:"size"`
	Ref         string          `json:"artifactRef"`
	Data        []byte          `json:"data"`
	MediaType   string          `json:"mediaType"`
	Width       int             `json:"width"`
	Height      int             `json:"height"`
	OK          bool            `json:"ok"`
	Tabs        []struct {
		TabID   string `json:"tabId"`
		URL     string `json:"url"`
		Current bool   `json:"current"`
	} `json:"tabs"`
}

// agent is somebody with a browser context of his own.
type agent struct {
	t *testing.T
	w *world
	identity.Principal
}

var agents atomic.Int64

// agent gives somebody new, whose tabs are closed in the end.
func (w *world) agent(t *testing.T) agent {
	a := agent{t, w, identity.ByAgent(identity.AgentID(fmt.Sprint("agent ", agents.Add(1))))}
	t.Cleanup(func() {
		for _, tab := range a.do("chrome_list_tabs", nil).Tabs {
			a.do("chrome_close_tab", obj{"tabId": tab.TabID})
		}
	})
	return a
}

// try calls a tool.
func (a agent) try(ctx context.Context, name string, args obj) (answer, error) {
	a.t.Helper()
	if args == nil {
		args = obj{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		a.t.Fatal(err)
	}
	schema, err := tool.Compile(a.w.tools[name].Definition().Input)
	if err == nil {
		err = schema.Parse(text)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	result, err := a.w.tools[name].Call(ctx, tool.Call{ID: "call", Name: name, Args: text, By: a.Principal})
	var out answer
	if err == nil {
		err = json.Unmarshal(result.JSON(), &out)
	}
	return out, err
}

// do calls a tool, whose answer may be a failure.
func (a agent) do(name string, args obj) answer {
	a.t.Helper()
	out, err := a.try(context.WithoutCancel(a.t.Context()), name, args)
	if err != nil {
		a.t.Fatalf("%s %v: %v", name, args, err)
	}
	return out
}

// must calls a tool that has to succeed.
func (a agent) must(name string, args obj) answer {
	a.t.Helper()
	out := a.do(name, args)
	if out.Error != "" {
		a.t.Fatalf("%s %v: %s: %s", name, args, out.Error, out.Message)
	}
	return out
}

// refused calls a tool that has to fail with a code and words.
func (a agent) refused(code errcode.Code, words, name string, args obj) answer {
	a.t.Helper()
	out := a.do(name, args)
	if out.Error != code || !strings.Contains(out.Message, words) {
		a.t.Errorf("%s %v: got %q %q, want %s with %q", name, args, out.Error, out.Message, code, words)
	}
	return out
}

// eval evaluates an expression and wants a value.
func (a agent) eval(expression, want string) {
	a.t.Helper()
	if got := string(a.must("chrome_evaluate", obj{"expression": expression}).Value); got != want {
		a.t.Errorf("%s: got %s, want %s", expression, got, want)
	}
}

// site serves pages by path, and counts connections.
type site struct {
	*httptest.Server
	connections atomic.Int64
}

func serve(t *testing.T, pages map[string]string, more http.HandlerFunc) *site {
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

func parsed(text string) (o obj) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	return o
}
