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
	"github.com/rolecall/rolecall/toolgroups"
)

// Groups is the registry of tool groups as the Loader needs it; both
// toolgroups.Manager and runtime.Runtime are one. Registering a group again
// replaces it atomically.
type Groups interface {
	Register(owner toolgroups.Owner, g toolgroups.Group) (toolgroups.Warning, error)
	Unregister(owner toolgroups.Owner, id toolgroups.GroupID) error
}

// Loader loads, reloads and unloads modules. All methods are safe for
// concurrent use. Changes of different modules go side by side; a second
// change of one module while the first is under way is refused, with
// conflict, rather than kept waiting.
//
// Failures are *StepError, several of them joined, first cause first.
type Loader struct {
	// Log hears what goes wrong with nobody waiting for it; nil discards. Set
	// it before the first Load, as Patience.
	Log *slog.Logger
	// StepTimeout is how long Provision, Validate, Groups and Close may take; 0 is
	// 30 seconds.
	StepTimeout time.Duration

	groups Groups
	ending chan struct{} // closed by Close

	mu         sync.Mutex // guards what follows; not held while a module or the registry is called
	loaded     []*instance
	draining   []*instance // ended; each closes on a goroutine of its own when its calls have left
	locks      map[string]*changeLock
	refreshers map[string]*refresher
	background int           // goroutines that refresh and wake
	quiet      chan struct{} // closed when jobs comes to 0
	closed     bool
}

// changeLock is the right to change a module.
type changeLock struct {
	done    chan struct{} // closed when it is given back
	refresh bool          // of a refresh, which is short: others wait for it
}

// Info describes a loaded module.
type Info struct {
	Name   string               `json:"name"`
	Groups []toolgroups.GroupID `json:"groups"` // sorted
}

// NewLoader makes a Loader that has loaded nothing. Close it.
func NewLoader(groups Groups) *Loader {
	return &Loader{groups: groups, ending: make(chan struct{}), locks: map[string]*changeLock{}, refreshers: map[string]*refresher{}}
}

func (l *Loader) log() *slog.Logger {
	if l.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.Log
}

func (l *Loader) patience() time.Duration { return cmp.Or(l.StepTimeout, 30*time.Second) }

// Load brings a module into service: steps 2 to 4 of its life (Module), in the
// order Provision, Validate, Groups, Register. Its name is checked first:
// CheckName, and that no module of this name is loaded; a module that is
// refused there has not been touched. Each tool is asked for its definition,
// once.
//
// When a step fails, those before it are undone in reverse: groups go, calls
// that entered meanwhile are waited for, and the module is closed. A Lazy
// module that knows its groups is only registered.
func (l *Loader) Load(ctx context.Context, m Module) error {
	s, err := l.stage(ctx, m, false)
	if err != nil {
		return err
	}
	return s.Swap(ctx)
}

// Reload replaces the loaded module of m's name by m, which has to be another
// value. The new one is provisioned and validated beside the old one; then its
// groups replace the old ones of the same id, each atomically, and groups it
// has no more are unregistered; then the old one is ended as Unload ends it.
//
// When the new one fails, the old one stays and has its groups. Errors of
// StepWait and StepClose without another step come from the end of the old one:
// the new one is in service.
func (l *Loader) Reload(ctx context.Context, m Module) error {
	s, err := l.stage(ctx, m, true)
	if err != nil {
		return err
	}
	return s.Swap(ctx)
}

// Unload takes a module out of service: it unregisters its groups, last one
// first, ends it, and closes it when the calls that entered it have left.
//
// ctx bounds that wait. When it ends first, the error is of StepWait, the
// module is unloaded nevertheless and closes with the last call; Close waits
// for that. A tool that unloads its own module thus waits for itself, until
// ctx ends.
func (l *Loader) Unload(ctx context.Context, name string) error {
	i, err := l.lockModule(ctx, name, nil, true)
	if err != nil {
		return err
	}
	err = l.withdraw(i)
	i.end()
	l.forget(i)
	return errors.Join(err, l.drain(ctx, i))
}

// Close unloads all modules, the last loaded first, waits for those whose
// Unload did not, and refuses to load more. ctx bounds the waits; a second
// Close waits for what the first one left.
func (l *Loader) Close(ctx context.Context) error {
	names, late := l.shutDown()
	var errs []error
	for _, name := range slices.Backward(names) {
		errs = append(errs, l.Unload(ctx, name))
	}
	for _, i := range late {
		errs = append(errs, l.finish(ctx, i))
	}
	return errors.Join(append(errs, l.WaitIdle(ctx))...)
}

