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
	errClosed  = errors.New("the tab was closed")
	errCrashed = errors.New("the page crashed, or used up its memory")
)

// tab is one page of a room.
type tab struct {
	id      string // for its principal
	target  target.ID
	room    *browserContext
	session session
	ctx     context.Context // ends with the tab; its cause says why
	end     context.CancelCauseFunc

	mu      sync.Mutex // guards what follows
	loaders []cdp.LoaderID
	reached []string // by the last of loaders: DOMContentLoaded, load
	busy    bool     // a load is under way
	dialogs int      // dismissed since it was asked
	key     string   // of the proxy; given once
	changed chan struct{}
}

func newTab(s session, id target.ID, r *browserContext) *tab {
	t := &tab{id: newTabID(), target: id, room: r, session: s, changed: make(chan struct{})}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

// begin sets a page up and lets it run. Nothing is waited for: the browser
// takes commands in order.
func (t *tab) begin() {
	s, yes := t.session, true
	err := errors.Join(
		post(s, page.Enable, page.EnableParams{}),
		post(s, inspector.Enable, cdp.Empty{}),
		post(s, page.SetLifecycleEventsEnabled, page.SetLifecycleEventsEnabledParams{Enabled: true}),
		post(s, page.SetInterceptFileChooserDialog, page.SetInterceptFileChooserDialogParams{Enabled: true, Cancel: &yes}),
		post(s, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: t.room.view.Width, Height: t.room.view.Height, DeviceScaleFactor: 1,
		}),
		post(s, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: helper(t.room.helper), RunImmediately: &yes}),
		post(s, runtime.RunIfWaitingForDebugger, cdp.Empty{}),
	)
	if err != nil {
		t.end(err)
	}
}

// setProxyKey gives the tab the key of its proxy, to be shown once.
func (t *tab) setProxyKey(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key = key
}

// within gives a context that ends with ctx, and with the tab.
func (t *tab) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// close closes the tab.
func (t *tab) close(ctx context.Context) error {
	t.room.remove(t)
	_, err := call(ctx, t.room.program.root, target.CloseTarget, target.CloseTargetParams{TargetID: t.target})
	t.end(errClosed)
	return err
}

// happened takes what the browser tells of the page.
func (t *tab) happened(m *cdproto.Message) {
	switch m.Method {
	case cdproto.EventPageLifecycleEvent:
		if e, ok := decode[page.EventLifecycleEvent](m); ok && t.isMain(e.FrameID) {
			t.note(func() { t.onLifecycleEvent(e) })
		}
	case cdproto.EventPageFrameStartedLoading:
		if e, ok := decode[page.EventFrameStartedLoading](m); ok && t.isMain(e.FrameID) {
			t.note(func() { t.busy = true })
		}
	case cdproto.EventPageFrameStoppedLoading:
		if e, ok := decode[page.EventFrameStoppedLoading](m); ok && t.isMain(e.FrameID) {
			t.note(func() { t.busy = false })
		}
	case cdproto.EventPageJavascriptDialogOpening:
		if e, ok := decode[page.EventJavascriptDialogOpening](m); ok {
			t.dismiss(e.Type)
		}
	case cdproto.EventInspectorTargetCrashed:
		t.crashed()
	case cdproto.EventFetchRequestPaused, cdproto.EventFetchAuthRequired:
		t.asked(m)
	}
}

// isMain says whether a frame is the whole page.
func (t *tab) isMain(f cdp.FrameID) bool { return string(f) == string(t.target) }

// note changes what is known of the page and tells those who wait.
func (t *tab) note(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	close(t.changed)
	t.changed = make(chan struct{})
}

// onLifecycleEvent wants mu held.
func (t *tab) onLifecycleEvent(e page.EventLifecycleEvent) {
	if len(t.loaders) == 0 || t.loaders[len(t.loaders)-1] != e.LoaderID {
		if slices.Contains(t.loaders, e.LoaderID) { // of a document that is gone
			return
		}
		t.loaders, t.reached = append(t.loaders, e.LoaderID), nil
		t.loaders = t.loaders[max(0, len(t.loaders)-16):]
	}
	if e.Name == "load" || e.Name == "DOMContentLoaded" {
		t.reached = append(t.reached, e.Name)
	}
}

// dismiss answers a dialog as somebody in a hurry does; a page that asks
// whether to leave is left.
func (t *tab) dismiss(kind page.DialogType) {
	t.note(func() { t.dialogs++ })
	leave := kind == page.DialogTypeBeforeunload
	if err := post(t.session, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: leave}); err != nil {
		t.end(err)
	}
}

func (t *tab) crashed() {
	t.room.remove(t)
	t.end(errCrashed)
	_ = post(t.room.program.root, target.CloseTarget, target.CloseTargetParams{TargetID: t.target}) // or it is gone with the browser
}

// asked lets a request go on, and shows the key where it is asked for.
func (t *tab) asked(m *cdproto.Message) {
	if e, ok := decode[fetch.EventRequestPaused](m); ok && m.Method == cdproto.EventFetchRequestPaused {
		_ = post(t.session, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID}) // unlock notices
		return
	}
	e, ok := decode[fetch.EventAuthRequired](m)
	if !ok {
		return
	}
	t.mu.Lock()
	key := t.key
	t.key = ""
	t.mu.Unlock()
	answer := &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	if key != "" && e.AuthChallenge != nil && e.AuthChallenge.Source == fetch.AuthChallengeSourceProxy {
		answer = &fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: key, Password: "-"}
	}
	_ = post(t.session, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: answer})
}

// await waits until ready, which sees the tab with mu held.
func (t *tab) await(ctx context.Context, ready func() bool) error {
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

// dismissed counts the dialogs since it was asked.
func (t *tab) dismissed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.dialogs
	t.dialogs = 0
	return n
}
