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
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/tool"
)

// ownProcessGroup gives a folder that holds all the browsers of this test keep.
func ownProcessGroup(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "rc") // short, see shortTemp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	t.Setenv("TMPDIR", folder)
	return folder
}

// processes lists the browser's processes of a folder, its own first process
// before those it started.
func processes(t *testing.T, folder string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || !bytes.Contains(text, []byte(folder)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if !bytes.Contains(text, []byte("--type=")) && bytes.Contains(text, []byte("--remote-debugging-pipe")) {
			pids = append([]int{pid}, pids...)
		} else {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestPrincipalsShareNothing(t *testing.T) {
	w := shared(t)
	ann, bob := w.agent(t), w.agent(t)
	s := serve(t, map[string]string{"/": "<body>page"}, nil)
	tab := ann.must("chrome_navigate", obj{"url": s.URL}).TabID
	ann.eval(`document.cookie = 'a=1; max-age=1000'; localStorage.a = 1; document.cookie`, `"a=1"`)
	bob.must("chrome_navigate", obj{"url": s.URL})
	bob.eval(`document.cookie + (localStorage.a ?? '')`, `""`)
	bob.refused(errcode.InvalidArguments, "there is no tab", "chrome_content", obj{"tabId": tab})
	bob.refused(errcode.InvalidArguments, "there is no tab", "chrome_evaluate", obj{"tabId": tab, "expression": "1"})
	if bob.must("chrome_close_tab", obj{"tabId": tab}).OK {
		t.Error("bob closed a tab of ann's")
	}
	if list := bob.must("chrome_list_tabs", nil).Tabs; len(list) != 1 || list[0].TabID == tab {
		t.Errorf("bob sees %+v", list)
	}
	for _, other := range []identity.Principal{identity.ByCaller("ann", "a"), identity.ByCaller("ann", "b"), identity.ByCaller("bob", "a")} {
		who := agent{t, w, other}
		who.must("chrome_navigate", obj{"url": s.URL})
		who.eval(`const had = document.cookie; document.cookie = 'b=1'; had`, `""`)
		who.must("chrome_close_tab", obj{"tabId": who.must("chrome_list_tabs", nil).Tabs[0].TabID})
	}
	ann.eval(`document.cookie`, `"a=1"`)
	agent{t, w, identity.Principal{}}.refused(errcode.Unauthenticated, "nobody", "chrome_launch", nil)
}

func TestDownloadsAreOff(t *testing.T) {
	folder := ownProcessGroup(t)
	w := own(t, `{}`)
	a := w.agent(t)
	s := serve(t, map[string]string{"/": `<a href=/file>get</a><a href="data:text/plain,abc" download=abc.txt>make</a>`}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=downloaded.txt")
		_, _ = w.Write([]byte("file"))
	})
	a.must("chrome_navigate", obj{"url": s.URL})
	a.refused(errcode.ToolExecutionFailed, "downloads are off", "chrome_navigate", obj{"url": s.URL + "/file"})
	for _, link := range []string{"get", "make"} {
		a.must("chrome_navigate", obj{"url": s.URL})
		a.must("chrome_click", obj{"text": link, "waitMs": 300})
	}
	_ = filepath.WalkDir(folder, func(name string, _ os.DirEntry, err error) error {
		if strings.Contains(name, "downloaded") || strings.Contains(name, "abc") || strings.Contains(name, "crdownload") {
			t.Errorf("%s was written", name)
		}
		return nil
	})
}

func TestDialogsAndWindowsHoldNothingUp(t *testing.T) {
	a := shared(t).agent(t)
	s := serve(t, map[string]string{
		"/":        `<script>window.said = [alert('a'), confirm('b'), prompt('c', 'd')]; onbeforeunload = e => e.preventDefault()</script><button>leave</button>`,
		"/windows": `<button onclick="for (let i = 0; i < 1000; i++) window.open('about:blank#' + i)">many</button>`,
	}, nil)
	if went := a.must("chrome_navigate", obj{"url": s.URL}); went.Dialogs != 3 {
		t.Errorf("got %+v, want 3 dialogs", went)
	}
	a.eval("said", "[null,false,null]")
	a.must("chrome_click", obj{"text": "leave"})
	a.must("chrome_navigate", obj{"url": s.URL + "/windows"})
	a.must("chrome_click", obj{"text": "many", "waitMs": 200})
	if list := a.must("chrome_list_tabs", nil).Tabs; len(list) > 4 {
		t.Errorf("there are %d tabs", len(list))
	}
	a.must("chrome_navigate", obj{"url": s.URL})
}

// A page that does not come back ends its call, and nothing of others.
func TestPagesThatHang(t *testing.T) {
	w := shared(t)
	ann, bob := w.agent(t), w.agent(t)
	s := serve(t, map[string]string{"/": "<p>page", "/loop": "<p>loop<script>for (;;) {}</script>"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>slow</title><p>so far")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	bob.must("chrome_navigate", obj{"url": s.URL})
	if slow := ann.must("chrome_navigate", obj{"url": s.URL + "/slow", "timeoutMs": 1000}); !slow.Loading || slow.Title != "slow" {
		t.Errorf("a page that does not end: %+v", slow)
	}
	ann.must("chrome_navigate", obj{"url": s.URL})
	ann.refused(errcode.RequestTimeout, "", "chrome_evaluate", obj{"expression": "for (;;) {}", "timeoutMs": 300})
	ann.eval("1", "1")
	ann.refused(errcode.RequestTimeout, "", "chrome_evaluate", obj{"expression": "new Promise(() => {})", "timeoutMs": 300})
	ann.refused(errcode.RequestTimeout, "", "chrome_navigate", obj{"url": s.URL + "/loop", "timeoutMs": 1000})
	bob.eval("document.body.innerText", `"page"`)
	ann.must("chrome_navigate", obj{"url": s.URL})

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ann.try(ctx, "chrome_evaluate", obj{"expression": "1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was ended: %v", err)
	}
}

// What a page does to what answers for it, it does to itself.
func TestAPageCannotFloodAnswers(t *testing.T) {
	a := shared(t).agent(t)
	s := serve(t, map[string]string{"/": `<p>page<script>
		JSON.stringify = () => 'a'.repeat(1e8); String.prototype.slice = () => 'b'.repeat(1e8);
		Object.defineProperty(Document.prototype, 'title', {get: () => 'c'.repeat(1e8)}); window.eval = () => 'd'.repeat(1e8);
		Array.prototype.toJSON = String.prototype.toJSON = () => 'e'.repeat(1e6);
		Promise.prototype.then = () => 0</script>`}, nil)
	if went := a.must("chrome_navigate", obj{"url": s.URL}); went.Title != "/" {
		t.Errorf("title %.20q", went.Title)
	}
	a.refused(errcode.ResultTooLarge, "", "chrome_evaluate", obj{"expression": "1"})
	if text := a.must("chrome_content", nil).Content; text != "page" {
		t.Errorf("text %.20q", text)
	}
}

func TestPagesHaveLimits(t *testing.T) {
	w := own(t, `{"maxTransfer": 1048576, "maxMemory": 536870912}`)
	ann, bob := w.agent(t), w.agent(t)
	s := serve(t, map[string]string{"/": "<p>page"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for line := []byte(strings.Repeat("<p>much", 1000)); r.Context().Err() == nil; {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	bob.must("chrome_navigate", obj{"url": s.URL})
	if got := ann.must("chrome_navigate", obj{"url": s.URL + "/endless"}).Unreachable; len(got) != 1 || !strings.HasSuffix(got[0], "result_too_large") {
		t.Errorf("an endless page: %v", got)
	}
	ann.must("chrome_navigate", obj{"url": s.URL})
	ann.refused(errcode.ToolUnavailable, "memory", "chrome_evaluate", obj{"timeoutMs": 60000,
		"expression": "const all = []; for (;;) all.push(new Array(1e7).fill(1.5))"})
	bob.eval("document.body.innerText", `"page"`)
	ann.must("chrome_navigate", obj{"url": s.URL})
}

func TestABrowserThatDiesIsStartedAgain(t *testing.T) {
	folder := ownProcessGroup(t)
	w := own(t, `{}`)
	a := w.agent(t)
	s := serve(t, map[string]string{"/": "<p>page"}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/kill" { // browsers ask for icons
			return
		}
		if all := processes(t, folder); len(all) > 0 {
			_ = syscall.Kill(all[0], syscall.SIGKILL)
		}
	})
	a.must("chrome_navigate", obj{"url": s.URL})
	a.refused(errcode.ToolUnavailable, "the browser ended", "chrome_evaluate", obj{"expression": "fetch('/kill').then(() => new Promise(() => {}))"})
	a.must("chrome_navigate", obj{"url": s.URL})
	a.eval("document.body.innerText", `"page"`)
	if found, _ := filepath.Glob(folder + "/*"); len(found) != 1 {
		t.Errorf("left are %v", found)
	}
}

// A context that nobody uses ends, the last one with the browser.
func TestIdleContextsEnd(t *testing.T) {
	folder := ownProcessGroup(t)
	w := own(t, `{"idle": "300ms"}`)
	a := w.agent(t)
	gone := make(chan struct{}, 10)
	s := serve(t, map[string]string{"/": "<script>fetch('/stay')</script>"}, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/stay" { // browsers ask for icons
			return
		}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	tab := a.must("chrome_navigate", obj{"url": s.URL}).TabID
	<-gone
	for len(processes(t, folder)) > 0 { // it is ending
		continue
	}
	if list := a.must("chrome_list_tabs", nil).Tabs; len(list) != 0 {
		t.Errorf("tabs are left: %+v", list)
	}
	if again := a.must("chrome_navigate", obj{"url": "about:blank"}); again.TabID == tab {
		t.Error("the tab is still there")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	folder := ownProcessGroup(t)
	t.Setenv("SECRET_OF_OURS", "very secret")
	w := newWorld(t, `{}`, nil)
	a := agent{t, w, identity.ByAgent("ann")}
	a.must("chrome_navigate", obj{"url": "data:text/html,a"})
	all := processes(t, folder)
	if len(all) < 2 {
		t.Fatalf("the browser is %v", all)
	}
	for _, pid := range all {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && bytes.Contains(env, []byte("SECRET_OF_OURS")) {
			t.Errorf("process %d has our environment", pid)
		}
	}
	w.close(t)
	w.close(t)
	if left := processes(t, folder); left != nil {
		t.Errorf("processes are left: %v", left)
	}
	if found, _ := filepath.Glob(folder + "/*"); found != nil {
		t.Errorf("files are left: %v", found)
	}
	a.refused(errcode.ToolUnavailable, "closed", "chrome_launch", nil)
}

func TestThereIsRoomForSome(t *testing.T) {
	w := own(t, `{"maxContexts": 1}`)
	w.agent(t).must("chrome_launch", nil)
	w.agent(t).refused(errcode.RateLimited, "others use the browser", "chrome_launch", nil)
}

func TestSettingsAreChecked(t *testing.T) {
	for settings, words := range map[string]string{
		`{"maxTabs": 0}`:                    "maxTabs",
		`{"maxContexts": 0}`:                "maxContexts",
		`{"idle": "0s"}`:                    "idle",
		`{"idle": "soon"}`:                  "soon",
		`{"viewport": {"width": 10}}`:       "viewport",
		`{"maxTransfer": 1}`:                "maxTransfer",
		`{"maxMemory": 1}`:                  "maxMemory",
		`{"headless": true}`:                "unknown field",
		`{"executable": "/no/such/chrome"}`: "cannot be run",
	} {
		m, err := chrome.New(chrome.Deps{})(modules.Config{Name: "chrome", Settings: json.RawMessage(settings)})
		if err == nil {
			err = m.(modules.Validator).Validate()
		}
		if errcode.Of(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want invalid_config with %q", settings, err, words)
		}
	}
}

func TestWithoutNeedsNothingIsReached(t *testing.T) {
	w := newWorld(t, `{}`, nil)
	m, err := chrome.New(chrome.Deps{})(modules.Config{Name: "chrome"})
	if err != nil {
		t.Fatal(err)
	}
	bare := &world{Module: m, tools: map[string]tool.Tool{}}
	for _, made := range m.Groups()[0].Tools {
		bare.tools[made.Definition().Name] = made
	}
	t.Cleanup(func() { bare.close(t); w.close(t) })
	a := bare.agent(t)
	s := serve(t, map[string]string{"/": "<p>page"}, nil)
	a.refused(errcode.OnlyHTTPS, "", "chrome_navigate", obj{"url": s.URL})
	a.refused(errcode.HostBlocked, "", "chrome_navigate", obj{"url": strings.Replace(s.URL, "http", "https", 1)})
}
