package chrome_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/tool"
)

// useTempDir makes the browsers of this test use a new temporary directory, and returns it.
func useTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rc") // short, see shortTemp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// newProcesses lists the processes of the browsers that were started by this process after the
// returned function was made. Browser processes are the first.
func newProcesses(t *testing.T) func() []int {
	t.Helper()
	before := browserProcesses(t)
	return func() []int {
		t.Helper()
		return slices.DeleteFunc(browserProcesses(t), func(pid int) bool { return slices.Contains(before, pid) })
	}
}

// browserProcesses lists the descendants of this process that belong to browsers. Browser
// processes are the first.
func browserProcesses(t *testing.T) (pids []int) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		text, err := os.ReadFile(name + "/cmdline")
		at := pid
		for at > 1 && at != os.Getpid() {
			at = parentOf(at)
		}
		switch {
		case err != nil || at <= 1:
		case bytes.Contains(text, []byte("--type=")):
			pids = append(pids, pid)
		case bytes.Contains(text, []byte("--remote-debugging-pipe")):
			pids = append([]int{pid}, pids...)
		}
	}
	return pids
}

// stat returns the fields of a process in /proc after its name; none if it has ended.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

// parentOf returns the parent of a process, 0 if it has ended.
func parentOf(pid int) int {
	fields := stat(pid)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

func TestContexts_AreIsolated(t *testing.T) {
	fx := sharedFixture(t)
	ann, bob := fx.agent(t), fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<body>page"}, nil)
	tab := ann.mustCall("chrome_navigate", obj{"url": s.URL}).TabID
	ann.wantValue(`document.cookie = 'a=1; max-age=1000'; localStorage.a = 1; document.cookie`, `"a=1"`)
	bob.mustCall("chrome_navigate", obj{"url": s.URL})
	bob.wantValue(`document.cookie + (localStorage.a ?? '')`, `""`)
	bob.wantError(errcode.InvalidArguments, "there is no tab", "chrome_content", obj{"tabId": tab})
	bob.wantError(errcode.InvalidArguments, "there is no tab", "chrome_evaluate", obj{"tabId": tab, "expression": "1"})
	if bob.mustCall("chrome_close_tab", obj{"tabId": tab}).OK {
		t.Error("bob closed a tab of ann")
	}
	if list := bob.mustCall("chrome_list_tabs", nil).Tabs; len(list) != 1 || list[0].TabID == tab {
		t.Errorf("bob sees %+v", list)
	}
	for _, other := range []identity.Principal{identity.ByCaller("ann", "a"), identity.ByCaller("ann", "b"), identity.ByCaller("bob", "a")} {
		caller := agent{t, fx, other}
		caller.mustCall("chrome_navigate", obj{"url": s.URL})
		caller.wantValue(`const had = document.cookie; document.cookie = 'b=1'; had`, `""`)
		caller.mustCall("chrome_close_tab", obj{"tabId": caller.mustCall("chrome_list_tabs", nil).Tabs[0].TabID})
	}
	ann.wantValue(`document.cookie`, `"a=1"`)
	agent{t, fx, identity.Principal{}}.wantError(errcode.Unauthenticated, "authenticated caller", "chrome_launch", nil)
}

func TestBrowser_DeniesDownloads(t *testing.T) {
	dir := useTempDir(t)
	fx := newOwnFixture(t, `{}`)
	a := fx.agent(t)
	s := serveSite(t, map[string]string{"/": `<a href=/file>get</a><a href="data:text/plain,abc" download=abc.txt>make</a>`}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=downloaded.txt")
		_, _ = w.Write([]byte("file"))
	})
	a.mustCall("chrome_navigate", obj{"url": s.URL})
	a.wantError(errcode.ToolExecutionFailed, "downloads are off", "chrome_navigate", obj{"url": s.URL + "/file"})
	for _, link := range []string{"get", "make"} {
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		a.mustCall("chrome_click", obj{"text": link, "waitMs": 300})
	}
	_ = filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if strings.Contains(name, "downloaded") || strings.Contains(name, "abc") || strings.Contains(name, "crdownload") {
			t.Errorf("%s was written", name)
		}
		return nil
	})
}

func TestTab_DismissesDialogsAndLimitsWindows(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{
		"/":        `<script>window.said = [alert('a'), confirm('b'), prompt('c', 'd')]; onbeforeunload = e => e.preventDefault()</script><button>leave</button>`,
		"/windows": `<button onclick="for (let i = 0; i < 1000; i++) window.open('about:blank#' + i)">many</button>`,
	}, nil)
	if went := a.mustCall("chrome_navigate", obj{"url": s.URL}); went.Dialogs != 3 {
		t.Errorf("got %+v, want 3 dialogs", went)
	}
	a.wantValue("said", "[null,false,null]")
	a.mustCall("chrome_click", obj{"text": "leave"})
	a.mustCall("chrome_navigate", obj{"url": s.URL + "/windows"})
	a.mustCall("chrome_click", obj{"text": "many", "waitMs": 200})
	if list := a.mustCall("chrome_list_tabs", nil).Tabs; len(list) > 4 {
		t.Errorf("%d tabs are open, want 4 at most", len(list))
	}
	a.mustCall("chrome_navigate", obj{"url": s.URL})
}

