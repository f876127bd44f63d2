package chrome

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// quickTimeout is for commands that a working browser completes at once.
const quickTimeout = 2 * time.Second

// pool holds a browser for each principal that uses one, up to the limit.
type pool struct {
	settings Settings
	deps     Deps
	log      *slog.Logger
	sem      chan struct{}  // holds a token while a browser is started or closed
	closing  sync.WaitGroup // idle timers, and goroutines that wait for the end of a browser
	stop     chan struct{}  // closed by close

	mu         sync.Mutex // guards what follows
	browsers   map[identity.Principal]*leasedBrowser
	losses     lossLog
	monitoring bool // a goroutine measures the memory
	closed     bool
}

// leasedBrowser is a browser with a count of the calls that use it.
type leasedBrowser struct {
	*browserContext
	owner      identity.Principal
	calls      int         // in progress
	generation int         // increased by every call, so that an old timer does nothing
	lastUse    time.Time   // when the last call ended
	idleTimer  *time.Timer // closes the browser; nil while there are calls
	pauseTimer *time.Timer // pauses the browser; nil while there are calls
	paused     bool
	stuck      bool // a call has timed out since the browser was paused last
}

func newPool(s Settings, deps Deps, log *slog.Logger) *pool {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &pool{
		settings: s, deps: deps, log: log, sem: make(chan struct{}, 1), stop: make(chan struct{}),
		browsers: make(map[identity.Principal]*leasedBrowser),
	}
}

// acquire returns the browser of a principal, which it starts if there is none. The caller
// calls release.
func (p *pool) acquire(ctx context.Context, by identity.Principal) (*leasedBrowser, error) {
	if by.Kind == identity.None {
		return nil, errcode.New(errcode.Unauthenticated, "browser tools need an authenticated caller")
	}
	if b := p.acquireExisting(by); b != nil {
		return b, nil
	}
	select {
	case p.sem <- struct{}{}:
		defer func() { <-p.sem }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b := p.acquireExisting(by); b != nil { // started meanwhile
		return b, nil
	}
	if err := p.makeRoom(by); err != nil {
		return nil, err
	}
	c, err := newBrowserContext(ctx, accessPolicy{p.deps, by}, p.settings, p.log)
	if err != nil {
		return nil, err
	}
	return p.add(by, c), nil
}

// acquireExisting is acquire for a browser that runs; it returns nil if there is none.
func (p *pool) acquireExisting(by identity.Principal) *leasedBrowser {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.browsers[by]
	if b == nil || !b.browser.isAlive() {
		return nil
	}
	p.stopTimers(b)
	b.calls++
	b.generation++
	if b.paused {
		b.paused = false
		b.browser.resume()
	}
	return b
}

// add adds a new browser with its first call. It must be called with sem held: close waits for it.
func (p *pool) add(by identity.Principal, c *browserContext) *leasedBrowser {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &leasedBrowser{browserContext: c, owner: by, calls: 1}
	p.browsers[by] = b
	p.closing.Go(func() { p.awaitEnd(b) })
	if !p.monitoring {
		p.monitoring = true
		p.closing.Go(p.monitorMemory)
	}
	return b
}

func errPoolClosed() error {
	return errcode.New(errcode.ToolUnavailable, "the browser is closed: the module was unloaded")
}

// release ends a call. The browser is paused if no call uses it for some seconds, or at once after a
// call that has timed out. It is closed if no call uses it for the idle timeout.
func (p *pool) release(b *leasedBrowser, timedOut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.stuck = b.stuck || timedOut
	if b.calls--; b.calls > 0 || p.closed || p.browsers[b.owner] != b {
		return
	}
	b.lastUse = time.Now()
	round := b.generation
	p.closing.Add(1)
	b.idleTimer = time.AfterFunc(time.Duration(p.settings.IdleTimeout), func() {
		defer p.closing.Done()
		p.expire(b, round)
	})
	if background := time.Duration(p.settings.Background); background > 0 && !b.stuck {
		b.pauseTimer = time.AfterFunc(background, func() { p.pause(b, round) })
		return
	}
	p.pauseNow(b)
}

// pause pauses a browser that no call has used since its timer was started.
func (p *pool) pause(b *leasedBrowser, round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.generation == round && b.calls == 0 {
		p.pauseNow(b)
	}
}

// pauseNow must be called with mu held, while no call uses the browser.
func (p *pool) pauseNow(b *leasedBrowser) {
	b.paused, b.stuck = true, false
	b.browser.pause()
}

// makeRoom checks that there may be one more browser. If there are too many, it closes the
// browser that was used least recently. It does not do so if all were used a short time ago. It
// must be called with sem held.
func (p *pool) makeRoom(by identity.Principal) error {
	p.mu.Lock()
	dead, closed := p.browsers[by], p.closed
	p.mu.Unlock()
	if closed {
		return errPoolClosed()
	}
	if dead != nil {
		p.awaitEnd(dead)
	}
	oldest, full := p.leastRecent()
	switch {
	case !full:
		return nil
	case oldest == nil:
		return errcode.New(errcode.RateLimited, "the %d browsers that may run at once are in use by others; try again later", p.settings.MaxBrowsers)
	}
	if p.forget(oldest, "another caller needed its place, and it was not in use") {
		p.closeBrowser(oldest)
	}
	return nil
}

// leastRecent reports whether there are as many browsers as there may be. Of the browsers without
// calls it returns the least recently used browser. It returns nil if all were used a short time
// ago.
func (p *pool) leastRecent() (oldest *leasedBrowser, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.browsers {
		unused := b.calls == 0 && time.Since(b.lastUse) >= time.Duration(p.settings.Keep)
		if unused && (oldest == nil || b.lastUse.Before(oldest.lastUse)) {
			oldest = b
		}
	}
	return oldest, len(p.browsers) >= p.settings.MaxBrowsers
}

// forget removes a browser and records for its principal why it has ended. It reports false if it
// was removed before.
func (p *pool) forget(b *leasedBrowser, reason string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.browsers[b.owner] != b {
		return false
	}
	delete(p.browsers, b.owner)
	p.stopTimers(b)
	p.losses.add(b.owner, reason, len(b.list()))
	return true
}

// awaitEnd waits for the end of a browser and forgets it, if that was not done before.
func (p *pool) awaitEnd(b *leasedBrowser) {
	<-b.browser.ended
	reason := b.browser.endReason(p.settings)
	if p.forget(b, reason) {
		p.log.Warn("browser ended", "principal", b.owner.String(), "reason", reason, "stderr", textutil.SanitizeLines(b.browser.stderr.String()))
		p.closeBrowser(b)
	}
}

// expire closes a browser that no call has used since its idle timer was started.
func (p *pool) expire(b *leasedBrowser, round int) {
	p.sem <- struct{}{}
	defer func() { <-p.sem }()
	p.mu.Lock()
	stale := b.generation != round // used again
	p.mu.Unlock()
	if !stale && p.forget(b, "it was not used for "+time.Duration(p.settings.IdleTimeout).String()) {
		p.closeBrowser(b)
	}
}

// closeBrowser closes a browser that was removed, and logs errors.
func (p *pool) closeBrowser(b *leasedBrowser) {
	if err := b.browserContext.close(); err != nil {
		p.log.Error("browser not closed cleanly", "error", err)
	}
}

// stopTimers must be called with mu held.
func (p *pool) stopTimers(b *leasedBrowser) {
	if b.idleTimer != nil && b.idleTimer.Stop() {
		p.closing.Done()
	}
	if b.pauseTimer != nil {
		b.pauseTimer.Stop()
	}
	b.idleTimer, b.pauseTimer = nil, nil
}

// monitorInterval is how often the memory of the browsers is measured.
const monitorInterval = time.Second

// monitorMemory kills browsers that use too much memory. It returns when there are no browsers.
func (p *pool) monitorMemory() {
	ticker := time.NewTicker(monitorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-p.stop:
			return
		}
		running, some := p.running()
		if !some {
			return
		}
		for id, bytes := range memoryUse(running) {
			if bytes > p.settings.MaxMemory {
				p.killOverMemory(id)
			}
		}
	}
}

