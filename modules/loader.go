package modules

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/toolgroups"
)

// Loader loads, reloads and unloads modules. All methods are safe for concurrent use.
// Different modules are changed concurrently. A second change of one module during the
// first does not wait: it fails with the code conflict.
//
// Errors are *StepError; several of them are joined, the first cause first.
type Loader struct {
	// Log receives the errors of background work; nil discards them. Set it, and
	// StepTimeout, before the first LoadModule.
	Log *slog.Logger
	// StepTimeout is how long Provision, Validate, ToolGroups and Close may take; 0 is
	// 30 seconds.
	StepTimeout time.Duration

	groups  *toolgroups.Manager
	changes *fair.RateTable[string] // of the groups of modules, by name
	closing chan struct{}           // closed by Close

	mu         sync.Mutex // guards what follows; not held while a module or the registry is called
	loaded     []*instance
	draining   []*instance // ended; each is closed by a goroutine when its last lease is released
	locks      map[string]*changeLock
	refreshers map[string]*refresher
	background int           // goroutines that refresh or provision
	idle       chan struct{} // closed when background becomes 0
	closed     bool
}

// changeLock is held, by the name of a module, while the module is changed.
type changeLock struct {
	done    chan struct{} // closed when the lock is released
	refresh bool          // held by a refresh, which is short: other changes wait for it
}

// ModuleInfo describes a loaded module.
type ModuleInfo struct {
	Name   string               `json:"name"`
	Groups []toolgroups.GroupID `json:"groups"` // sorted
}

// NewLoader returns a Loader that registers its modules' groups with groups. The
// caller closes it.
func NewLoader(groups *toolgroups.Manager) *Loader {
	changes := fair.NewRateTable[string](maxChanging)
	changes.SetRate(changeInterval, changeBurst)
	return &Loader{groups: groups, changes: changes, closing: make(chan struct{}), locks: map[string]*changeLock{}, refreshers: map[string]*refresher{}}
}

func (l *Loader) log() *slog.Logger {
	if l.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.Log
}

func (l *Loader) stepTimeout() time.Duration { return cmp.Or(l.StepTimeout, 30*time.Second) }

// LoadModule brings a module into service. It runs steps 2 to 4 of Module: Provision,
// Validate, ToolGroups, and the registration of the groups. Before that it checks that the
// name is valid (CheckName) and free; a module that fails there has not been changed.
// Each tool's Definition is called once.
//
// When a step fails, the steps before it are undone: the module is closed, and none of its
// groups is registered. A LazyModule module with cached groups is only registered.
func (l *Loader) LoadModule(ctx context.Context, m Module) error {
	s, err := l.stage(ctx, m, newModule, Labels{})
	if err != nil {
		return err
	}
	return s.Swap(ctx)
}

// ReloadModule replaces the loaded module of m's name by m, which has to be another value.
// The new module is provisioned and validated while the old one stays in service. Then its
// groups replace the groups of the old module, all at once. Then the old module is ended
// as by UnloadModule.
//
// When the new module fails, the old one stays with its groups. Errors of StepWait and
// StepClose alone come from the end of the old module: the new one is in service.
func (l *Loader) ReloadModule(ctx context.Context, m Module) error {
	s, err := l.stage(ctx, m, replacement, Labels{})
	if err != nil {
		return err
	}
	return s.Swap(ctx)
}

// UnloadModule takes a module out of service. It unregisters the groups, rejects new calls,
// and closes the module when its calls in progress have ended.
//
// ctx bounds that wait. When it ends first, the error is of StepWait. The module is
// unloaded nevertheless and closes after the last call. Close waits for this call. A tool
// that unloads its own module waits for itself until ctx ends.
func (l *Loader) UnloadModule(ctx context.Context, name string) error {
	s, err := l.StageUnload(ctx, name)
	if err != nil {
		return err
	}
	return s.Swap(ctx)
}

// CloseAll is Close for the end of a process: it waits a minute at most. A module that
// does not return by then is left behind, with an error.
func (l *Loader) CloseAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return l.Close(ctx)
}

// Close unloads all modules, the last loaded first, and waits for modules that still
// drain. No module can be loaded afterwards. ctx bounds the waits; a second Close
// waits for what the first one left.
func (l *Loader) Close(ctx context.Context) error {
	names, draining := l.beginClose()
	var errs []error
	for _, name := range slices.Backward(names) {
		errs = append(errs, l.UnloadModule(ctx, name))
	}
	for _, i := range draining {
		errs = append(errs, l.waitClosed(ctx, i))
	}
	return errors.Join(append(errs, l.WaitIdle(ctx))...)
}