// A hanging page ends its call, and does not affect other principals.
func TestTab_StopsHangingPages(t *testing.T) {
	fx := sharedFixture(t)
	ann, bob := fx.agent(t), fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<p>page", "/loop": "<p>loop<script>for (;;) {}</script>"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>slow</title><p>so far")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	bob.mustCall("chrome_navigate", obj{"url": s.URL})
	ann.mustCall("chrome_navigate", obj{"url": s.URL}) // her browser is open: a short timeout is the page's alone
	if slow := ann.mustCall("chrome_navigate", obj{"url": s.URL + "/slow", "timeoutMs": 4000}); !slow.Loading || slow.Title != "slow" {
		t.Errorf("a page that does not finish loading: %+v", slow)
	}
	ann.mustCall("chrome_navigate", obj{"url": s.URL})
	ann.wantError(errcode.RequestTimeout, "", "chrome_evaluate", obj{"expression": "for (;;) {}", "timeoutMs": 300})
	ann.wantValue("1", "1")
	ann.wantError(errcode.RequestTimeout, "", "chrome_evaluate", obj{"expression": "new Promise(() => {})", "timeoutMs": 300})
	ann.wantError(errcode.RequestTimeout, "", "chrome_navigate", obj{"url": s.URL + "/loop", "timeoutMs": 1000})
	bob.wantValue("document.body.innerText", `"page"`)
	ann.mustCall("chrome_navigate", obj{"url": s.URL})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ann.tryCall(ctx, "chrome_evaluate", obj{"expression": "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
}

// A page that manipulates its own built-in functions cannot produce results above the limits.
func TestTab_LimitsResultsOfHostilePages(t *testing.T) {
	a := sharedFixture(t).agent(t)
	s := serveSite(t, map[string]string{"/": `<p>page<script>
		JSON.stringify = () => 'a'.repeat(1e8); String.prototype.slice = () => 'b'.repeat(1e8);
		Object.defineProperty(Document.prototype, 'title', {get: () => 'c'.repeat(1e8)}); window.eval = () => 'd'.repeat(1e8);
		Array.prototype.toJSON = String.prototype.toJSON = () => 'e'.repeat(1e6);
		Promise.prototype.then = () => 0</script>`}, nil)
	if went := a.mustCall("chrome_navigate", obj{"url": s.URL}); went.Title != "/" {
		t.Errorf("title %.20q", went.Title)
	}
	a.wantError(errcode.ResultTooLarge, "", "chrome_evaluate", obj{"expression": "1"})
	if text := a.mustCall("chrome_content", nil).Content; text != "page" {
		t.Errorf("text %.20q", text)
	}
}

func TestBrowser_LimitsTransferAndMemory(t *testing.T) {
	fx := newOwnFixture(t, `{"maxTransfer": 1048576, "maxMemory": 536870912}`)
	ann, bob := fx.agent(t), fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<p>page"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for line := []byte(strings.Repeat("<p>much", 1000)); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	bob.mustCall("chrome_navigate", obj{"url": s.URL})
	start := time.Now()
	if got := ann.mustCall("chrome_navigate", obj{"url": s.URL + "/endless", "timeoutMs": 60000}).Unreachable; len(got) != 1 || !strings.HasSuffix(got[0], "result_too_large") {
		t.Errorf("an endless page: %v", got)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("an endless page was waited for %v after the limit", took)
	}
	ann.mustCall("chrome_navigate", obj{"url": s.URL})
	ann.wantError(errcode.ToolUnavailable, "memory", "chrome_evaluate", obj{"timeoutMs": 60000,
		"expression": "const all = []; for (;;) all.push(new Array(1e7).fill(1.5))"})
	bob.wantValue("document.body.innerText", `"page"`)
	ann.mustCall("chrome_navigate", obj{"url": s.URL})
}

func TestPool_RestartsBrowser(t *testing.T) {
	processes := newProcesses(t)
	fx := newOwnFixture(t, `{}`)
	a := fx.agent(t)
	s := serveSite(t, map[string]string{"/": "<p>page"}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/kill" { // browsers request icons
			return
		}
		if all := processes(); len(all) > 0 {
			if browser, err := os.FindProcess(all[0]); err == nil {
				_ = browser.Kill()
			}
		}
	})
	a.mustCall("chrome_navigate", obj{"url": s.URL})
	a.wantError(errcode.ToolUnavailable, "the browser ended", "chrome_evaluate", obj{"expression": "fetch('/kill').then(() => new Promise(() => {}))"})
	a.mustCall("chrome_navigate", obj{"url": s.URL})
	a.wantValue("document.body.innerText", `"page"`)
}

