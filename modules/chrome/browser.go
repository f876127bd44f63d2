package chrome

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/rolecall/rolecall/internal/textutil"
)

// startTimeout is how long the browser may take to start.
const startTimeout = 60 * time.Second

// browserProcess is a running browser with its tabs.
type browserProcess struct {
	*process
	root    session // of the browser itself
	version string
	ended   chan struct{} // closed when it has ended and its files are removed
	err     error         // of ending it; set before ended is closed

	mu         sync.Mutex      // guards what follows
	context    *browserContext // nil until it is created
	tabs       map[target.SessionID]*tab
	overMemory bool // it was killed because it used too much memory
}

// startBrowser starts a browser and waits until it responds.
func startBrowser(ctx context.Context, s Settings, deps Deps, log *slog.Logger) (*browserProcess, error) {
	p := &browserProcess{ended: make(chan struct{}), tabs: make(map[target.SessionID]*tab)}
	var err error
	if p.process, err = launch(s, deps.Launcher, log); err != nil {
		return nil, err
	}
	p.root = session{newConn(p.in, p.out, p.handleEvent), ""}
	go p.watch()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err = p.handshake(ctx); err != nil {
		err = errors.Join(err, p.close())
		return nil, fmt.Errorf("start the browser: %w; it wrote: %s", err, textutil.SanitizeLines(p.stderr.String()))
	}
	return p, nil
}

// handshake makes the browser attach us to every page before its scripts run.
func (p *browserProcess) handshake(ctx context.Context) error {
	v, err := call(ctx, p.root, browser.GetVersion, cdp.Empty{})
	if err != nil {
		return err
	}
	p.version = v.Product
	flat := true
	_, err = call(ctx, p.root, target.SetAutoAttach, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &flat,
		Filter: target.Filter{{Type: "page"}, {Exclude: true}},
	})
	return err
}

// watch cleans up once the browser has ended, by itself or by close.
func (p *browserProcess) watch() {
	select {
	case <-p.root.lost:
	case <-p.done():
	}
	p.err = p.process.stop()
	p.root.close()
	close(p.ended)
}

// close ends the browser, and returns when its processes and files are gone.
func (p *browserProcess) close() error {
	p.kill()
	<-p.ended
	return p.err
}

// killOverMemory kills the browser because it uses too much memory.
func (p *browserProcess) killOverMemory() {
	p.mu.Lock()
	p.overMemory = true
	p.mu.Unlock()
	p.kill()
}

// endReason returns, after the end, why the browser ended, unless it was closed.
func (p *browserProcess) endReason(s Settings) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overMemory || p.outOfMemory() {
		return fmt.Sprintf("its pages used more than %d bytes of memory, which is the limit", s.MaxMemory)
	}
	return "it ended unexpectedly, perhaps of a page that needed too much memory"
}

// isAlive reports whether the browser is connected and running.
func (p *browserProcess) isAlive() bool {
	select {
	case <-p.root.lost:
		return false
	case <-p.done():
		return false
	default:
		return true
	}
}

// handleEvent handles an event of the browser or of a page.
func (p *browserProcess) handleEvent(m *cdproto.Message) {
	if m.SessionID != "" {
		if t := p.tab(m.SessionID); t != nil {
			t.handleEvent(m)
		}
		return
	}
	switch m.Method {
	case cdproto.EventTargetAttachedToTarget:
		if e, ok := decode[target.EventAttachedToTarget](m); ok && e.TargetInfo != nil {
			p.onAttached(e)
		}
	case cdproto.EventTargetDetachedFromTarget:
		if e, ok := decode[target.EventDetachedFromTarget](m); ok {
			p.onDetached(e.SessionID)
		}
	}
}

func (p *browserProcess) tab(id target.SessionID) *tab {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tabs[id]
}

// onAttached adds a new page, whose scripts do not run yet. It closes a page of the browser's
// default context, which is not used, and one above the limit of tabs.
func (p *browserProcess) onAttached(e target.EventAttachedToTarget) {
	p.mu.Lock()
	owner := p.context
	if owner != nil && owner.id != e.TargetInfo.BrowserContextID {
		owner = nil
	}
	t := newTab(session{p.root.conn, e.SessionID}, e.TargetInfo.TargetID, owner)
	if owner != nil {
		p.tabs[e.SessionID] = t
	}
	p.mu.Unlock()
	if owner == nil || !owner.add(t) {
		_ = post(p.root, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID})
		return
	}
	t.setUp()
}

func (p *browserProcess) onDetached(id target.SessionID) {
	p.mu.Lock()
	t := p.tabs[id]
	delete(p.tabs, id)
	p.mu.Unlock()
	if t != nil {
		t.owner.remove(t)
		t.cancel(errClosed)
	}
}
