package modules

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/toolgroups"
)

// lazyState is of an instance whose groups were registered before it was
// provisioned.
type lazyState struct {
	provisioned atomic.Bool // it is provisioned

	mu    sync.Mutex        // guards what follows
	try   *provisionAttempt // the one under way; nil when there is none
	last  error             // of the try before
	until time.Time         // no try before that
	pause backoff.Backoff
}

// provisionAttempt is one Provision, which many may wait for.
type provisionAttempt struct {
	done chan struct{} // closed after err is set
	err  error
}

// known gives what a Lazy module knows, if it does.
func (i *instance) known(ctx context.Context) ([]toolgroups.Group, bool, error) {
	lazy, ok := i.module.(Lazy)
	if !ok {
		return nil, false, nil
	}
	groups, err := ask(ctx, i, func() ([]toolgroups.Group, error) {
		var groups []toolgroups.Group
		if groups, ok = lazy.CachedGroups(); !ok {
			return nil, nil
		}
		return i.wrapGroups(groups)
	})
	if err != nil {
		return nil, false, i.failed(StepGroups, err)
	}
	return groups, ok, nil
}

// isLazy says whether the module is not provisioned yet.
func (i *instance) isLazy() bool { return i.sleep != nil && !i.sleep.provisioned.Load() }

// ensureProvisioned returns when the module is provisioned. The caller is in the instance;
// toolName is what it is about, "" when it is no call. ctx bounds the wait, not
// the work. The error has the code tool_unavailable.
func (i *instance) ensureProvisioned(ctx context.Context, toolName string) error {
	if !i.isLazy() {
		return nil
	}
	t, wait, err := i.startProvision()
	if t != nil {
		select {
		case <-t.done:
			err = t.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		return nil
	}
	return i.unavailable(toolName, wait, err)
}

func (i *instance) unavailable(toolName string, wait time.Duration, err error) error {
	what := toolName + " did not start: "
	if toolName == "" {
		what = ""
	}
	when := "a later call tries again"
	if wait > 0 {
		when = "a call after " + wait.Round(time.Millisecond).String() + " tries again"
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "%smodule %q could not be provisioned: %s; %s", what, i.name, errcode.Message(err), when)
}

// startProvision gives the try under way, or begins one; within the pause after a
// failure it gives that, and how much of the pause is left.
func (i *instance) startProvision() (*provisionAttempt, time.Duration, error) {
	s := i.sleep
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.try != nil {
		return s.try, 0, nil
	}
	if s.provisioned.Load() {
		return nil, 0, nil
	}
	if left := time.Until(s.until); left > 0 {
		return nil, left, s.last
	}
	s.try = &provisionAttempt{done: make(chan struct{})}
	i.hold() // the caller is in it
	i.loader.addBackground(1)
	go i.provision(s.try)
	return s.try, 0, nil
}

// provision provisions and validates, and has the groups asked for.
func (i *instance) provision(t *provisionAttempt) {
	defer i.loader.addBackground(-1)
	defer i.release()
	ctx, cancel := context.WithTimeout(context.Background(), i.loader.patience())
	defer cancel()
	err := i.begin(ctx)
	i.sleep.finish(t, err)
	if err != nil {
		i.loader.log().Error("module could not be provisioned", "module", i.name, "error", err)
		return
	}
	i.loader.Changed(i.name)
}

// finish ends a try.
func (s *lazyState) finish(t *provisionAttempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.err, s.last, s.try = err, err, nil
	if err == nil {
		s.provisioned.Store(true)
	} else {
		s.until = time.Now().Add(s.pause.Next())
	}
	close(t.done)
}

// Provision provisions a module that was loaded with the groups it knew, as its
// first call would. ctx bounds the wait, not the work. Of a module that is
// provisioned it is nothing. Errors: conflict when no module of this name is
// loaded, tool_unavailable when it failed, now or less than the pause ago.
func (l *Loader) Provision(ctx context.Context, name string) error {
	l.mu.Lock()
	i := l.find(name)
	l.mu.Unlock()
	if i == nil || !i.acquire() {
		return &StepError{Module: name, Step: StepCheck, Err: errcode.New(errcode.Conflict, "module %.128q is not loaded", name)}
	}
	defer i.release()
	return i.ensureProvisioned(ctx, "")
}
