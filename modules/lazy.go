package modules

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/toolgroups"
)

// lazyState is the state of an instance whose cached groups were registered before it
// was provisioned.
type lazyState struct {
	provisioned atomic.Bool

	mu      sync.Mutex        // guards what follows
	attempt *provisionAttempt // in progress; nil when there is none
	lastErr error             // of the last attempt
	retryAt time.Time         // no attempt before
	delays  backoff.Backoff
}

// provisionAttempt is one call of Provision, which any number of callers may wait for.
type provisionAttempt struct {
	done chan struct{} // closed after err is set
	err  error
}

// cachedGroups returns the wrapped cached groups of a LazyModule, and false for any
// other module and for one without a cache.
func (i *instance) cachedGroups(ctx context.Context) ([]toolgroups.Group, bool, error) {
	lazy, ok := i.module.(LazyModule)
	if !ok {
		return nil, false, nil
	}
	groups, err := runMethod(ctx, i, func() ([]toolgroups.Group, error) {
		var groups []toolgroups.Group
		if groups, ok = lazy.CachedGroups(); !ok {
			return nil, nil
		}
		return i.wrapGroups(groups)
	})
	if err != nil {
		return nil, false, i.stepError(StepGroups, err)
	}
	return groups, ok, nil
}

// isLazy reports whether the module is not provisioned yet.
func (i *instance) isLazy() bool { return i.lazy != nil && !i.lazy.provisioned.Load() }

// ensureProvisioned waits until the module is provisioned, and starts that if needed.
// The caller holds a lease. toolName is the tool to call, "" if there is none; it is
// part of the error. ctx bounds the wait; the attempt continues. The error has the
// code tool_unavailable.
func (i *instance) ensureProvisioned(ctx context.Context, toolName string) error {
	if !i.isLazy() {
		return nil
	}
	a, wait, err := i.startProvision()
	if a != nil {
		select {
		case <-a.done:
			err = a.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		return nil
	}
	return i.errUnavailable(toolName, wait, err)
}

// errUnavailable returns the error of a call for which the module could not be
// provisioned; wait is how long until the next attempt is possible.
func (i *instance) errUnavailable(toolName string, wait time.Duration, err error) error {
	prefix := toolName + " did not start: "
	if toolName == "" {
		prefix = ""
	}
	retry := "a later call retries"
	if wait > 0 {
		retry = "a call after " + wait.Round(time.Millisecond).String() + " retries"
	}
	reason := errcode.Message(err)
	if !strings.Contains(reason, strconv.Quote(i.name)) {
		reason = fmt.Sprintf("module %q could not be provisioned: %s", i.name, reason)
	}
	return errcode.Wrap(errcode.ToolUnavailable, err, "%s%s; %s", prefix, reason, retry)
}

// startProvision returns the attempt in progress or starts one. During the delay after
// a failure it returns the last error and the remaining wait. It returns nothing if
// the module is provisioned.
func (i *instance) startProvision() (*provisionAttempt, time.Duration, error) {
	s := i.lazy
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempt != nil {
		return s.attempt, 0, nil
	}
	if s.provisioned.Load() {
		return nil, 0, nil
	}
	if left := time.Until(s.retryAt); left > 0 {
		return nil, left, s.lastErr
	}
	s.attempt = &provisionAttempt{done: make(chan struct{})}
	i.hold() // succeeds: the caller holds a lease
	i.loader.addBackground(1)
	go i.provision(s.attempt)
	return s.attempt, 0, nil
}

// provision runs an attempt. After a success the loader asks the module for its
// groups.
func (i *instance) provision(a *provisionAttempt) {
	defer i.loader.addBackground(-1)
	defer i.release()
	ctx, cancel := context.WithTimeout(context.Background(), i.loader.stepTimeout())
	defer cancel()
	err := i.provisionAndValidate(ctx)
	i.lazy.finish(a, err)
	if err != nil {
		i.loader.log().Error("module could not be provisioned", "module", i.name, "error", stepCause(err))
		return
	}
	i.loader.NotifyChanged(i.name)
}

// finish records the result of an attempt and wakes its waiters.
func (s *lazyState) finish(a *provisionAttempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.err, s.lastErr, s.attempt = err, err, nil
	if err == nil {
		s.provisioned.Store(true)
	} else {
		s.retryAt = time.Now().Add(s.delays.Next())
	}
	close(a.done)
}

// ProvisionModule provisions a module that was loaded with its cached groups, as its first
// call would. It returns nil if the module is provisioned already. ctx bounds the
// wait; the attempt continues.
//
// Errors:
//
//   - conflict when no module of this name is loaded
//   - tool_unavailable when the attempt failed, or when the last attempt failed and its
//     delay has not passed
func (l *Loader) ProvisionModule(ctx context.Context, name string) error {
	l.mu.Lock()
	i := l.find(name)
	l.mu.Unlock()
	if i == nil || !i.acquire() {
		return &StepError{Module: name, Step: StepCheck, Err: errcode.New(errcode.Conflict, "module %.128q is not loaded", name)}
	}
	defer i.release()
	return i.ensureProvisioned(ctx, "")
}

// hasFailed reports whether the last attempt to provision failed.
func (s *lazyState) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastErr != nil
}
