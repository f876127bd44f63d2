package chrome

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// quickTimeout is for commands that a working browser completes at once.
const quickTimeout = 2 * time.Second

// pool holds the browser, while there are contexts, and a browser context for each principal.
type pool struct {
	settings Settings
	deps     Deps
	log      *slog.Logger
	sem      chan struct{}  // holds a token while the browser or a context is created or closed
	closing  sync.WaitGroup // idle timers

	mu       sync.Mutex      // guards what follows
	browser  *browserProcess // nil while there are no contexts
	contexts map[identity.Principal]*leasedContext
	closed   bool
}

// leasedContext is a browser context with a count of the calls that use it.
type leasedContext struct {
	*browserContext
	calls      int         // in progress
	generation int         // increased by every call, so that an old idle timer does nothing
	idleTimer  *time.Timer // closes the context; nil while there are calls
}

func newPool(s Settings, deps Deps, log *slog.Logger) *pool {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &pool{settings: s, deps: deps, log: log, sem: make(chan struct{}, 1), contexts: make(map[identity.Principal]*leasedContext)}
}

// acquire returns the context of a principal, which it creates if there is none. The caller
// calls release.
func (p *pool) acquire(ctx context.Context, by identity.Principal) (*leasedContext, error) {
	if by.Kind == identity.None {
		return nil, errcode.New(errcode.Unauthenticated, "browser tools need an authenticated caller")
	}
	if s := p.acquireExisting(by); s != nil {
		return s, nil
	}
	select {
	case p.sem <- struct{}{}:
		defer func() { <-p.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := p.acquireExisting(by); s != nil { // created meanwhile
		return s, nil
	}
	if err := p.ensureBrowser(ctx); err != nil {
		return nil, err
	}
	r, err := newBrowserContext(ctx, p.browser, accessPolicy{p.deps, by}, p.settings)
	if err != nil {
		return nil, err
	}
	return p.add(by, r), nil
}

// acquireExisting is acquire for a context that exists; it returns nil if there is none.
func (p *pool) acquireExisting(by identity.Principal) *leasedContext {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.contexts[by]
	if s == nil || !s.browser.alive() {
		return nil
	}
	p.stopIdleTimer(s)
	s.calls++
	s.generation++
	return s
}

// add adds a new context with its first call.
func (p *pool) add(by identity.Principal, r *browserContext) *leasedContext {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &leasedContext{browserContext: r, calls: 1}
	p.contexts[by] = s
	return s
}

// release ends a call. The context is closed if no call uses it for the idle timeout.
func (p *pool) release(by identity.Principal, s *leasedContext) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.calls--; s.calls > 0 || p.closed {
		return
	}
	p.closing.Add(1)
	round := s.generation
	s.idleTimer = time.AfterFunc(time.Duration(p.settings.IdleTimeout), func() {
		defer p.closing.Done()
		p.expire(by, s, round)
	})
}

// ensureBrowser starts the browser if it is not running, and checks the limit of contexts. It
// must be called with sem held.
func (p *pool) ensureBrowser(ctx context.Context) error {
	p.mu.Lock()
	old, closed := p.browser, p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return errcode.New(errcode.ToolUnavailable, "the browser is closed: the module was unloaded")
	case old != nil && old.alive():
		return p.checkCapacity()
	case old != nil:
		p.log.Warn("browser ended; starting another one", "stderr", textutil.SanitizeLines(old.stderr.String()))
		p.shutDown()
	}
	started, err := startBrowser(ctx, p.settings)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.browser = started
	p.mu.Unlock()
	return nil
}

// checkCapacity returns an error if there are MaxContexts contexts.
func (p *pool) checkCapacity() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.contexts) >= p.settings.MaxContexts {
		return errcode.New(errcode.RateLimited, "the browser is in use by %d others, which is the limit; try again later", p.settings.MaxContexts)
	}
	return nil
}

// expire closes a context that no call has used since its idle timer was started, and the
// browser with the last context.
func (p *pool) expire(by identity.Principal, s *leasedContext, round int) {
	p.sem <- struct{}{}
	defer func() { <-p.sem }()
	p.mu.Lock()
	stale := s.generation != round || p.contexts[by] != s // used again, or closed already
	if !stale {
		delete(p.contexts, by)
	}
	last := len(p.contexts) == 0
	p.mu.Unlock()
	if stale {
		return
	}
	s.browserContext.close(context.Background())
	if last {
		p.shutDown()
	}
}

// shutDown closes the browser and all contexts, and logs errors. It must be called with sem
// held.
func (p *pool) shutDown() {
	if err := p.closeAll(); err != nil {
		p.log.Error("browser not closed cleanly", "error", err)
	}
}

// closeAll closes the browser and all contexts. It must be called with sem held.
func (p *pool) closeAll() error {
	p.mu.Lock()
	browser, contexts := p.browser, p.contexts
	p.browser, p.contexts = nil, make(map[identity.Principal]*leasedContext)
	for _, s := range contexts {
		p.stopIdleTimer(s)
	}
	p.mu.Unlock()
	var err error
	if browser != nil {
		err = browser.close()
	}
	for _, s := range contexts {
		s.browserContext.close(context.Background())
	}
	return err
}

// stopIdleTimer must be called with mu held.
func (p *pool) stopIdleTimer(s *leasedContext) {
	if s.idleTimer != nil && s.idleTimer.Stop() {
		p.closing.Done()
	}
	s.idleTimer = nil
}

// close closes everything. acquire fails from now on. It may be called repeatedly.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.sem <- struct{}{}
	err := p.closeAll()
	<-p.sem
	p.closing.Wait()
	return err
}
