package modules

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// Staged is a module that is ready and that nobody sees yet. Swap, Install or
// Discard ends it; until then its name can be changed by nobody else.
type Staged struct {
	loader    *Loader
	old, next *instance
}

// Stage provisions and validates m, to be loaded or to replace the loaded
// module of its name: the part of Load and Reload that may fail for reasons of
// the module's own.
func (l *Loader) Stage(ctx context.Context, m Module) (*Staged, error) {
	name, err := nameOf(m)
	loaded := false
	if err == nil {
		_, loaded = l.GroupsOf(name)
	}
	return l.stage(ctx, m, loaded)
}

// stage claims the name and prepares m beside what is loaded.
func (l *Loader) stage(ctx context.Context, m Module, replaces bool) (*Staged, error) {
	name, err := nameOf(m)
	if err != nil {
		return nil, &StepError{Module: name, Step: StepCheck, Err: err}
	}
	old, err := l.lockModule(ctx, name, m, replaces)
	if err != nil {
		return nil, err
	}
	next := newInstance(l, name, m)
	within, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	if err := next.ready(within, !replaces); err != nil {
		l.release(name)
		return nil, errors.Join(err, l.drain(within, next))
	}
	return &Staged{l, old, next}, nil
}

// ready prepares the module, or lets it sleep when it may and knows its groups.
func (i *instance) ready(ctx context.Context, maySleep bool) error {
	if !maySleep {
		return i.prepare(ctx)
	}
	groups, ok, err := i.known(ctx)
	if err != nil {
		return err
	}
	if !ok {
		return i.prepare(ctx)
	}
	i.groups, i.sleep = groups, new(lazyState)
	return nil
}

// Groups gives the ids of the groups that it will have, sorted.
func (s *Staged) Groups() []toolgroups.GroupID { return idsOf(s.next) }

// Swap brings the module into service in the place of the old one, if there is
// one, which is ended as by Unload: Install, then Retire.
func (s *Staged) Swap(ctx context.Context) error {
	if err := s.Install(ctx); err != nil {
		return err
	}
	return s.DrainOld(ctx)
}

// Install brings the module into service in the place of the old one, if there
// is one, which no call enters any more; Retire is to follow. It waits for no
// call. On error, of StepRegister, everything is as it was, and ctx bounds how
// long the module that was staged is waited for.
func (s *Staged) Install(ctx context.Context) error {
	err := s.loader.install(s.old, s.next)
	if err == nil && s.old != nil {
		s.old.end()
	}
	s.loader.release(s.next.name)
	if err != nil {
		return errors.Join(err, s.loader.drain(ctx, s.next))
	}
	return nil
}

// DrainOld closes the module that Install replaced, if there was one, when the
// calls that entered it have left. Errors are of StepWait and StepClose, as of
// Unload.
func (s *Staged) DrainOld(ctx context.Context) error {
	if s.old == nil {
		return nil
	}
	return s.loader.drain(ctx, s.old)
}

// Discard closes the module that was staged and leaves everything as it was.
func (s *Staged) Discard(ctx context.Context) error {
	s.loader.release(s.next.name)
	return s.loader.drain(ctx, s.next)
}

// install registers the groups of next in the place of old's and lists it; or
// it leaves everything as it was.
func (l *Loader) install(old, next *instance) error {
	var held []toolgroups.Group
	if old != nil {
		held = old.groups
	}
	book := newLedger(l.groups, Owner(next.name), held)
	err := book.replace(held, next.groups)
	if err == nil {
		err = l.publish(old, next)
	}
	if err != nil {
		return next.failed(StepRegister, errors.Join(err, book.rollback()))
	}
	return nil
}

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

// drain ends i and closes it when the calls that entered it have left. When
// ctx ends first, a goroutine that Close waits for takes over.
func (l *Loader) drain(ctx context.Context, i *instance) error {
	i.end()
	if err := i.wait(ctx); err != nil {
		l.closeAsync(i)
		return err
	}
	return i.close()
}

func (l *Loader) closeAsync(i *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = append(slices.DeleteFunc(l.draining, (*instance).closedOK), i)
	go func() {
		<-i.idle
		i.err = i.close()
		close(i.closed)
	}()
}

// finish waits for a late instance and gives the error of closing it.
func (l *Loader) finish(ctx context.Context, i *instance) error {
	if err := i.wait(ctx); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.draining = append(l.draining, i)
		return err
	}
	<-i.closed
	return i.err
}
