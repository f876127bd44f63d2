//go:build linux

package chrome_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
)

// floods are scripts by which a page may fill the memory of its browser.
var floods = map[string]string{
	"blobs": `(async () => { window.all = []; for (;;) { all.push(new Blob([new Uint8Array(64 << 20).fill(7)])); await all.at(-1).slice(0, 1).text() } })()`,
	"database": `(async () => { const open = indexedDB.open('a'); open.onupgradeneeded = () => open.result.createObjectStore('s');
		await new Promise(r => open.onsuccess = r);
		for (let n = 0;; n++) await new Promise((r, f) => { const t = open.result.transaction('s', 'readwrite');
			t.objectStore('s').put(new Uint8Array(16 << 20).fill(7), n); t.oncomplete = r; t.onabort = f }) })()`,
	"history": `(async () => { for (let n = 0;; n++) { history.pushState('a'.repeat(8 << 20) + n, '', '#' + n); await new Promise(r => setTimeout(r)) } })()`,
	"arrays":  `(async () => { window.all = []; for (;;) { all.push(new Uint8Array(32 << 20).fill(7)); await 0 } })()`,
}

// A page that fills the memory costs its principal alone, who is told. Tabs and cookies of others
// stay.
func TestPool_FloodEndsOwnBrowserOnly(t *testing.T) {
	fx := newOwnFixture(t, `{"maxMemory": 536870912}`)
	s := serveSite(t, map[string]string{"/": "<p>page"}, nil)
	bob := fx.agent(t)
	tab := bob.mustCall("chrome_navigate", obj{"url": s.URL}).TabID
	bob.wantValue(`document.cookie = 'a=1'`, `"a=1"`)
	for name, script := range floods {
		ann := fx.agent(t)
		ann.mustCall("chrome_navigate", obj{"url": s.URL})
		got := ann.call("chrome_evaluate", obj{"expression": script, "timeoutMs": 5000})
		ended := strings.Contains(got.Message, "your browser was closed, because")
		crashed := strings.Contains(got.Message, "the page crashed, or used up its memory") // the kernel ended its process first
		stopped := got.Error == errcode.RequestTimeout || strings.Contains(got.Message, "allocation failed")
		if !ended && !crashed && !stopped {
			t.Errorf("%s: filling the memory: %s %s", name, got.Error, got.Message)
		}
		if list := bob.mustCall("chrome_list_tabs", nil); len(list.Tabs) != 1 || list.Tabs[0].TabID != tab || list.Lost != "" {
			t.Fatalf("%s: bob has %+v", name, list)
		}
		bob.wantValue(`document.cookie`, `"a=1"`)
		ann.mustCall("chrome_navigate", obj{"url": s.URL})
	}
}

// Tabs that need little memory each, but together more than the limit, end their browser. This is
// outside the sandbox, where no control group limits it.
func TestPool_LimitsMemoryOfAllTabs(t *testing.T) {
	a := newOwnFixture(t, `{"maxMemory": 536870912, "noSandbox": true}`).agent(t)
	var told string
	for range 4 {
		opened := a.call("chrome_new_tab", nil)
		filled := a.call("chrome_evaluate", obj{"expression": "window.a = new Uint8Array(120 << 20).fill(7); 1"})
		told += opened.Lost + opened.Message + filled.Lost + filled.Message
	}
	for end := time.Now().Add(10 * time.Second); told == "" && time.Now().Before(end); { // it is measured every second
		got := a.call("chrome_list_tabs", nil)
		told = got.Lost + got.Message
	}
	if !strings.Contains(told, "its pages used more than 536870912 bytes of memory, which is the limit") {
		t.Errorf("the browser ended with %q", told)
	}
}

// Without a sandbox of the system Chromium's own has to work, which it does not for root.
func TestModule_NeedsSandbox(t *testing.T) {
	fx := newOwnFixture(t, `{}`)
	m, err := chrome.New(chrome.Deps{})(modules.Config{Name: "chrome"})
	if err != nil {
		t.Fatal(err)
	}
	fx.Module = m
	for _, tl := range m.ToolGroups()[0].Tools {
		fx.tools[tl.Definition().Name] = tl
	}
	if a := fx.agent(t); os.Getuid() == 0 {
		a.wantError(errcode.ToolUnavailable, "set noSandbox", "chrome_launch", nil)
	} else {
		a.mustCall("chrome_launch", nil)
	}
}

