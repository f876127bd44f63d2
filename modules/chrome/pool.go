package chrome

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// quickTimeout is for what a browser does at once, or is broken.
const quickTimeout = 2 * time.Second

// pool has one browser, when anybody needs it, and a room for each principal.
type pool struct {
	settings Settings
	needs    Deps
	log      *slog.Logger
	turn     chan struct{}  // holds a token while browser or rooms are made or ended
	ending   sync.WaitGroup // what closes by itself

	mu       sync.Mutex      // guards what follows
	program  *browserProcess // nil until the first call, and after the last room
	contexts map[identity.Principal]*contextLease
	closed   bool
}

// contextLease is a room and who is in it.
type contextLease struct {
	*browserContext
	calls int         // under way
	round int         // how often it was entered
	idle  *time.Timer // ends the room; nil while there are calls
}

func newPool(s Settings, n Deps, log *slog.Logger) *pool {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &pool{settings: s, needs: n, log: log, turn: make(chan struct{}, 1), contexts: make(map[identity.Principal]*contextLease)}
}

// enter gives the room of a principal, made when there is none. Leave it.
func (p *pool) enter(ctx context.Context, by identity.Principal) (*contextLease, error) {
	if by.Kind == identity.None {
		return nil, errcode.New(errcode.Unauthenticated, "a browser belongs to somebody, and nobody is calling")
	}
	if s := p.existing(by); s != nil {
		return s, nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := p.existing(by); s != nil { // made while we waited
		return s, nil
	}
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	r, err := newRoom(ctx, p.program, accessPolicy{p.needs, by}, p.settings)
	if err != nil {
		return nil, err
	}
	return p.add(by, r), nil
}

// existing enters a room that is there.
func (p *pool) existing(by identity.Principal) *contextLease {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.contexts[by]
	if s == nil || !s.program.alive() {
		return nil
	}
	p.stopIdleTimer(s)
	s.calls++
	s.round++
	return s
}

// add puts a new room in its place, with its first call.
func (p *pool) add(by identity.Principal, r *browserContext) *contextLease {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &contextLease{browserContext: r, calls: 1}
	p.contexts[by] = s
	return s
}

// leave ends a call. The room ends when it stays empty.
func (p *pool) leave(by identity.Principal, s *contextLease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.calls--; s.calls > 0 || p.closed {
		return
	}
	p.ending.Add(1)
	round := s.round
	s.idle = time.AfterFunc(time.Duration(p.settings.Idle), func() {
		defer p.ending.Done()
		p.expire(by, s, round)
	})
}

// prepare sees to it that there is a browser with a place. It has the turn.
func (p *pool) prepare(ctx context.Context) error {
	p.mu.Lock()
	old, closed := p.program, p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return errcode.New(errcode.ToolUnavailable, "the browser is closed: the module was unloaded")
	case old != nil && old.alive():
		return p.checkCapacity()
	case old != nil:
		p.log.Warn("the browser ended; another one is started", "said", old.stderr.String())
		p.clear()
	}
	fresh, err := newProgram(ctx, p.settings)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.program = fresh
	p.mu.Unlock()
	return nil
}

func (p *pool) checkCapacity() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.contexts) >= p.settings.MaxContexts {
		return errcode.New(errcode.RateLimited, "%d others use the browser, which is the limit; try again later", p.settings.MaxContexts)
	}
	return nil
}

// expire ends a room that nobody came back to, and the browser with the last.
func (p *pool) expire(by identity.Principal, s *contextLease, round int) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	p.mu.Lock()
	stale := s.round != round || p.contexts[by] != s // somebody came, or it is gone
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
		p.clear()
	}
}

// clear ends the browser and what is in it. It has the turn.
func (p *pool) clear() {
	if err := p.empty(); err != nil {
		p.log.Error("the browser did not end cleanly", "error", err)
	}
}

func (p *pool) empty() error {
	p.mu.Lock()
	program, rooms := p.program, p.contexts
	p.program, p.contexts = nil, make(map[identity.Principal]*contextLease)
	for _, s := range rooms {
		p.stopIdleTimer(s)
	}
	p.mu.Unlock()
	var err error
	if program != nil {
		err = program.close()
	}
	for _, s := range rooms {
		s.browserContext.close(context.Background())
	}
	return err
}

// stopIdleTimer stops the clock of a room. It wants mu held.
func (p *pool) stopIdleTimer(s *contextLease) {
	if s.idle != nil && s.idle.Stop() {
		p.ending.Done()
	}
	s.idle = nil
}

// close ends everything and lets nobody in any more.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.turn <- struct{}{}
	err := p.empty()
	<-p.turn
	p.ending.Wait()
	return err
}
