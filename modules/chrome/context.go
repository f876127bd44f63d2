package chrome

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
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

// browserContext is the browser of one principal, with its own proxy. Its pages are in a browser
// context without a profile, which writes no cookies and no storage to files.
type browserContext struct {
	browser    *browserProcess
	id         cdp.BrowserContextID
	proxy      *proxy
	settings   Settings
	helperName string // the name of helperScript's function in pages; random, so that pages do not know it

	mu           sync.Mutex // guards what follows
	maxTabs      int
	tabs         []*tab // the last one is the one used last
	rejectedTabs int    // above maxTabs
	closed       bool
	tabsChanged  chan struct{} // closed and replaced when a tab is added
}

// newBrowserContext starts a browser and its proxy.
func newBrowserContext(ctx context.Context, access accessPolicy, s Settings, log *slog.Logger) (*browserContext, error) {
	p, err := startBrowser(ctx, s, access.Deps, log)
	if err != nil {
		return nil, err
	}
	c := &browserContext{browser: p, proxy: newProxy(p.process, access, s.MaxTransfer), settings: s, maxTabs: s.MaxTabs, helperName: "r" + rand.Text(), tabsChanged: make(chan struct{})}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *browserContext) create(ctx context.Context) error {
	created, err := call(ctx, c.browser.root, target.CreateBrowserContext, target.CreateBrowserContextParams{
		ProxyServer: c.proxy.url(), ProxyBypassList: "<-loopback>",
	})
	if err != nil {
		return err
	}
	c.id = created.BrowserContextID
	c.browser.mu.Lock()
	c.browser.context = c
	c.browser.mu.Unlock()
	_, err = call(ctx, c.browser.root, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorDeny, BrowserContextID: c.id,
	})
	if err != nil {
		return err
	}
	return c.authenticateProxy(ctx)
}

// restoreKey makes the browser authenticate again if it may have lost the key. A site that clears
// its cookies (Clear-Site-Data) makes Chromium forget the key, too.
func (c *browserContext) restoreKey(ctx context.Context) error {
	if !c.proxy.keyMissing.Load() {
		return nil
	}
	return c.authenticateProxy(ctx)
}

// authenticateProxy makes the browser authenticate to its proxy with the key, which it then
// sends with every request. No other program can use the proxy, and no page sees the key. A
// proxy that only the browser reaches needs no key.
func (c *browserContext) authenticateProxy(ctx context.Context) error {
	if c.proxy.private {
		return nil
	}
	c.allowTabs(c.settings.MaxTabs + 1)
	defer c.allowTabs(c.settings.MaxTabs)
	t, err := c.openTab(ctx)
	if err != nil {
		return err
	}
	defer t.close(ctx)
	c.proxy.keyShown.Store(false)
	t.setProxyKey(c.proxy.key)
	yes := true
	if _, err := call(ctx, t.session, fetch.Enable, fetch.EnableParams{HandleAuthRequests: &yes}); err != nil {
		return err
	}
	result, err := call(ctx, t.session, page.Navigate, page.NavigateParams{URL: "http://" + keyHost + "/"})
	if err == nil && !c.proxy.keyShown.Load() {
		err = fmt.Errorf("the browser does not authenticate to its proxy: %s", result.ErrorText)
	}
	c.proxy.keyMissing.Store(err != nil)
	return err
}

// allowTabs sets the limit of tabs.
func (c *browserContext) allowTabs(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxTabs = n
}

// close ends the browser and its connections.
func (c *browserContext) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.browser.close()
	c.proxy.close()
	return err
}

// add adds a tab. It reports false when there are maxTabs already.
func (c *browserContext) add(t *tab) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.tabs) >= c.maxTabs {
		c.rejectedTabs++
		return false
	}
	c.tabs = append(c.tabs, t)
	close(c.tabsChanged)
	c.tabsChanged = make(chan struct{})
	return true
}

func (c *browserContext) remove(t *tab) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tabs = slices.DeleteFunc(c.tabs, func(o *tab) bool { return o == t })
}

// list returns the tabs; the last one is the one used last.
func (c *browserContext) list() []*tab {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tabs)
}

// isFull reports whether there are as many tabs as there may be.
func (c *browserContext) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tabs) >= c.maxTabs
}

// takeRejected returns how many windows pages could not open since the last call of it.
func (c *browserContext) takeRejected() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.rejectedTabs
	c.rejectedTabs = 0
	return n
}

// openTab opens an empty tab.
func (c *browserContext) openTab(ctx context.Context) (*tab, error) {
	if c.isFull() {
		return nil, errcode.New(errcode.RateLimited, "you have %d tabs, which is the limit; close one with chrome_close_tab", c.settings.MaxTabs)
	}
	created, err := call(ctx, c.browser.root, target.CreateTarget, target.CreateTargetParams{URL: "about:blank", BrowserContextID: c.id})
	if err != nil {
		return nil, err
	}
	for {
		c.mu.Lock()
		at := slices.IndexFunc(c.tabs, func(t *tab) bool { return t.target == created.TargetID })
		if at >= 0 {
			t := c.tabs[at]
			c.mu.Unlock()
			return t, nil
		}
		arrived := c.tabsChanged
		c.mu.Unlock()
		select {
		case <-arrived:
		case <-c.browser.root.lost:
			return nil, errBrowserGone
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// findTab returns the tab with this id and makes it the one used last. For "" it returns the tab
// used last, or a new tab if there is no tab.
func (c *browserContext) findTab(ctx context.Context, id string) (*tab, error) {
	c.mu.Lock()
	at := slices.IndexFunc(c.tabs, func(t *tab) bool { return t.id == id })
	if id == "" {
		at = len(c.tabs) - 1
	}
	if at >= 0 {
		t := c.tabs[at]
		c.tabs = append(slices.Delete(c.tabs, at, at+1), t)
		c.mu.Unlock()
		return t, nil
	}
	c.mu.Unlock()
	if id == "" {
		return c.openTab(ctx)
	}
	return nil, errcode.New(errcode.InvalidArguments, "there is no tab %.64q; chrome_list_tabs lists your tabs", id)
}

// newTabID returns a random id for a tab.
func newTabID() string { return "tab_" + strings.ToLower(rand.Text()[:8]) }
