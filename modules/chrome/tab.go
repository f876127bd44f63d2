package chrome

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

var (
	// errClosed is the cause of the context of a closed tab.
	errClosed = errors.New("the tab was closed")
	// errCrashed is the cause of the context of a tab whose page crashed.
	errCrashed = errors.New("the page crashed, or used up its memory")
)

// tab is one page of a browser.
type tab struct {
	id      string // for models
	target  target.ID
	owner   *browserContext
	session session
	ctx     context.Context // ends with the tab; its cause is why
	cancel  context.CancelCauseFunc

	mu       sync.Mutex // guards what follows
	loaders  []cdp.LoaderID
	events   []string // of the last of loaders: DOMContentLoaded, load
	loading  bool
	dialogs  int    // dismissed since takeDialogs
	proxyKey string // used once; "" is no key
	changed  chan struct{}
}

func newTab(s session, id target.ID, r *browserContext) *tab {
	t := &tab{id: newTabID(), target: id, owner: r, session: s, changed: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

// setUp configures a new page and lets its scripts run. It does not wait for replies: the
// browser executes commands in order.
func (t *tab) setUp() {
	s, yes := t.session, true
	err := errors.Join(
		post(s, page.Enable, page.EnableParams{}),
		post(s, inspector.Enable, cdp.Empty{}),
		post(s, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: true}),
		post(s, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: &yes}),
		post(s, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: t.owner.settings.Viewport.Width, Height: t.owner.settings.Viewport.Height, DeviceScaleFactor: 1,
		}),
		post(s, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: helperScript(t.owner.helperName), RunImmediately: &yes}),
		post(s, runtime.RunIfWaitingForDebugger, cdp.Empty{}),
	)
	if err != nil {
		t.cancel(err)
	}
}

// setProxyKey sets the proxy's key, with which the tab authenticates once.
func (t *tab) setProxyKey(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proxyKey = key
}

// withContext returns a context that ends with ctx and with the tab. The caller calls the
// function to release it.
func (t *tab) withContext(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// close closes the tab.
func (t *tab) close(ctx context.Context) error {
	t.owner.remove(t)
	_, err := call(ctx, t.owner.browser.root, target.CloseTarget, target.CloseTargetParams{TargetID: t.target})
	t.cancel(errClosed)
	return err
}

// handleEvent handles an event of the page.
func (t *tab) handleEvent(m *cdproto.Message) {
	switch m.Method {
	case cdproto.EventPageLifecycleEvent:
		if e, ok := decode[page.EventLifecycleEvent](m); ok && t.isMain(e.FrameID) {
			t.update(func() { t.onLifecycleEvent(e) })
		}
	case cdproto.EventPageFrameStartedLoading:
		if e, ok := decode[page.EventFrameStartedLoading](m); ok && t.isMain(e.FrameID) {
			t.update(func() { t.loading = true })
		}
	case cdproto.EventPageFrameStoppedLoading:
		if e, ok := decode[page.EventFrameStoppedLoading](m); ok && t.isMain(e.FrameID) {
			t.update(func() { t.loading = false })
		}
	case cdproto.EventPageJavascriptDialogOpening:
		if e, ok := decode[page.EventJavascriptDialogOpening](m); ok {
			t.dismissDialog(e.Type)
		}
	case cdproto.EventInspectorTargetCrashed:
		t.onCrash()
	case cdproto.EventFetchRequestPaused, cdproto.EventFetchAuthRequired:
		t.onFetchEvent(m)
	}
}

// isMain reports whether a frame is the main frame.
func (t *tab) isMain(f cdp.FrameID) bool { return string(f) == string(t.target) }

// update changes the state of the page and wakes waitUntil.
func (t *tab) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	close(t.changed)
	t.changed = make(chan struct{})
}

// onLifecycleEvent must be called with mu held.
func (t *tab) onLifecycleEvent(e page.EventLifecycleEvent) {
	if len(t.loaders) == 0 || t.loaders[len(t.loaders)-1] != e.LoaderID {
		if slices.Contains(t.loaders, e.LoaderID) { // of an earlier document
			return
		}
		t.loaders, t.events = append(t.loaders, e.LoaderID), nil
		t.loaders = t.loaders[max(0, len(t.loaders)-16):]
	}
	if e.Name == "load" || e.Name == "DOMContentLoaded" {
		t.events = append(t.events, e.Name)
	}
}

// dismissDialog cancels a dialog. It accepts a beforeunload dialog, so that the page can be
// left.
func (t *tab) dismissDialog(kind page.DialogType) {
	t.update(func() { t.dialogs++ })
	accept := kind == page.DialogTypeBeforeunload
	if err := post(t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: accept}); err != nil {
		t.cancel(err)
	}
}

// onCrash closes the tab of a page that crashed.
func (t *tab) onCrash() {
	t.owner.remove(t)
	t.cancel(errCrashed)
	_ = post(t.owner.browser.root, target.CloseTarget, target.CloseTargetParams{TargetID: t.target}) // an error means that the browser has ended
}

// onFetchEvent continues a paused request, and answers an authentication request of the proxy
// with the key.
func (t *tab) onFetchEvent(m *cdproto.Message) {
	if e, ok := decode[fetch.EventRequestPaused](m); ok && m.Method == cdproto.EventFetchRequestPaused {
		_ = post(t.session, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID}) // authenticateProxy notices a failure
		return
	}
	e, ok := decode[fetch.EventAuthRequired](m)
	if !ok {
		return
	}
	t.mu.Lock()
	key := t.proxyKey
	t.proxyKey = ""
	t.mu.Unlock()
	answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	if key != "" && e.AuthChallenge != nil && e.AuthChallenge.Source == fetch.AuthChallengeSourceProxy {
		answer = &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: key, Password: "-"}
	}
	_ = post(t.session, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: answer})
}

// waitUntil waits until ready reports true. It calls ready with mu held.
func (t *tab) waitUntil(ctx context.Context, ready func() bool) error {
	for {
		t.mu.Lock()
		ok, changed := ready(), t.changed
		t.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-t.session.lost:
			return errBrowserGone
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// takeDialogs returns how many dialogs were dismissed since the last call of it.
func (t *tab) takeDialogs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.dialogs
	t.dialogs = 0
	return n
}