// An idle browser is closed, and its principal is told.
func TestPool_ClosesIdleBrowsers(t *testing.T) {
	processes := newProcesses(t)
	fx := newOwnFixture(t, `{"idle": "300ms"}`)
	a := fx.agent(t)
	gone := make(chan struct{}, 10)
	s := serveSite(t, map[string]string{"/": "<script>fetch('/stay')</script>"}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stay" { // browsers request icons
			return
		}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	tab := a.mustCall("chrome_navigate", obj{"url": s.URL}).TabID
	<-gone
	for len(processes()) > 0 { // the browser is ending
		continue
	}
	got := a.mustCall("chrome_list_tabs", nil)
	if len(got.Tabs) != 0 || !strings.Contains(got.Lost, "because it was not used for 300ms: 1 tabs, cookies and storage are gone") {
		t.Errorf("got %+v", got)
	}
	if again := a.mustCall("chrome_navigate", obj{"url": "about:blank"}); again.TabID == tab {
		t.Error("the tab still exists")
	}
}

func TestModule_CloseLeavesNoProcessOrFile(t *testing.T) {
	dir, processes := useTempDir(t), newProcesses(t)
	t.Setenv("TEST_SECRET", "very secret")
	fx := newFixture(t, `{}`, nil)
	a := agent{t, fx, identity.ByAgent("ann")}
	a.mustCall("chrome_navigate", obj{"url": "data:text/html,a"})
	all := processes()
	if len(all) < 2 {
		t.Fatalf("the processes of the browser are %v, want 2 or more", all)
	}
	for _, pid := range all {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(env, []byte("TEST_SECRET")) {
			t.Errorf("process %d has our environment", pid)
		}
	}
	if found, _ := filepath.Glob(dir + "/*"); found != nil {
		t.Errorf("the sandbox has files on the host: %v", found)
	}
	fx.close(t)
	fx.close(t)
	if left := processes(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if found, _ := filepath.Glob(dir + "/*"); found != nil {
		t.Errorf("files are left: %v", found)
	}
	a.wantError(errcode.ToolUnavailable, "closed", "chrome_launch", nil)
}

// A browser that was used a short time ago keeps its place.
func TestPool_LimitsBrowsers(t *testing.T) {
	fx := newOwnFixture(t, `{"maxBrowsers": 1}`)
	fx.agent(t).mustCall("chrome_launch", nil)
	fx.agent(t).wantError(errcode.RateLimited, "the 1 browsers that may run at once are in use", "chrome_launch", nil)
}

func TestNew_RejectsInvalidSettings(t *testing.T) {
	for settings, text := range map[string]string{
		`{"maxTabs": 0}`:                       "maxTabs",
		`{"maxBrowsers": 0}`:                   "maxBrowsers",
		`{"maxBrowsers": -1}`:                  "maxBrowsers",
		`{"maxBrowsers": 9223372036854775808}`: "maxBrowsers",
		`{"keep": "-1s"}`:                      "keep",
		`{"background": "-1s"}`:                "background",
		`{"maxMemory": 9223372036854775807}`:   "maxMemory",
		`{"idle": "0s"}`:                       "idle",
		`{"idle": "soon"}`:                     "soon",
		`{"viewport": {"width": 10}}`:          "viewport",
		`{"maxTransfer": 1}`:                   "maxTransfer",
		`{"maxMemory": 1}`:                     "maxMemory",
		`{"headless": true}`:                   "unknown field",
		`{"executable": "/no/such/chrome"}`:    "cannot be run",
	} {
		m, err := chrome.New(chrome.Deps{})(modules.Config{Name: "chrome", Settings: json.RawMessage(settings)})
		if err == nil {
			err = m.(modules.Validator).Validate()
		}
		if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v, want invalid_config with %q", settings, err, text)
		}
	}
}

func TestModule_ReachesNothingWithoutDeps(t *testing.T) {
	fx := newFixture(t, `{}`, nil)
	m, err := chrome.New(chrome.Deps{Launcher: launcher})(modules.Config{Name: "chrome"})
	if err != nil {
		t.Fatal(err)
	}
	noDeps := &fixture{Module: m, tools: map[string]tool.Tool{}}
	for _, tl := range m.ToolGroups()[0].Tools {
		noDeps.tools[tl.Definition().Name] = tl
	}
	t.Cleanup(func() { noDeps.close(t); fx.close(t) })
	a := noDeps.agent(t)
	s := serveSite(t, map[string]string{"/": "<p>page"}, nil)
	a.wantError(errcode.OnlyHTTPS, "", "chrome_navigate", obj{"url": s.URL})
	a.wantError(errcode.HostBlocked, "", "chrome_navigate", obj{"url": strings.Replace(s.URL, "http", "https", 1)})
}
