package chrome

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/rolecall/rolecall/errcode"
)

// browserContext is the browser context of one principal, with its way out.
type browserContext struct {
	program *browserProcess
	id      cdp.BrowserContextID
	proxy   *proxy
	view    Size
	most    int    // tabs
	helper  string // what the script of evaluate.go is called in pages

	mu           sync.Mutex // guards what follows
	tabs         []*tab     // the one used last is last
	rejectedTabs int        // tabs that were one too many
	closed       bool
	arrived      chan struct{} // closed, and another, when tabs change
}

// newRoom makes a browser context and gives it the key to its proxy.
func newRoom(ctx context.Context, p *browserProcess, r accessPolicy, s Settings) (*browserContext, error) {
	out, err := newProxy(r, s.MaxTransfer)
	if err != nil {
		return nil, err
	}
	m := &browserContext{program: p, proxy: out, view: s.Viewport, most: s.MaxTabs, helper: "r" + rand.Text(), arrived: make(chan struct{})}
	if err := m.create(ctx); err != nil {
		m.close(context.WithoutCancel(ctx))
		return nil, err
	}
	return m, nil
}

func (r *browserContext) create(ctx context.Context) error {
	made, err := call(ctx, r.program.root, target.CreateBrowserContext, target.CreateBrowserContextParams{
		ProxyServer: r.proxy.url(), ProxyBypassList: "<-loopback>",
	})
	if err != nil {
		return err
	}
	r.id = made.BrowserContextID
	r.program.mu.Lock()
	r.program.contexts[r.id] = r
	r.program.mu.Unlock()
	_, err = call(ctx, r.program.root, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: r.id,
	})
	if err != nil {
		return err
	}
	return r.authenticateProxy(ctx)
}

// authenticateProxy has the context learn the key of its proxy, which it then shows with
// every request: no other program can use the proxy, and no page sees the key.
func (r *browserContext) authenticateProxy(ctx context.Context) error {
	t, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer t.close(ctx)
	t.setProxyKey(r.proxy.key)
	yes := true
	if _, err := call(ctx, t.session, fetch.Enable, fetch.EnableParams{HandleAuthRequests: &yes}); err != nil {
		return err
	}
	went, err := call(ctx, t.session, page.Navigate, page.NavigateParams{URL: "http://" + keyHost + "/"})
	if err == nil && !r.proxy.known.Load() {
		err = fmt.Errorf("the browser does not show its key to its proxy: %s", went.ErrorText)
	}
	return err
}

// close ends the context, its pages and its connections.
func (r *browserContext) close(ctx context.Context) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.program.mu.Lock()
	delete(r.program.contexts, r.id)
	r.program.mu.Unlock()
	if r.id != "" {
		ctx, cancel := context.WithTimeout(ctx, quickTimeout)
		_, _ = call(ctx, r.program.root, target.DisposeBrowserContext, target.DisposeBrowserContextParams{BrowserContextID: r.id}) // its proxy is closed in any case
		cancel()
	}
	r.proxy.close()
}

// add takes in a page; false when there are too many.
func (r *browserContext) add(t *tab) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.tabs) >= r.most {
		r.rejectedTabs++
		return false
	}
	r.tabs = append(r.tabs, t)
	close(r.arrived)
	r.arrived = make(chan struct{})
	return true
}

func (r *browserContext) remove(t *tab) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tabs = slices.DeleteFunc(r.tabs, func(o *tab) bool { return o == t })
}

// list gives the tabs, the one used last is last.
func (r *browserContext) list() []*tab {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tabs)
}

// takeRejected counts the windows that pages could not open since it was asked.
func (r *browserContext) takeRejected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.rejectedTabs
	r.rejectedTabs = 0
	return n
}

// open makes an empty tab.
func (r *browserContext) open(ctx context.Context) (*tab, error) {
	if len(r.list()) >= r.most {
		return nil, errcode.New(errcode.RateLimited, "you have %d tabs, which is the limit; close one with chrome_close_tab", r.most)
	}
	made, err := call(ctx, r.program.root, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: r.id})
	if err != nil {
		return nil, err
	}
	for {
		r.mu.Lock()
		at := slices.IndexFunc(r.tabs, func(t *tab) bool { return t.target == made.TargetID })
		if at >= 0 {
			t := r.tabs[at]
			r.mu.Unlock()
			return t, nil
		}
		arrived := r.arrived
		r.mu.Unlock()
		select {
		case <-arrived:
		case <-r.program.root.lost:
			return nil, errBrowserGone
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// find gives a tab by its id, or the one used last for "": one is opened when
// there is none. It is the one used last from now on.
func (r *browserContext) find(ctx context.Context, id string) (*tab, error) {
	r.mu.Lock()
	at := slices.IndexFunc(r.tabs, func(t *tab) bool { return t.id == id })
	if id == "" {
		at = len(r.tabs) - 1
	}
	if at >= 0 {
		t := r.tabs[at]
		r.tabs = append(slices.Delete(r.tabs, at, at+1), t)
		r.mu.Unlock()
		return t, nil
	}
	r.mu.Unlock()
	if id == "" {
		return r.open(ctx)
	}
	return nil, errcode.New(errcode.InvalidArguments, "there is no tab %.64q; chrome_list_tabs lists those there are", id)
}

// newTabID names a tab to its principal.
func newTabID() string { return "tab_" + strings.ToLower(rand.Text()[:8]) }