// Modules lists the loaded modules, sorted by name.
func (l *Loader) Modules() []Info {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Info, len(l.loaded))
	for n, i := range l.loaded {
		list[n] = Info{Name: i.name, Groups: idsOf(i)}
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// GroupsOf lists the ids of a module's groups, sorted; false when no module of
// this name is loaded.
func (l *Loader) GroupsOf(name string) ([]toolgroups.GroupID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := l.find(name); i != nil {
		return idsOf(i), true
	}
	return nil, false
}

func nameOf(m Module) (name string, err error) {
	if m == nil {
		return "", errcode.New(errcode.InvalidConfig, "there is no module")
	}
	err = guard(func() error {
		name = m.Name()
		return CheckName(name)
	})
	return name, err
}

// lockModule reserves the name for one change, until release, and gives the
// instance that is loaded under it: one if there has to be one, else none. A
// refresh under way is waited for.
func (l *Loader) lockModule(ctx context.Context, name string, m Module, loaded bool) (*instance, error) {
	for {
		held, i, refusal := l.reserve(name, m, loaded)
		if held == nil {
			return i, nil
		}
		if held.refresh {
			select {
			case <-held.done:
				continue
			case <-ctx.Done():
				refusal = "is being refreshed"
			}
		}
		return nil, &StepError{Module: name, Step: StepCheck, Err: errcode.New(errcode.Conflict, "module %.128q %s", name, refusal)}
	}
}

// reserve makes the claim, or gives the one in the way and says why it cannot
// be made.
func (l *Loader) reserve(name string, m Module, loaded bool) (held *changeLock, i *instance, refusal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i = l.find(name)
	if held = l.locks[name]; held != nil && held.refresh {
		return held, nil, ""
	}
	if refusal = l.refuse(name, i, m, loaded); refusal != "" {
		return &changeLock{}, nil, refusal
	}
	l.locks[name] = &changeLock{done: make(chan struct{})}
	return nil, i, ""
}

// refuse says why a change cannot be made now, "" when it can.
func (l *Loader) refuse(name string, i *instance, m Module, loaded bool) string {
	switch {
	case l.locks[name] != nil:
		return "is being changed by somebody else; try again later"
	case l.closed && m != nil:
		return "comes too late: the loader is closed"
	case loaded && i == nil:
		return "is not loaded"
	case !loaded && i != nil:
		return "is loaded already; reload it, or choose another name"
	case loaded && same(i.module, m):
		return "cannot replace itself; make a new one"
	}
	return ""
}

// same says whether two modules share their memory, so that closing one would
// close the other.
func same(a, b Module) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer &&
		x.Type() == y.Type() && x.Type().Elem().Size() > 0 && x.Pointer() == y.Pointer()
}

func (l *Loader) release(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free(name)
}

// free wants mu held.
func (l *Loader) free(name string) {
	if c := l.locks[name]; c != nil {
		delete(l.locks, name)
		close(c.done)
	}
}

// withdraw unregisters the groups of i. One that stays does no harm: its tools
// are unavailable, and a module of the same name replaces it.
func (l *Loader) withdraw(i *instance) error {
	book := newLedger(l.groups, Owner(i.name), i.groups)
	var errs []error
	for _, g := range slices.Backward(i.groups) {
		if err := book.drop(g.ID); err != nil {
			errs = append(errs, i.failed(StepUnregister, err))
		}
	}
	return errors.Join(errs...)
}

func (l *Loader) forget(i *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loaded = slices.DeleteFunc(l.loaded, func(other *instance) bool { return other == i })
	l.free(i.name)
}

// shutDown lets no module in any more and gives what there is to end.
func (l *Loader) shutDown() (names []string, late []*instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.loaded {
		names = append(names, i.name)
	}
	if !l.closed {
		close(l.ending)
	}
	late, l.draining, l.closed = l.draining, nil, true
	return names, late
}

// find wants mu held.
func (l *Loader) find(name string) *instance {
	for _, i := range l.loaded {
		if i.name == name {
			return i
		}
	}
	return nil
}

func idsOf(i *instance) []toolgroups.GroupID {
	ids := make([]toolgroups.GroupID, len(i.groups))
	for n, g := range i.groups {
		ids[n] = g.ID
	}
	slices.Sort(ids)
	return ids
}
