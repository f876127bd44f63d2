package modules

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// refreshPause is the least time between two refreshes of one module.
const refreshPause = 100 * time.Millisecond

// refresher asks one module for its groups, as often as it says that they
// changed.
type refresher struct{ again bool }

// Changed says that the groups of a module are others now. It returns at once:
// they are asked for soon, once for many calls and at most ten times a second,
// and registered in the place of those before, as by Reload. Groups and tools
// that are the same stay as they are; calls in flight go on. What goes wrong
// leaves the groups as they were and is logged. A name that nobody bears is
// passed over.
func (l *Loader) Changed(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.locks[name] == nil && l.find(name) == nil {
		return
	}
	if r, ok := l.refreshers[name]; ok {
		r.again = true
		return
	}
	r := &refresher{again: true}
	l.refreshers[name] = r
	l.backgroundStarted()
	go l.refreshLoop(name, r)
}

// refreshLoop refreshes a module until nobody says any more that it changed.
func (l *Loader) refreshLoop(name string, r *refresher) {
	defer l.addBackground(-1)
	for {
		i := l.lockForRefresh(name, r)
		if i == nil {
			return
		}
		if err := l.refresh(i); err != nil {
			l.log().Error("the groups of a module stay as they were", "module", name, "error", err)
		}
		l.release(name)
		select {
		case <-l.ending:
		case <-time.After(refreshPause):
		}
	}
}

// lockForRefresh waits until nobody changes the module and claims it; nil when
// there is nothing to do any more, and then the refresher is forgotten.
func (l *Loader) lockForRefresh(name string, r *refresher) *instance {
	for {
		l.mu.Lock()
		held, i := l.locks[name], l.find(name)
		switch {
		case l.closed || !r.again || held == nil && i == nil:
			delete(l.refreshers, name)
			l.mu.Unlock()
			return nil
		case held == nil:
			r.again = false
			l.locks[name] = &changeLock{done: make(chan struct{}), refresh: true}
			l.mu.Unlock()
			return i
		}
		l.mu.Unlock()
		select {
		case <-held.done:
		case <-l.ending:
		}
	}
}

// refresh asks for the groups and registers those that are others now.
func (l *Loader) refresh(i *instance) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.patience())
	defer cancel()
	groups, ok, err := i.current(ctx)
	if err != nil || !ok {
		return err
	}
	reuseTools(i.groups, groups)
	book := newLedger(l.groups, Owner(i.name), i.groups)
	if err := book.replace(i.groups, groups); err != nil {
		return i.failed(StepRegister, errors.Join(err, book.rollback()))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i.groups = groups
	return nil
}

// current asks a module for its groups; one that sleeps, for those it knows.
func (i *instance) current(ctx context.Context) ([]toolgroups.Group, bool, error) {
	if i.isLazy() {
		return i.known(ctx)
	}
	groups, err := ask(ctx, i, func() ([]toolgroups.Group, error) { return i.wrapGroups(i.module.Groups()) })
	if err != nil {
		return nil, false, i.failed(StepGroups, err)
	}
	return groups, true, nil
}

// reuseTools puts those tools of old that did not change in the place of their
// likes, so that who compares sees that they are the same.
func reuseTools(old, next []toolgroups.Group) {
	known := map[string]tool.Tool{}
	for _, g := range old {
		for _, t := range g.Tools {
			known[t.Definition().Name] = t
		}
	}
	for _, g := range next {
		for n, t := range g.Tools {
			if t == nil {
				continue
			}
			if before, ok := known[t.Definition().Name]; ok && sameTool(before, t) {
				g.Tools[n] = before
			}
		}
	}
}

// equalGroup says whether registering b where a is would change nothing.
func equalGroup(a, b toolgroups.Group) bool {
	return a.ID == b.ID && a.Description == b.Description && slices.Equal(a.Refs, b.Refs) &&
		slices.EqualFunc(a.Tools, b.Tools, sameTool)
}

// WaitIdle returns when no module is being refreshed or woken, nor is about to
// be, or ctx has ended.
func (l *Loader) WaitIdle(ctx context.Context) error {
	for {
		l.mu.Lock()
		quiet, busy := l.quiet, l.background > 0
		l.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addBackground counts the goroutines that refresh and wake.
func (l *Loader) addBackground(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if by > 0 {
		l.backgroundStarted()
		return
	}
	if l.background--; l.background == 0 {
		close(l.quiet)
	}
}

// backgroundStarted wants mu held.
func (l *Loader) backgroundStarted() {
	if l.background == 0 {
		l.quiet = make(chan struct{})
	}
	l.background++
}
