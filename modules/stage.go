package modules

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// StagedModule is a change of one module that is prepared and not in service yet. It is a module
// that was provisioned and validated, or the end of a loaded module. The name of the module is
// locked. No other change of it is possible until Swap, Activate or Discard is called.
//
// Swap makes one change. Several changes can be made together, or with other changes of the
// registry. Call Register of each change in one toolgroups.Manager.Update. Then call Activate and
// DrainOld of each, or Discard of each if Update has failed.
type StagedModule struct {
	loader    *Loader
	name      string
	owner     *toolgroups.Owner
	old, next *instance // old is nil if the module is new, next if it is to be unloaded
}

// StageModule provisions and validates m, to be loaded or to replace the loaded module of its
// name. It is the part of LoadModule and ReloadModule that runs code of the module.
func (l *Loader) StageModule(ctx context.Context, m Module) (*StagedModule, error) {
	return l.StageLabelled(ctx, m, Labels{})
}

// StageLabelled is StageModule for a module whose tools have labels. They stay with the
// module: ReloadModule drops them.
func (l *Loader) StageLabelled(ctx context.Context, m Module, labels Labels) (*StagedModule, error) {
	name, err := validName(m)
	loaded := false
	if err == nil {
		_, loaded = l.GroupsOf(name)
	}
	return l.stage(ctx, m, loaded, labels)
}

// Values of replaces in stage and lockModule.
const (
	newModule   = false
	replacement = true
)

// stage locks the name and prepares m. replaces is whether a module of this name has to
// be loaded or must not be.
func (l *Loader) stage(ctx context.Context, m Module, replaces bool, labels Labels) (*StagedModule, error) {
	name, err := validName(m)
	if err != nil {
		return nil, &StepError{Module: name, Step: StepCheck, Err: err}
	}
	old, err := l.lockModule(ctx, name, m, replaces)
	if err != nil {
		return nil, err
	}
	owner, err := l.ownerOf(name, old)
	if err != nil {
		l.unlockModule(name)
		return nil, &StepError{Module: name, Step: StepCheck, Err: err}
	}
	s := &StagedModule{loader: l, name: name, owner: owner, old: old, next: newInstance(l, name, m)}
	s.next.owner, s.next.labels = owner, labels
	stepCtx, cancel := context.WithTimeout(ctx, l.stepTimeout())
	defer cancel()
	if err := s.next.prepareUnlessCached(stepCtx, !replaces); err != nil {
		return nil, errors.Join(err, s.Discard(stepCtx))
	}
	return s, nil
}

// ownerOf returns the owner of the groups of a module. A module that is loaded has one;
// for others the owner is claimed.
func (l *Loader) ownerOf(name string, loaded *instance) (*toolgroups.Owner, error) {
	if loaded != nil {
		return loaded.owner, nil
	}
	return l.groups.ClaimOwner(OwnerOf(name))
}

// StageUnload prepares the end of a loaded module. It waits for a refresh in progress.
func (l *Loader) StageUnload(ctx context.Context, name string) (*StagedModule, error) {
	old, err := l.lockModule(ctx, name, nil, replacement)
	if err != nil {
		return nil, err
	}
	return &StagedModule{loader: l, name: name, owner: old.owner, old: old}, nil
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
func (s *StagedModule) GroupIDs() []toolgroups.GroupID { return idsOf(s.next) }

// HasAPI reports whether roles can list the API of the module alone, as server/api
// (toolgroups.Group.APIs).
func (s *StagedModule) HasAPI(api string) bool {
	return s.next != nil && slices.ContainsFunc(s.next.groups, func(g toolgroups.Group) bool {
		return g.OpenAPIs && tool.CheckName(api) == nil || slices.Contains(slices.Collect(maps.Values(g.APIs)), api)
	})
}

// HasTool reports whether the module has a tool of this name, or one with this name at its
// server.
func (s *StagedModule) HasTool(name string) bool {
	return s.next != nil && slices.ContainsFunc(s.next.groups, func(g toolgroups.Group) bool {
		return slices.ContainsFunc(g.Tools, func(t tool.Tool) bool {
			return t != nil && (t.Definition().Name == name || g.APIs[t.Definition().Name] == name)
		})
	})
}

// Swap makes the change and ends the module that is replaced or unloaded, if any. The
// module rejects new calls, and is closed when its calls in progress have ended. ctx
// bounds that wait. On an error of StepRegister the module is not in service. On an
// error of StepUnregister the module is unloaded, and its groups, if they stay, are
// unavailable.
func (s *StagedModule) Swap(ctx context.Context) error {
	err := s.loader.groups.Update(s.Register)
	if s.next == nil {
		return errors.Join(s.registerError(err), s.Activate(), s.DrainOld(ctx))
	}
	if err == nil {
		err = s.Activate()
	}
	if err != nil {
		return errors.Join(s.registerError(err), s.Discard(ctx))
	}
	return s.DrainOld(ctx)
}

// registerError returns err, unless it is nil, as an error of StepRegister or
// StepUnregister.
func (s *StagedModule) registerError(err error) error {
	if err == nil {
		return nil
	}
	step := StepRegister
	if s.next == nil {
		step = StepUnregister
	}
	return &StepError{Module: s.name, Step: step, Err: err}
}

// Register replaces the groups of the old module by the groups of the new module. Groups that are
// the same stay registered unchanged.
func (s *StagedModule) Register(tx *toolgroups.Tx) error {
	var old, next []toolgroups.Group
	if s.old != nil {
		old = s.old.groups
	}
	if s.next != nil {
		next = s.next.groups
	}
	return replaceGroups(tx, s.owner, old, next)
}

// Activate brings the module into service after its groups were registered. The module
// that it replaces, if any, gets no further calls; DrainOld has to follow. The error has
// the code conflict if the Loader was closed meanwhile. The groups are then removed
// again, and the caller has to call Discard.
func (s *StagedModule) Activate() error {
	if err := s.publish(); err != nil {
		return errors.Join(err, s.loader.groups.Update(func(tx *toolgroups.Tx) error {
			return replaceGroups(tx, s.owner, s.next.groups, nil)
		}))
	}
	if s.old != nil {
		s.old.end()
	}
	if s.next == nil {
		s.owner.Release()
	}
	s.loader.unlockModule(s.name)
	return nil
}

// publish replaces old by next in the list of loaded modules.
func (s *StagedModule) publish() error {
	l := s.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slices.Index(l.loaded, s.old)
	switch {
	case s.next == nil:
		l.loaded = slices.Delete(l.loaded, at, at+1)
	case l.closed:
		return errcode.New(errcode.Conflict, "the loader was closed meanwhile")
	case at >= 0:
		l.loaded[at] = s.next
	default:
		l.loaded = append(l.loaded, s.next)
	}
	return nil
}

// DrainOld closes the module that was replaced or unloaded, if any, when its calls in
// progress have ended. Errors are of StepWait and StepClose.
func (s *StagedModule) DrainOld(ctx context.Context) error {
	if s.old == nil {
		return nil
	}
	return s.loader.drain(ctx, s.old)
}

// Discard drops the change. It closes the staged module and changes nothing else.
func (s *StagedModule) Discard(ctx context.Context) error {
	if s.old == nil {
		s.owner.Release()
	}
	s.loader.unlockModule(s.name)
	if s.next == nil {
		return nil
	}
	return s.loader.drain(ctx, s.next)
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
	l.draining = append(slices.DeleteFunc(l.draining, (*instance).hasClosed), i)
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