// The principal of a browser that ended without a call is told with the next result, once.
func TestPool_TellsLossOnce(t *testing.T) {
	processes := newProcesses(t)
	a := newOwnFixture(t, `{"maxMemory": 536870912}`).agent(t)
	s := serveSite(t, map[string]string{"/": "<p>page"}, nil)
	a.mustCall("chrome_navigate", obj{"url": s.URL})
	if err := syscall.Kill(processes()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const want = "your browser was closed, because it ended unexpectedly, perhaps of a page that needed too much memory: 1 tabs, cookies and storage are gone"
	got := a.call("chrome_list_tabs", nil)
	for len(got.Tabs) > 0 { // it is ending
		got = a.call("chrome_list_tabs", nil)
	}
	if got.Lost != want && !strings.HasSuffix(got.Message, want) {
		t.Errorf("got %+v", got)
	}
	if got := a.mustCall("chrome_list_tabs", nil); got.Lost != "" {
		t.Errorf("told twice: %q", got.Lost)
	}
}

// A new principal gets the place of the browser that was used least recently.
func TestPool_ClosesLeastRecentlyUsedBrowser(t *testing.T) {
	fx := newOwnFixture(t, `{"maxBrowsers": 2, "keep": "0s"}`)
	ann, bob, cid := fx.agent(t), fx.agent(t), fx.agent(t)
	ann.mustCall("chrome_launch", nil)
	bob.mustCall("chrome_launch", nil)
	ann.mustCall("chrome_list_tabs", nil)
	cid.mustCall("chrome_launch", nil)
	if got := ann.mustCall("chrome_list_tabs", nil); len(got.Tabs) != 1 || got.Lost != "" {
		t.Errorf("ann has %+v", got)
	}
	bob.wantError(errcode.ToolExecutionFailed, "your browser was closed, because another caller needed its place", "chrome_content", obj{"selector": "#none"})
}

// A browser with a call in progress keeps its place.
func TestPool_KeepsBrowserInUse(t *testing.T) {
	fx := newOwnFixture(t, `{"maxBrowsers": 1, "keep": "0s"}`)
	ann, bob := fx.agent(t), fx.agent(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	s := serveSite(t, map[string]string{"/": "<p>page"}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(asked)
			<-answer
		}
	})
	ann.mustCall("chrome_navigate", obj{"url": s.URL})
	done := make(chan string)
	go func() {
		got, err := ann.tryCall(t.Context(), "chrome_evaluate", obj{"expression": "fetch('/slow').then(() => 1)"})
		done <- fmt.Sprint(string(got.Value), err)
	}()
	<-asked
	bob.wantError(errcode.RateLimited, "in use by others", "chrome_launch", nil)
	close(answer)
	if got := <-done; got != "1<nil>" {
		t.Errorf("got %s", got)
	}
	bob.mustCall("chrome_launch", nil)
}

// Between calls the pages and workers of a browser get no processor: at once after a call that
// timed out, else after some seconds. They go on with the next call.
func TestPool_PausesPagesBetweenCalls(t *testing.T) {
	for name, settings := range map[string]string{"in the sandbox": `{"background": "0s"}`, "outside": `{"background": "0s", "noSandbox": true}`} {
		processes := newProcesses(t)
		a := newOwnFixture(t, settings).agent(t)
		s := serveSite(t, map[string]string{"/": "<p>page"}, nil)
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		a.mustCall("chrome_evaluate", obj{"expression": `window.n = 0; setInterval(() => n++, 1); new Worker(URL.createObjectURL(new Blob(['for (;;) ;']))); 1`})
		wantPaused(t, name, processes())
		a.wantValue(`new Promise(r => { const at = n; setInterval(() => n > at + 5 && r('goes on'), 1) })`, `"goes on"`)
	}
}

func TestPool_PausesPagesAfterTimeout(t *testing.T) {
	processes := newProcesses(t)
	a := newOwnFixture(t, `{"background": "1h"}`).agent(t)
	a.mustCall("chrome_navigate", obj{"url": "data:text/html,a"})
	if state := stat(processes()[0])[0]; state == "T" {
		t.Error("the browser is paused at once after a call")
	}
	a.wantError(errcode.RequestTimeout, "", "chrome_evaluate", obj{"timeoutMs": 300,
		"expression": `new Worker(URL.createObjectURL(new Blob(['for (;;) ;']))); new Promise(() => {})`})
	wantPaused(t, "after a timeout", processes())
	a.wantValue("1 + 1", "2")
}

// wantPaused checks that all processes of a browser are stopped.
func wantPaused(t *testing.T, when string, all []int) {
	t.Helper()
	if len(all) < 3 {
		t.Errorf("%s: %d processes, want 3 or more", when, len(all))
	}
	end := time.Now().Add(5 * time.Second)
	for _, pid := range all {
		state := "R"
		for state != "T" && time.Now().Before(end) { // the signal is on its way
			state = "ended"
			if fields := stat(pid); len(fields) > 0 {
				state = fields[0]
			}
		}
		if state != "T" {
			t.Errorf("%s: process %d is %s, want T (stopped)", when, pid, state)
		}
	}
}

