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

type launched struct {
	Browser string `json:"browser"`
	TabID   string `json:"tabId"`
}

func (h *handlers) launch(ctx context.Context, s *contextLease, _ launchIn) (launched, error) {
	t, err := s.find(ctx, "")
	if err != nil {
		return launched{}, err
	}
	return launched{s.program.version, t.id}, nil
}

// shown is what a tab shows after something was done in it.
type shown struct {
	TabID       string   `json:"tabId"`
	URL         string   `json:"url"`
	Title       string   `json:"title"`
	Status      int      `json:"status,omitempty"`      // of the answer that the page came with
	Loading     bool     `json:"loading,omitempty"`     // it was still loading when the call ended
	Dialogs     int      `json:"dialogs,omitempty"`     // dismissed meanwhile
	Windows     int      `json:"windows,omitempty"`     // that it could not open
	Unreachable []string `json:"unreachable,omitempty"` // "host:port: code" of what it did not get
}

type newTabIn struct {
	URL       string `json:"url,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

func (h *handlers) newTab(ctx context.Context, s *contextLease, in newTabIn) (shown, error) {
	where := in.URL
	if where == "" {
		where = blank
	}
	clean, err := s.proxy.reach.target(ctx, where)
	if err != nil {
		return shown{}, err
	}
	t, err := s.open(ctx)
	if err != nil {
		return shown{}, err
	}
	return visit(ctx, s, t.id, clean, in.WaitMs, in.TimeoutMs)
}

type navigateIn struct {
	URL       string `json:"url"`
	TabID     string `json:"tabId,omitempty"`
	WaitMs    int    `json:"waitMs,omitempty"`
	TimeoutMs int    `json:"timeoutMs,omitempty"`
}

func (h *handlers) navigate(ctx context.Context, s *contextLease, in navigateIn) (shown, error) {
	clean, err := s.proxy.reach.target(ctx, in.URL)
	if err != nil {
		return shown{}, err
	}
	return visit(ctx, s, in.TabID, clean, in.WaitMs, in.TimeoutMs)
}

// visit has a tab go to a URL that target gave.
func visit(ctx context.Context, s *contextLease, id, clean string, waitMs, timeoutMs int) (shown, error) {
	return on(ctx, s, id, millis(timeoutMs, 30*time.Second)+millis(waitMs, 0), func(ctx context.Context, t *tab) (shown, error) {
		went, err := call(ctx, t.session, page.Navigate, page.NavigateParams{URL: clean})
		switch {
		case err != nil:
			return shown{}, err
		case went.IsDownload:
			return shown{}, errcode.New(errcode.ToolExecutionFailed, "chrome_navigate: the address is a download, and downloads are off; fetch it with http_request if that is yours")
		case went.ErrorText != "":
			return shown{}, s.proxy.fault(clean, went.ErrorText)
		}
		late := t.loaded(ctx, went.LoaderID, millis(waitMs, 0))
		out, err := t.show(ctx)
		if err != nil {
			return shown{}, err
		}
		out.Loading = late
		if out.Status == http.StatusForbidden || out.Status == http.StatusBadGateway { // the proxy's answers
			return out, s.proxy.refusedPage(out.URL)
		}
		return out, nil
	})
}

// loaded waits until a document has loaded, and d more; true when it has not
// in the time there is, less what it takes to look at it.
func (t *tab) loaded(ctx context.Context, id cdp.LoaderID, d time.Duration) bool {
	if id == "" { // within the document that is there
		pause(ctx, d)
		return false
	}
	most := 10 * time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		most = time.Until(deadline) * 9 / 10
	}
	short, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := t.await(short, func() bool {
		return slices.Contains(t.loaders, id) && (slices.Contains(t.reached, "load") || !t.busy) // one that breaks off stops
	})
	pause(short, d)
	return err != nil
}

// settle waits for what a click or a key began, and d more; true when a page
// is still loading.
func (t *tab) settle(ctx context.Context, d time.Duration) bool {
	begin, cancel := context.WithTimeout(ctx, 150*time.Millisecond)
	err := t.await(begin, func() bool { return t.busy })
	cancel()
	if err == nil {
		most, stop := context.WithTimeout(ctx, 15*time.Second)
		err = t.await(most, func() bool { return !t.busy })
		stop()
		pause(ctx, d)
		return err != nil
	}
	pause(ctx, d)
	return false
}

// show says what the tab shows.
func (t *tab) show(ctx context.Context) (shown, error) {
	out, err := ask[shown](ctx, t, `() => ({url: location.href.slice(0, 8192), title: document.title.slice(0, 1000),
		status: performance.getEntriesByType('navigation')[0]?.responseStatus || 0})`, nil)
	out.TabID, out.Dialogs, out.Windows, out.Unreachable = t.id, t.dismissed(), t.room.takeRejected(), t.room.proxy.refused.codes()
	return out, err
}

// blank is the empty page.
const blank = "about:blank"

// target checks what a tab is asked to show, and spells it as it was checked.
// It may be a page of http or https, about:blank, or a document written into a
// data: URL, which can reach no more than a page.
func (r accessPolicy) target(ctx context.Context, text string) (string, error) {
	if text == blank || strings.HasPrefix(text, "data:") {
		return text, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", errcode.Wrap(errcode.InvalidURL, err, "the url cannot be read; write https://host/path?query, with special characters %%-encoded")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", errcode.New(errcode.InvalidURL, "a tab shows https, http where the operator allows it, data: and about:blank, not %.20q", u.Scheme)
	case u.Opaque != "" || u.Host == "":
		return "", errcode.New(errcode.InvalidURL, "the url names no host; write https://host/path")
	case u.User != nil:
		return "", errcode.New(errcode.InvalidURL, "the url holds a user name; log in on the page")
	}
	host, err := hosts.FromURL(u)
	if err != nil {
		return "", errcode.New(errcode.InvalidURL, "the url: %v", err)
	}
	if u.Scheme == "http" {
		if err := r.checkPlainHTTP(); err != nil {
			return "", err
		}
	}
	u.Host = host.String()
	return u.String(), r.check(ctx, host)
}

// fault says why a page could not be had.
func (p *proxy) fault(where, text string) error {
	if err := p.refusedPage(where); err != nil {
		return err
	}
	if err := p.refused.first(); err != nil { // where it was redirected
		return err
	}
	return errcode.New(errcode.ToolExecutionFailed, "the page could not be had: %.100s", text)
}

// refusedPage says why the host of a page was refused, nil when it was not.
func (p *proxy) refusedPage(where string) error {
	u, err := url.Parse(where)
	if err != nil {
		return nil
	}
	host, err := hosts.FromURL(u)
	if err != nil {
		return nil
	}
	return p.refused.of(host.String())
}