// ListModules lists the loaded modules, sorted by name.
func (l *Loader) ListModules() []ModuleInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]ModuleInfo, len(l.loaded))
	for n, i := range l.loaded {
		list[n] = ModuleInfo{Name: i.name, Groups: idsOf(i)}
	}
	slices.SortFunc(list, func(a, b ModuleInfo) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// GroupsOf returns the sorted ids of a module's groups, and false when no module of
// this name is loaded.
func (l *Loader) GroupsOf(name string) ([]toolgroups.GroupID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(name); i != nil {
		return idsOf(i), true
	}
	return nil, false
}

// validName returns the module's name if it is valid.
func validName(m Module) (name string, err error) {
	if m == nil {
		return "", errcode.New(errcode.InvalidConfig, "the module is nil")
	}
	err = recoverPanic(func() error {
		name = m.Name()
		return CheckName(name)
	})
	return name, err
}

// lockModule locks the name for one change and returns the instance that is loaded
// under it. replaces is whether there has to be one; otherwise there must be none. It
// waits for a refresh in progress. The caller calls unlockModule.
func (l *Loader) lockModule(ctx context.Context, name string, m Module, replaces bool) (*instance, error) {
	for {
		held, i, conflict := l.tryLock(name, m, replaces)
		if held == nil && conflict == "" {
			return i, nil
		}
		if held != nil {
			select {
			case <-held.done:
				continue
			case <-ctx.Done():
				conflict = "is being refreshed"
			}
		}
		return nil, &StepError{Module: name, Step: StepCheck, Err: errcode.New(errcode.Conflict, "module %.128q %s", name, conflict)}
	}
}

// tryLock locks the name, or returns the lock of the refresh to wait for, or why the
// change is impossible.
func (l *Loader) tryLock(name string, m Module, replaces bool) (held *changeLock, i *instance, conflict string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held = l.locks[name]; held != nil && held.refresh {
		return held, nil, ""
	}
	i = l.find(name)
	if conflict = l.conflict(name, i, m, replaces); conflict != "" {
		return nil, nil, conflict
	}
	l.locks[name] = &changeLock{done: make(chan struct{})}
	return nil, i, ""
}

// conflict returns why a change is impossible now, "" when it is possible. m is nil
// for UnloadModule. It must be called with mu held.
func (l *Loader) conflict(name string, i *instance, m Module, replaces bool) string {
	switch {
	case l.locks[name] != nil:
		return "is being changed; try again later"
	case l.closed && m != nil:
		return "cannot be loaded: the loader is closed"
	case replaces && i == nil:
		return "is not loaded"
	case !replaces && i != nil:
		return "is loaded already; reload it or choose another name"
	case replaces && sharesMemory(i.module, m):
		return "cannot replace itself; make a new one"
	}
	return ""
}

// sharesMemory reports whether two modules are the same pointer, so that closing one
// would close the other.
func sharesMemory(a, b Module) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer &&
		x.Type() == y.Type() && x.Type().Elem().Size() > 0 && x.Pointer() == y.Pointer()
}

func (l *Loader) unlockModule(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlock(name)
}

// unlock must be called with mu held.
func (l *Loader) unlock(name string) {
	if c := l.locks[name]; c != nil {
		delete(l.locks, name)
		close(c.done)
	}
}

// beginClose makes loading fail from now on. It returns the names of the loaded modules
// and the instances that drain.
func (l *Loader) beginClose() (names []string, draining []*instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.loaded {
		names = append(names, i.name)
	}
	if !l.closed {
		close(l.closing)
	}
	draining, l.draining, l.closed = l.draining, nil, true
	return names, draining
}

// find must be called with mu held.
func (l *Loader) find(name string) *instance {
	for _, i := range l.loaded {
		if i.name == name {
			return i
		}
	}
	return nil
}

// idsOf returns the sorted ids of an instance's groups.
func idsOf(i *instance) []toolgroups.GroupID {
	ids := make([]toolgroups.GroupID, len(i.groups))
	for n, g := range i.groups {
		ids[n] = g.ID
	}
	slices.Sort(ids)
	return ids
}
