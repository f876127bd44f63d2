package modules

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// minRefreshInterval is the least time between two refreshes of one module.
const minRefreshInterval = 100 * time.Millisecond

// Limits of the changes of one module that are registered. Each change is recorded, and the record
// stays: a module, or its server, cannot fill the disk with changes.
const (
	changeBurst    = 60 // changes at once
	changeInterval = time.Minute
	maxChanging    = 10_000 // modules whose changes are counted
)

// refresher refreshes one module while changes are pending.
type refresher struct{ pending bool }

// NotifyChanged notifies the loader that the groups of a module have changed. It returns at
// once. Soon the loader calls ToolGroups, once for several changes and at most ten times a
// second. It registers the groups in place of the old groups, as by ReloadModule. Groups and
// tools that are the same stay registered; calls in progress go on. On an error, which is
// logged, the old groups stay. A name that is not loaded is ignored.
//
// After 60 changes a module has one change registered a minute. Until then its old groups stay.
func (l *Loader) NotifyChanged(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.locks[name] == nil && l.find(name) == nil {
		return
	}
	if r, ok := l.refreshers[name]; ok {
		r.pending = true
		return
	}
	r := &refresher{pending: true}
	l.refreshers[name] = r
	l.backgroundStarted()
	go l.refreshLoop(name, r)
}

// refreshLoop refreshes a module until no changes are pending.
func (l *Loader) refreshLoop(name string, r *refresher) {
	defer l.addBackground(-1)
	for {
		i := l.lockForRefresh(name, r)
		if i == nil {
			return
		}
		wait, err := l.refresh(i)
		if err != nil {
			l.log().Error("module groups not refreshed", "module", name, "error", err)
		}
		l.unlockModule(name)
		if wait > 0 {
			l.log().Warn("module changes its groups too often", "module", name, "registered_in", wait.Round(time.Second))
			l.postpone(r, wait)
			continue
		}
		select {
		case <-l.closing:
		case <-time.After(minRefreshInterval):
		}
	}
}

// postpone waits until a change may be registered, and makes it pending again. WaitIdle does not wait
// for it: otherwise one module would hold up those who wait for another.
func (l *Loader) postpone(r *refresher, wait time.Duration) {
	l.mu.Lock()
	r.pending = true
	l.mu.Unlock()
	l.addBackground(-1)
	defer l.addBackground(1)
	select {
	case <-l.closing:
	case <-time.After(wait):
	}
}

// lockForRefresh locks the module, waiting for a change in progress, and returns its
// instance. When nothing is left to do it removes the refresher and returns nil.
func (l *Loader) lockForRefresh(name string, r *refresher) *instance {
	for {
		l.mu.Lock()
		held, i := l.locks[name], l.find(name)
		switch {
		case l.closed || !r.pending || held == nil && i == nil:
			delete(l.refreshers, name)
			l.mu.Unlock()
			return nil
		case held == nil:
			r.pending = false
			l.locks[name] = &changeLock{done: make(chan struct{}), refresh: true}
			l.mu.Unlock()
			return i
		}
		l.mu.Unlock()
		select {
		case <-held.done:
		case <-l.closing:
		}
	}
}

// refresh gets the groups of i and registers the groups that have changed. If the module has to wait, it
// registers nothing and returns how long.
func (l *Loader) refresh(i *instance) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.stepTimeout())
	defer cancel()
	groups, ok, err := i.currentGroups(ctx)
	if err != nil || !ok {
		return 0, err
	}
	reuseTools(i.groups, groups)
	if dropped, changed := groupChanges(i.groups, groups); len(dropped)+len(changed) > 0 {
		if wait := l.changes.Take(i.name); wait > 0 {
			return wait, nil
		}
		err := l.groups.Update(func(tx *toolgroups.Tx) error { return replaceGroups(tx, i.owner, i.groups, groups) })
		if err != nil {
			return 0, i.stepError(StepRegister, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i.groups = groups
	return 0, nil
}

// currentGroups returns the groups of a module, or the cached groups of a module that is not
// provisioned. It reports false if there are no groups to register.
func (i *instance) currentGroups(ctx context.Context) ([]toolgroups.Group, bool, error) {
	if i.isLazy() {
		return i.cachedGroups(ctx)
	}
	groups, err := runMethod(ctx, i, func() ([]toolgroups.Group, error) { return i.wrapGroups(i.module.ToolGroups()) })
	if err != nil {
		return nil, false, i.stepError(StepGroups, err)
	}
	return groups, true, nil
}

// reuseTools replaces tools in next by the equal tools in old, so that comparing the
// groups shows that they are the same.
func reuseTools(old, next []toolgroups.Group) {
	byName := map[string]tool.Tool{}
	for _, g := range old {
		for _, t := range g.Tools {
			byName[t.Definition().Name] = t
		}
	}
	for _, g := range next {
		for n, t := range g.Tools {
			if t == nil {
				continue
			}
			if before, ok := byName[t.Definition().Name]; ok && sameTool(before, t) {
				g.Tools[n] = before
			}
		}
	}
}

// equalGroup reports whether registering b in place of a would change nothing.
func equalGroup(a, b toolgroups.Group) bool {
	return a.ID == b.ID && a.Description == b.Description && slices.Equal(a.Refs, b.Refs) && maps.Equal(a.RefOwners, b.RefOwners) &&
		slices.EqualFunc(a.OwnerRefs, b.OwnerRefs, toolgroups.OwnerRef.Equal) && slices.Equal(a.Prompts, b.Prompts) &&
		sameHours(a.Hours, b.Hours) && a.Open == b.Open && slices.Equal(a.Children, b.Children) && slices.Equal(a.Fallback, b.Fallback) &&
		maps.Equal(a.APIs, b.APIs) && a.OpenAPIs == b.OpenAPIs && slices.EqualFunc(a.Tools, b.Tools, sameTool)
}

// sameHours reports whether two groups have the same hours, or none.
func sameHours(a, b toolgroups.Hours) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Zone() == b.Zone() && slices.Equal(a.Spans(), b.Spans())
}

// WaitIdle waits until no module is being refreshed or provisioned in the background
// and no change is pending. It does not wait for a module that changes too often. The error is ctx's cause.
func (l *Loader) WaitIdle(ctx context.Context) error {
	for {
		l.mu.Lock()
		idle, busy := l.idle, l.background > 0
		l.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addBackground adds 1 or -1 to the count of background goroutines.
func (l *Loader) addBackground(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if by > 0 {
		l.backgroundStarted()
		return
	}
	if l.background--; l.background == 0 {
		close(l.idle)
	}
}

// backgroundStarted must be called with mu held.
func (l *Loader) backgroundStarted() {
	if l.background == 0 {
		l.idle = make(chan struct{})
	}
	l.background++
}