// No program of the host starts for a link with another scheme.
func TestBrowser_StartsNoExternalHandler(t *testing.T) {
	for _, settings := range []string{`{"executable": %q}`, `{"executable": %q, "noSandbox": true}`} {
		dir := useTempDir(t)
		writeScript(t, dir+"/handler", "exec sleep 60 # a program that a user has configured")
		writeScript(t, dir+"/chromium", `export BROWSER="`+dir+`/handler"; exec chromium "$@"`)
		a := newOwnFixture(t, fmt.Sprintf(settings, dir+"/chromium")).agent(t)
		s := serveSite(t, map[string]string{
			"/mail": "<script>location.href = 'mailto:a@example.com?subject=external-handler'</script>",
			"/tel":  "<script>location.href = 'tel:+1-external-handler'</script>",
			"/own":  "<script>location.href = 'magnet:external-handler'</script>",
		}, nil)
		for _, path := range []string{"/mail", "/tel", "/own"} {
			a.mustCall("chrome_navigate", obj{"url": s.URL + path, "waitMs": 700})
		}
		for _, line := range commandLines(t) {
			if bytes.Contains(line, []byte("/handlers/")) {
				continue // one of ours, which does nothing
			}
			if bytes.Contains(line, []byte("external-handler")) || bytes.Contains(line, []byte(dir+"/handler")) {
				t.Errorf("%s: a handler runs: %q", settings, line)
			}
		}
	}
}

// writeScript writes a shell script.
func writeScript(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// commandLines returns the command lines of all processes but those of browsers.
func commandLines(t *testing.T) (lines [][]byte) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && !bytes.Contains(line, []byte("--")) {
			lines = append(lines, line)
		}
	}
	return lines
}

// A site that answers as a proxy does is refused, and blocks no calls to others.
func TestProxy_RejectsProxyChallengeOfSite(t *testing.T) {
	s := serveSite(t, map[string]string{"/": "<p>page"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="site"`)
		w.WriteHeader(http.StatusProxyAuthRequired)
	})
	for _, fx := range []*fixture{sharedFixture(t), newOwnFixture(t, `{"noSandbox": true}`)} {
		a := fx.agent(t)
		a.wantError(errcode.ToolExecutionFailed, "HTTP 407", "chrome_navigate", obj{"url": s.URL + "/challenge"})
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		a.wantValue(`fetch('/challenge').then(r => r.status)`, "403")
		a.wantValue(`fetch('/').then(r => r.status)`, "200")
		a.mustCall("chrome_navigate", obj{"url": s.URL})
	}
}

// A site that clears its cookies makes the browser forget the key of its proxy. The next call
// gives it back, even if there are as many tabs as there may be.
func TestProxy_KeySurvivesClearedCookies(t *testing.T) {
	s := serveSite(t, map[string]string{"/": "<p>page"}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/clear" { // browsers request icons
			w.Header().Set("Clear-Site-Data", `"*"`)
		}
	})
	for _, fx := range []*fixture{newOwnFixture(t, `{"maxTabs": 1}`), newOwnFixture(t, `{"maxTabs": 1, "noSandbox": true}`)} {
		a := fx.agent(t)
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		a.call("chrome_evaluate", obj{"timeoutMs": 1000, "expression": `fetch('/clear').then(() => fetch('/'))`})
		a.call("chrome_navigate", obj{"url": s.URL}) // a slow browser may lose the key in this call
		a.mustCall("chrome_navigate", obj{"url": s.URL})
		a.wantValue(`fetch('/').then(r => r.status)`, "200")
	}
}

// helperEnv makes the test binary start a browser with this directory and wait.
const helperEnv = "ROLECALL_TEST_BROWSER"

// A program that is killed leaves no process and no directory of its browsers.
func TestModule_KilledProgramLeavesNoFolder(t *testing.T) {
	external.Skip(t, "a browser")
	if settings := os.Getenv(helperEnv); settings != "" {
		a := agent{t, newFixture(t, settings, nil), identity.ByAgent("ann")}
		a.mustCall("chrome_navigate", obj{"url": "data:text/html,a"})
		fmt.Println("\nready")
		select {}
	}
	for _, settings := range []string{`{}`, `{"noSandbox": true}`} {
		dir, processes := useTempDir(t), newProcesses(t)
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), helperEnv+"="+settings)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitForLine(t, out, "ready")
		all := processes()
		if len(all) < 3 {
			t.Errorf("the browser has %d processes", len(all))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		wantGone(t, func() bool { return !anyExists(all) }, "processes of the browser are left")
		wantGone(t, func() bool { found, _ := filepath.Glob(dir + "/*"); return len(found) == 0 }, "files of the browser are left: "+settings)
	}
}

func anyExists(pids []int) bool {
	for _, pid := range pids {
		if fields := stat(pid); len(fields) > 0 && fields[0] != "Z" {
			return true
		}
	}
	return false
}

// waitForLine reads until a line arrives.
func waitForLine(t *testing.T, from io.Reader, want string) {
	t.Helper()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		if lines.Text() == want {
			return
		}
	}
	t.Fatalf("the program ended without the line %q", want)
}

// wantGone waits until gone reports true, for 10 seconds at most.
func wantGone(t *testing.T, gone func() bool, otherwise string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !gone(); {
		if time.Now().After(end) {
			t.Error(otherwise)
			return
		}
	}
}
