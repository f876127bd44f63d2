package chrome

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// startTime is how long a browser may take to start.
const startTime = 60 * time.Second

// browserProcess is a browser that runs, with the contexts there are in it.
type browserProcess struct {
	*process
	root    session
	version string
	ended   chan struct{} // closed when it has ended and its folder is gone
	err     error         // of the end; set before ended is closed

	mu       sync.Mutex // guards what follows
	contexts map[cdp.BrowserContextID]*browserContext
	tabs     map[target.SessionID]*tab
}

// newProgram starts a browser and waits until it answers.
func newProgram(ctx context.Context, s Settings) (*browserProcess, error) {
	executable, err := s.executable()
	if err != nil {
		return nil, err
	}
	p := &browserProcess{ended: make(chan struct{}), contexts: make(map[cdp.BrowserContextID]*browserContext), tabs: make(map[target.SessionID]*tab)}
	if p.process, err = launch(executable, s); err != nil {
		return nil, err
	}
	p.root = session{newConn(p.in, p.out, p.happened), ""}
	go p.watch()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err = p.handshake(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// handshake asks to be told of every page before it runs.
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

// watch cleans up behind a browser that has ended, by itself or not.
func (p *browserProcess) watch() {
	select {
	case <-p.root.lost:
	case <-p.done:
	}
	p.err = p.process.stop()
	p.root.close()
	close(p.ended)
}

// close ends the browser and returns when it is gone with its files.
func (p *browserProcess) close() error {
	p.root.transport.Close()
	<-p.ended
	return p.err
}

// alive says whether the browser answers, as far as is known.
func (p *browserProcess) alive() bool {
	select {
	case <-p.root.lost:
		return false
	case <-p.done:
		return false
	default:
		return true
	}
}

// happened takes what the browser tells of itself and of pages.
func (p *browserProcess) happened(m *cdproto.Message) {
	if m.SessionID != "" {
		if t := p.tab(m.SessionID); t != nil {
			t.happened(m)
		}
		return
	}
	switch m.Method {
	case cdproto.EventTargetAttachedToTarget:
		if e, ok := decode[target.EventAttachedToTarget](m); ok && e.TargetInfo != nil {
			p.attached(e)
		}
	case cdproto.EventTargetDetachedFromTarget:
		if e, ok := decode[target.EventDetachedFromTarget](m); ok {
			p.detached(e.SessionID)
		}
	}
}

func (p *browserProcess) tab(id target.SessionID) *tab {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tabs[id]
}

// attached takes in a new page, which does not run yet. What belongs to no
// context of ours, or is one too many, is closed.
func (p *browserProcess) attached(e target.EventAttachedToTarget) {
	p.mu.Lock()
	r := p.contexts[e.TargetInfo.BrowserContextID]
	t := newTab(session{p.root.conn, e.SessionID}, e.TargetInfo.TargetID, r)
	if r != nil {
		p.tabs[e.SessionID] = t
	}
	p.mu.Unlock()
	if r == nil || !r.add(t) {
		_ = post(p.root, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID})
		return
	}
	t.begin()
}

func (p *browserProcess) detached(id target.SessionID) {
	p.mu.Lock()
	t := p.tabs[id]
	delete(p.tabs, id)
	p.mu.Unlock()
	if t != nil {
		t.room.remove(t)
		t.end(errClosed)
	}
}