// running returns the processes of the browsers that are not paused. If there are no browsers at
// all it reports false, and the caller has to return.
func (p *pool) running() (ids []int, some bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.browsers {
		if !b.paused {
			ids = append(ids, b.browser.process.pid)
		}
	}
	p.monitoring = len(p.browsers) > 0
	return ids, p.monitoring
}

// killOverMemory kills the browser with this process, if it has not ended.
func (p *pool) killOverMemory(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.browsers {
		if b.browser.process.pid == id {
			b.browser.killOverMemory()
		}
	}
}

// takeLoss returns once why a principal has lost its browser, "" if it has not.
func (p *pool) takeLoss(by identity.Principal) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses.take(by)
}

// close closes everything. acquire fails from now on. It may be called repeatedly.
func (p *pool) close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.stop)
	}
	p.mu.Unlock()
	p.sem <- struct{}{}
	err := p.closeAll()
	<-p.sem
	p.closing.Wait()
	return err
}

// closeAll closes all browsers at the same time. It must be called with sem held.
func (p *pool) closeAll() error {
	p.mu.Lock()
	browsers := p.browsers
	p.browsers = make(map[identity.Principal]*leasedBrowser)
	for _, b := range browsers {
		p.stopTimers(b)
	}
	p.mu.Unlock()
	errs := make(chan error, len(browsers))
	for _, b := range browsers {
		go func() { errs <- b.browserContext.close() }()
	}
	var all error
	for range browsers {
		all = errors.Join(all, <-errs)
	}
	return all
}
