package chrome

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

type launchIn struct{}

// launchOut is the result of chrome_launch.
type launchOut struct {
	Browser string `json:"browser"`
	TabID   string `json:"tabId"`
	notice
}

func (h *handlers) launch(ctx context.Context, s *leasedBrowser, _ launchIn) (launchOut, error) {
	t, err := s.findTab(ctx, "")
	if err != nil {
		return launchOut{}, err
	}
	return launchOut{Browser: s.browser.version, TabID: t.id}, nil
}

// pageOut is the result of calls that change what a tab shows.
type pageOut struct {
	TabID       string   `json:"tabId"`
	URL         string   `json:"url"`
	Title       string   `json:"title"`
	Status      int      `json:"status,omitempty"`      // HTTP status of the page
	Loading     bool     `json:"loading,omitempty"`     // the page was still loading when the call ended
	Dialogs     int      `json:"dialogs,omitempty"`     // that were dismissed
	Windows     int      `json:"windows,omitempty"`     // that the page could not open
	Unreachable []string `json:"unreachable,omitempty"` // "host:port: code" of blocked requests
	notice
}

type newTabIn struct {
	URL       string `json:"url,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

func (h *handlers) newTab(ctx context.Context, s *leasedBrowser, in newTabIn) (pageOut, error) {
	address := in.URL
	if address == "" {
		address = blank
	}
	checked, err := s.proxy.access.checkURL(ctx, address)
	if err != nil {
		return pageOut{}, err
	}
	t, err := s.openTab(ctx)
	if err != nil {
		return pageOut{}, err
	}
	return navigateTab(ctx, s, t.id, checked, in.WaitMs, in.TimeoutMs)
}

type navigateIn struct {
	URL       string `json:"url"`
	TabID     string `json:"tabId,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

func (h *handlers) navigate(ctx context.Context, s *leasedBrowser, in navigateIn) (pageOut, error) {
	checked, err := s.proxy.access.checkURL(ctx, in.URL)
	if err != nil {
		return pageOut{}, err
	}
	return navigateTab(ctx, s, in.TabID, checked, in.WaitMs, in.TimeoutMs)
}

// describeTimeout is how long a page may take to be described. It is added to the timeout
// of a navigation, so that a page that has not finished loading is described too.
const describeTimeout = 5 * time.Second

// navigateTab navigates a tab to a URL that checkURL returned.
func navigateTab(ctx context.Context, s *leasedBrowser, id, checked string, waitMs, timeoutMs int) (pageOut, error) {
	limit := milliseconds(timeoutMs, 30*time.Second) + milliseconds(waitMs, 0)
	return withTab(ctx, s, id, limit+describeTimeout, func(ctx context.Context, t *tab) (pageOut, error) {
		loadCtx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		result, err := call(loadCtx, t.session, page.Navigate, page.NavigateParams{URL: checked})
		switch {
		case err != nil:
			return pageOut{}, err
		case result.IsDownload:
			return pageOut{}, errcode.New(errcode.ToolExecutionFailed, "chrome_navigate: the URL is a download, and downloads are off; use http_request if you have it")
		case result.ErrorText != "":
			return pageOut{}, s.proxy.navigationError(checked, result.ErrorText)
		}
		loading := t.waitLoaded(loadCtx, result.LoaderID, milliseconds(waitMs, 0))
		out, err := t.describe(ctx)
		if err != nil {
			return pageOut{}, err
		}
		out.Loading = loading
		if out.Status == http.StatusForbidden || out.Status == http.StatusBadGateway { // the proxy answers with these
			return out, s.proxy.blockedReason(out.URL)
		}
		return out, nil
	})
}

// waitLoaded waits until a document has loaded, and then for d. It reports whether the
// document was still loading when ctx ended.
func (t *tab) waitLoaded(ctx context.Context, id cdp.LoaderID, d time.Duration) bool {
	if id == "" { // a navigation within the same document
		sleep(ctx, d)
		return false
	}
	receiving, release := t.owner.proxy.whileTransferring(ctx)
	err := t.waitUntil(receiving, func() bool {
		return slices.Contains(t.loaders, id) && (slices.Contains(t.events, "load") || !t.loading) // a load that fails only stops
	})
	release()
	sleep(ctx, d)
	return err != nil
}

// waitIdle waits for a load that a click or a key may have started, and then for d. It reports
// whether the page is still loading.
func (t *tab) waitIdle(ctx context.Context, d time.Duration) bool {
	startCtx, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
	err := t.waitUntil(startCtx, func() bool { return t.loading })
	cancel()
	if err == nil {
		loadCtx, stop := context.WithTimeout(ctx, 15*time.Second)
		receiving, release := t.owner.proxy.whileTransferring(loadCtx)
		err = t.waitUntil(receiving, func() bool { return !t.loading })
		release()
		stop()
		sleep(ctx, d)
		return err != nil
	}
	sleep(ctx, d)
	return false
}

// describe returns what the tab shows, and what was blocked since the last call.
func (t *tab) describe(ctx context.Context) (pageOut, error) {
	out, err := callInPage[pageOut](ctx, t, `() => ({url: location.href.slice(0, 8192), title: document.title.slice(0, 1000),
		status: performance.getEntriesByType('navigation')[0]?.responseStatus || 0})`, nil)
	out.TabID, out.Dialogs, out.Windows, out.Unreachable = t.id, t.takeDialogs(), t.owner.takeRejected(), t.owner.proxy.blocked.codes()
	return out, err
}

// blank is the empty page.
const blank = "about:blank"

// checkURL returns the normalized form of a URL that a tab may navigate to. It accepts http and
// https as far as the policy does, about:blank, and data: URLs, whose documents can reach no
// more than a page can.
func (a accessPolicy) checkURL(ctx context.Context, text string) (string, error) {
	if text == blank || strings.HasPrefix(text, "data:") {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errcode.Wrap(errcode.InvalidURL, err, "the url is malformed; write https://host/path?query, with special characters %%-encoded")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errcode.New(errcode.InvalidURL, "a tab can show https, http where the operator allows it, data: and about:blank, not %.20q", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return "", errcode.New(errcode.InvalidURL, "the url has no host; write https://host/path")
	case u.User != nil:
		return "", errcode.New(errcode.InvalidURL, "the url contains a user name; log in on the page")
	}
	host, err := hosts.FromURL(u)
	if err != nil {
		return "", errcode.New(errcode.InvalidURL, "the url: %v", err)
	}
	if u.Scheme == "http" {
		if err := a.checkPlainHTTP(); err != nil {
			return "", err
		}
	}
	u.Host = host.String()
	return u.String(), a.check(ctx, host)
}

// navigationError returns the error for a navigation that failed with text.
func (p *proxy) navigationError(address, text string) error {
	if err := p.blockedReason(address); err != nil {
		return err
	}
	if err := p.blocked.first(); err != nil { // after a redirect
		return err
	}
	return errcode.New(errcode.ToolExecutionFailed, "the page could not be loaded: %.100s", text)
}

// blockedReason returns why the host of a page is blocked, nil if it is not.
func (p *proxy) blockedReason(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	host, err := hosts.FromURL(u)
	if err != nil {
		return nil
	}
	return p.blocked.reason(host.String())
}
