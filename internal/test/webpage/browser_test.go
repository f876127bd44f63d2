package webpage_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience limits how long a test waits for the page. The machine may be busy.
const patience = 60 * time.Second

// chromium is the process that all tests share. A browser takes a second to start.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

// newBrowser returns a browser with a profile of its own, which its tabs share, until the end
// of the test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	chromium.once.Do(startChromium)
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	browser, stop := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	if _, err := chromedp.Run(browser, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	return browser
}

func startChromium() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		chromium.err = errors.New("chromium is not installed: run make deps")
		return
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1360, 860))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	chromium.ctx, chromium.stop = ctx, func() { stop(); cancel() }
	_, chromium.err = chromedp.Run(ctx, chromedp.Navigate("about:blank"))
}

// stopChromium ends the shared process and removes its files.
func stopChromium() {
	if chromium.stop != nil {
		chromium.stop()
	}
}

// tab is a tab of a browser. It collects what a page must not do.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex // guards problems
	problems []string
}

// openTab opens an empty tab that will show pages of the server.
func openTab(t *testing.T, browser context.Context, s *server) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	p := &tab{t: t, ctx: ctx, base: s.url}
	_, err := chromedp.Run(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	if err == nil {
		err = chromedp.Listen(ctx, p.observe)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// observe notes errors of the console, violations of the policy, and requests to other origins.
func (p *tab) observe(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.note("exception: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			p.note(fmt.Sprintf("console %s: %v", e.Type, e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" && e.Entry.Source != "network" || e.Entry.Source == "security" {
			p.note("log: " + e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && (u.Scheme == "http" || u.Scheme == "https") && !strings.HasPrefix(e.Request.URL, p.base+"/") {
			p.note("request to " + e.Request.URL)
		}
	}
}

func (p *tab) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, text)
}

// checkProblems reports what observe has noted since the last check.
func (p *tab) checkProblems(where string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.problems {
		p.t.Errorf("%s: %s", where, text)
	}
	p.problems = nil
}

// open goes to an address below the server and waits until the page is drawn.
func (p *tab) open(path string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Navigate(p.base+path)); err != nil {
		p.t.Fatal(err)
	}
	p.wait(`document.querySelector("h1") !== null`)
}

// signIn opens the page and signs a user in.
func (p *tab) signIn(user string) {
	p.t.Helper()
	p.open("/")
	p.wait(`document.activeElement?.name === "token"`)
	p.press(tokenOf(user) + "\r")
	p.wait(`document.querySelector("nav") !== null && document.querySelector("main").dataset.place !== undefined`)
}

// goTo goes to a place of the page and waits until its data is drawn.
func (p *tab) goTo(hash string) {
	p.t.Helper()
	p.eval(fmt.Sprintf("location.hash = %q; 0", hash))
	p.wait(fmt.Sprintf(`document.querySelector("main").dataset.place === %q`, hash))
}

// press types keys. "\r" is Enter.
func (p *tab) press(keys string) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.KeyEvent(keys)); err != nil {
		p.t.Fatal(err)
	}
}

// eval evaluates an expression, which may be a promise.
func (p *tab) eval(expression string) any {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return value
}

// text returns the text that the page shows.
func (p *tab) text() string { return fmt.Sprint(p.eval("document.body.innerText")) }

// wait waits until an expression is true.
func (p *tab) wait(expression string) {
	p.t.Helper()
	p.waitFor(expression, patience)
}

// waitFor does the same with a time limit.
func (p *tab) waitFor(expression string, limit time.Duration) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(limit), chromedp.WithPollingInterval(20*time.Millisecond))); err != nil {
		p.t.Fatalf("wait for %s: %v\nthe page shows:\n%s", expression, err, p.text())
	}
}

// waitText waits until the page shows a text.
func (p *tab) waitText(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}
