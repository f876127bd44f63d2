package modules

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// Staged is a module that is provisioned and validated but not in service yet. Its name
// is locked: no other change of it is possible until Swap, Install or Discard is called.
type Staged struct {
	loader    *Loader
	old, next *instance
}

// StageModule provisions and validates m, to be loaded or to replace the loaded module of its
// name. It is the part of Load and Reload that runs code of the module.
func (l *Loader) StageModule(ctx context.Context, m Module) (*Staged, error) {
	name, err := checkedName(m)
	loaded := false
	if err == nil {
		_, loaded = l.GroupsOf(name)
	}
	return l.stage(ctx, m, loaded)
}

// stage locks the name and prepares m. replaces is whether a module of this name has to
// be loaded or must not be.
func (l *Loader) stage(ctx context.Context, m Module, replaces bool) (*Staged, error) {
	name, err := checkedName(m)
	if err != nil {
		return nil, &StepError{Module: name, Step: StepCheck, Err: err}
	}
	old, err := l.lockModule(ctx, name, m, replaces)
	if err != nil {
		return nil, err
	}
	next := newInstance(l, name, m)
	stepCtx, cancel := context.WithTimeout(ctx, l.stepTimeout())
	defer cancel()
	if err := next.prepareUnlessCached(stepCtx, !replaces); err != nil {
		l.unlockModule(name)
		return nil, errors.Join(err, l.drain(stepCtx, next))
	}
	return &Staged{l, old, next}, nil
}

// prepareUnlessCached prepares the module. If allowLazy is set and the module has cached
// groups, it takes those and leaves the module to be provisioned later.
func (i *instance) prepareUnlessCached(ctx context.Context, allowLazy bool) error {
	if !allowLazy {
		return i.prepare(ctx)
	}
	groups, ok, err := i.cachedGroups(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return i.prepare(ctx)
	}
	i.groups, i.lazy = groups, new(lazyState)
	return nil
}

// GroupIDs returns the ids of the groups that the module will have, sorted.
func (s *Staged) GroupIDs() []toolgroups.GroupID { return idsOf(s.next) }

// Swap brings the module into service and ends the module that it replaces, if any, as
// Unload does. It is Install followed by DrainOld.
func (s *Staged) Swap(ctx context.Context) error {
	if err := s.Install(ctx); err != nil {
		return err
	}
	return s.DrainOld(ctx)
}

// Install brings the module into service. The module that it replaces, if any, gets no
// further calls; DrainOld has to follow. Install does not wait for calls. On an error,
// of StepRegister, nothing has changed and the staged module is closed; ctx bounds how
// long that may take.
func (s *Staged) Install(ctx context.Context) error {
	err := s.loader.install(s.old, s.next)
	if err == nil && s.old != nil {
		s.old.end()
	}
	s.loader.unlockModule(s.next.name)
	if err != nil {
		return errors.Join(err, s.loader.drain(ctx, s.next))
	}
	return nil
}

// DrainOld closes the module that Install replaced, if any, when its calls in progress
// have ended. Errors are of StepWait and StepClose, as those of Unload.
func (s *Staged) DrainOld(ctx context.Context) error {
	if s.old == nil {
		return nil
	}
	return s.loader.drain(ctx, s.old)
}

// Discard closes the staged module and changes nothing else.
func (s *Staged) Discard(ctx context.Context) error {
	s.loader.unlockModule(s.next.name)
	return s.loader.drain(ctx, s.next)
}

// install registers the groups of next in place of those of old, which may be nil, and
// adds next to the loaded modules. On an error it has changed nothing.
func (l *Loader) install(old, next *instance) error {
	var groups []toolgroups.Group
	if old != nil {
		groups = old.groups
	}
	changes := newRegistration(l.groups, OwnerOf(next.name), groups)
	err := changes.replace(groups, next.groups)
	if err == nil {
		err = l.publish(old, next)
	}
	if err != nil {
		return next.stepError(StepRegister, errors.Join(err, changes.rollback()))
	}
	return nil
}

// publish replaces old by next in the list of loaded modules, or appends next.
func (l *Loader) publish(old, next *instance) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errcode.New(errcode.Conflict, "the loader was closed meanwhile")
	}
	if at := slices.Index(l.loaded, old); at >= 0 {
		l.loaded[at] = next
		return nil
	}
	l.loaded = append(l.loaded, next)
	return nil
}

// drain ends i and closes it when its last lease is released. When ctx ends first, a
// goroutine, which Close waits for, goes on with it.
func (l *Loader) drain(ctx context.Context, i *instance) error {
	i.end()
	if err := i.waitIdle(ctx); err != nil {
		l.closeWhenIdle(i)
		return err
	}
	return i.close()
}

// closeWhenIdle closes an ended instance in the background.
func (l *Loader) closeWhenIdle(i *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = append(slices.DeleteFunc(l.draining, (*instance).closedOK), i)
	go func() {
		<-i.idle
		i.err = i.close()
		close(i.closed)
	}()
}

// waitClosed waits for a draining instance and returns the error of closing it.
func (l *Loader) waitClosed(ctx context.Context, i *instance) error {
	if err := i.waitIdle(ctx); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.draining = append(l.draining, i)
		return err
	}
	<-i.closed
	return i.err
}
