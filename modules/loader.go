package modules

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

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
	groups Groups

	mu     sync.Mutex // guards what follows; not held while a module or the registry is called
	loaded []*instance
	late   []*instance // ended; each closes on a goroutine of its own when its calls have left
	busy   map[string]bool
	shut   bool
}

// Info describes a loaded module.
type Info struct {
	Name   string               `json:"name"`
	Groups []toolgroups.GroupID `json:"groups"` // sorted
}

// NewLoader makes a Loader that has loaded nothing. Close it.
func NewLoader(groups Groups) *Loader {
	return &Loader{groups: groups, busy: make(map[string]bool)}
}

// Load brings a module into service. The life of a module is:
//
//  1. Its name is checked: CheckName, and that no module of this name is
//     loaded. A module that is refused here has not been touched.
//  2. It is provisioned, if it is a Provisioner. Work that may block or fail
//     belongs here.
//  3. It is validated, if it is a Validator.
//  4. It is asked for its groups, and each tool for its definition, once.
//  5. Its groups are registered under Owner(name), in its order.
//  6. Its tools are called, possibly concurrently; each call enters the
//     instance and leaves it.
//  7. Unload, or Reload with a successor, ends it: no call enters any more,
//     and a late one fails with tool_unavailable. Its groups go.
//  8. When the calls that had entered have left, it is closed, if it is an
//     io.Closer.
//
// When one of the steps 2 to 5 fails, those before it are undone in reverse:
// groups go, calls that entered meanwhile are waited for, and the module is
// closed.
func (l *Loader) Load(ctx context.Context, m Module) error {
	_, err := l.bring(ctx, m, false)
	return err
}

// Reload replaces the loaded module of m's name by m, which has to be another
// value. The new one is provisioned and validated beside the old one; then its
// groups replace the old ones of the same id, each atomically, and groups it
// has no more are unregistered; then the old one is ended as Unload ends it.
//
// When the new one fails, in one of the steps 1 to 5 of Load, the old one
// stays and has its groups. Errors of StepWait and StepClose without one of
// those steps come from the end of the old one: the new one is in service.
func (l *Loader) Reload(ctx context.Context, m Module) error {
	old, err := l.bring(ctx, m, true)
	if err != nil {
		return err
	}
	return l.retire(ctx, old)
}

// Unload takes a module out of service: it ends it, unregisters its groups,
// last one first, and closes it when the calls that entered it have left.
//
// ctx bounds that wait. When it ends first, the error is of StepWait, the
// module is unloaded nevertheless and closes with the last call; Close waits
// for that. A tool that unloads its own module thus waits for itself, until
// ctx ends.
func (l *Loader) Unload(ctx context.Context, name string) error {
	i, err := l.claim(name, nil, true)
	if err != nil {
		return err
	}
	i.end()
	err = l.withdraw(i)
	l.forget(i)
	return errors.Join(err, l.retire(ctx, i))
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
	return errors.Join(errs...)
}

// Changed says that the groups of a module are others now. It returns at once:
// they are asked for soon, and once for many calls; what they replace is
// replaced as by Reload. What goes wrong leaves the groups as they were. A name
// that nobody bears is passed over.
func (l *Loader) Changed(name string) {}

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

// bring takes m into service, in the place of the one it gives back when it
// replaces one.
func (l *Loader) bring(ctx context.Context, m Module, replaces bool) (*instance, error) {
	name, err := nameOf(m)
	if err != nil {
		return nil, &StepError{Module: name, Step: StepCheck, Err: err}
	}
	old, err := l.claim(name, m, replaces)
	if err != nil {
		return nil, err
	}
	defer l.release(name)
	next := newInstance(name, m)
	err = next.prepare(ctx)
	if err == nil {
		err = l.install(old, next)
	}
	if err != nil {
		return nil, errors.Join(err, l.retire(ctx, next))
	}
	return old, nil
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

// claim reserves the name for one change, until release, and gives the
// instance that is loaded under it: one if there has to be one, else none.
func (l *Loader) claim(name string, m Module, loaded bool) (*instance, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := l.find(name)
	if refusal := l.refuse(name, i, m, loaded); refusal != "" {
		return nil, &StepError{Module: name, Step: StepCheck, Err: errcode.New(errcode.Conflict, "module %.128q %s", name, refusal)}
	}
	l.busy[name] = true
	return i, nil
}

// refuse says why a change cannot be made now, "" when it can.
func (l *Loader) refuse(name string, i *instance, m Module, loaded bool) string {
	switch {
	case l.busy[name]:
		return "is being changed by somebody else; try again later"
	case l.shut && m != nil:
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
	delete(l.busy, name)
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
	if l.shut {
		return errcode.New(errcode.Conflict, "the loader was closed meanwhile")
	}
	if at := slices.Index(l.loaded, old); at >= 0 {
		l.loaded[at] = next
		return nil
	}
	l.loaded = append(l.loaded, next)
	return nil
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
	delete(l.busy, i.name)
}

// retire ends i and closes it when the calls that entered it have left. When
// ctx ends first, a goroutine that Close waits for takes over.
func (l *Loader) retire(ctx context.Context, i *instance) error {
	i.end()
	if err := i.wait(ctx); err != nil {
		l.closeLater(i)
		return err
	}
	return i.close()
}

func (l *Loader) closeLater(i *instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(slices.DeleteFunc(l.late, (*instance).closedWell), i)
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
		l.late = append(l.late, i)
		return err
	}
	<-i.closed
	return i.err
}

// shutDown lets no module in any more and gives what there is to end.
func (l *Loader) shutDown() (names []string, late []*instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range l.loaded {
		names = append(names, i.name)
	}
	late, l.late, l.shut = l.late, nil, true
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
