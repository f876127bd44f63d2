package property_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

var errFault = errors.New("the disk says no")

// fault is the at-th operation of a kind. A commit that breaks has been
// prepared when it fails, as one whose write fails, and the store takes
// nothing more until it is mended.
type fault struct {
	operation string
	at        int
	breaks    bool
}

// faulty is a store with a fault.
type faulty struct {
	watched
	fault
	busy []identity.AgentID // what Runnable gives

	mu     sync.Mutex     // guards what follows
	n      map[string]int // operations so far
	broken bool
	failed bool
}

// fails counts an operation and says whether it is the one, or comes after it.
func (f *faulty) fails(operation string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n[operation]++
	switch {
	case f.broken:
		return journal.ErrClosed
	case operation != f.operation || f.n[operation] != f.at:
		return nil
	}
	f.failed = true
	return errFault
}

func (f *faulty) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = false
}

// Commit implements journal.Log.
func (f *faulty) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	err := f.fails("Commit")
	switch {
	case err == nil:
		return f.watched.Commit(ctx, b)
	case err != errFault || !f.breaks:
		return 0, err
	}
	f.mu.Lock()
	f.broken = true
	f.mu.Unlock()
	prepare := b.Prepare
	_, err = f.memory.Commit(ctx, &journal.Batch{Prepare: func(*journal.Batch) error {
		if prepare != nil {
			if err := prepare(b); err != nil {
				return err
			}
		}
		return journal.ErrClosed
	}})
	return 0, err
}

// Read implements journal.Log.
func (f *faulty) Read(ctx context.Context, id identity.AgentID, after uint64) iter.Seq2[journal.Event, error] {
	return orFail(f, "Read", f.memory.Read(ctx, id, after))
}

// Records implements journal.Records.
func (f *faulty) Records(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return orFail(f, "Records", f.memory.Records(ctx, kind, prefix))
}

// orFail gives a sequence, or one that is an error half-way.
func orFail[T any](f *faulty, operation string, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err, n := f.fails(operation), 0
		for v := range list {
			if n++; err != nil && n == 2 {
				break
			}
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			yield(*new(T), err)
		}
	}
}

// Record implements journal.Records.
func (f *faulty) Record(ctx context.Context, kind, key string) ([]byte, error) {
	if err := f.fails("Record"); err != nil {
		return nil, err
	}
	return f.memory.Record(ctx, kind, key)
}

// Inbox implements journal.Mailbox.
func (f *faulty) Inbox(ctx context.Context, id identity.AgentID) ([]journal.Message, error) {
	if err := f.fails("Inbox"); err != nil {
		return nil, err
	}
	return f.memory.Inbox(ctx, id)
}

// Delayed implements journal.Mailbox.
func (f *faulty) Delayed(ctx context.Context) ([]journal.Message, error) {
	if err := f.fails("Delayed"); err != nil {
		return nil, err
	}
	return f.memory.Delayed(ctx)
}

// Runnable implements journal.Mailbox.
func (f *faulty) Runnable(ctx context.Context) ([]identity.AgentID, error) {
	if err := f.fails("Runnable"); err != nil {
		return nil, err
	}
	return f.busy, nil
}

// scribe is a Recorder that commits intents and outcomes of an agent's calls.
type scribe struct {
	store journal.Store
	agent identity.AgentID
}

// Started implements gate.Recorder.
func (s scribe) Started(ctx context.Context, calls []*gate.Admission) error {
	_, err := s.store.Commit(ctx, &journal.Batch{Stream: s.agent, Prepare: func(*journal.Batch) error {
		if slices.ContainsFunc(calls, (*gate.Admission).Superseded) {
			return gate.ErrSuperseded
		}
		return nil
	}})
	return err
}

// Finished implements gate.Recorder.
func (s scribe) Finished(ctx context.Context, _ []*gate.Admission) error {
	_, err := s.store.Commit(ctx, &journal.Batch{Stream: s.agent})
	return err
}

// drill is an organization at work on a faulty store.
type drill struct {
	*scene
	staff *staff
	store *faulty
	acted int
	ids   map[string]string // what calls answered, by what was asked for
}

func newDrill(staff *staff, f fault) *drill {
	d := &drill{scene: emptyScene(), staff: staff, ids: map[string]string{}}
	d.store = &faulty{watched: watched{newMemory(), &d.diary}, fault: f, n: map[string]int{}}
	return d
}

// open begins a process on what is in the store.
func (d *drill) open() error {
	d.store.mend()
	d.groups = newDesk()
	d.law.groups = &d.groups.naive
	rt, err := newRuntime(d.store, d.groups.Manager, newBrain())
	if err != nil {
		return err
	}
	d.realm, d.staff.ToolHost = rt, rt.ToolHost()
	return d.furnish(d.staff.groups[:1]) // org_management
}

// do has an agent make a call and holds what came of it against the law, as
// far as it was put on record. Errors are what the fault may cause.
func (d *drill) do(who, name string, args any) error {
	id := identity.AgentID(d.ids[who])
	p := d.law.agents[id]
	may := d.law.may(p, name)
	out, err := d.Gate().Call(context.Background(), identity.ByAgent(id), []gate.Request{request(name, string(mustJSON(args)))}, scribe{d.store, id})
	done := d.deeds.read()
	d.acted += len(done)
	if len(done) > 0 && !may {
		return breached(ran, "%s called %s, which it may not", who, name)
	}
	if len(done) > 0 && err == nil && !out[0].Allowed() {
		return breached(ran, "%s called %s, which was refused and acted", who, name)
	}
	if p != nil {
		if err := d.law.judge(p, name, d.withoutTasks(d.diary.read())); err != nil {
			return err
		}
	}
	if err == nil && len(out) == 1 {
		var made struct{ ID string }
		_ = json.Unmarshal(out[0].Result.Structured, &made)
		if key, ok := args.(map[string]any)["name"]; ok {
			d.ids[fmt.Sprint(key)] = made.ID
		} else if made.ID != "" {
			d.ids["agent of "+fmt.Sprint(args.(map[string]any)["roleId"])] = made.ID
		}
	}
	return nil
}

// withoutTasks learns the ends of tasks, which a fault may bring about at any
// time, and gives the rest.
func (d *drill) withoutTasks(made []change) []change {
	for i := range made {
		made[i].put = slices.DeleteFunc(made[i].put, func(r journal.Record) bool {
			task := r.Kind == string(org.KindTask)
			if task {
				d.law.learn(r)
			}
			return task
		})
	}
	return slices.DeleteFunc(made, func(c change) bool { return len(c.put)+len(c.post) == 0 })
}

// hire has somebody make a role and an agent of it, which is known by the
// role's name from then on.
func (d *drill) hire(by, name string, use, grant ids) error {
	if err := d.do(by, "create_role", rolePlea("role of "+name, &use, &grant)); err != nil {
		return err
	}
	role := d.ids["role of "+name]
	err := d.do(by, "spawn_agent", map[string]any{"roleId": role, "taskBrief": brief})
	d.ids[name] = d.ids["agent of "+role]
	return err
}

// operate is a change of the operator's; it may fail.
func (d *drill) operate(change func() error) {
	_ = change()
	d.learn()
}

// run is the drill: people come, work, lose rights and get them back; the
// process ends and another goes on; more is lost.
func (d *drill) run() error {
	if err := d.open(); err != nil {
		return nil // nothing runs
	}
	err := d.begin()
	d.Close()
	d.store.busy = []identity.AgentID{identity.AgentID(d.ids["root"])}
	if d.open() != nil {
		return err
	}
	_ = d.realm.(*runtime.Runtime).Resume(context.Background(), identity.TaskID(d.ids["task"]))
	err = errors.Join(err, d.goOn())
	d.Close()
	return err
}

func (d *drill) begin() error {
	d.operate(d.start)
	return errors.Join(
		d.hire("root", "boss", ids{"beta", toolgroups.OrgManagement}, ids{"alpha", toolgroups.OrgManagement}),
		d.hire("boss", "worker", ids{"alpha"}, ids{}),
		d.work(),
		d.update("boss", nil, ids{}),
		d.work(),
		d.update("boss", nil, ids{"alpha", "beta", "gamma"}),
		d.work(),
	)
}

func (d *drill) goOn() error {
	return errors.Join(
		d.work(),
		d.update("worker", ids{"gamma", "beta"}, nil),
		d.work(),
		d.do("boss", "terminate_agent", map[string]any{"agentId": d.ids["worker"]}),
		d.work(),
		d.delete("boss"),
		d.work(),
	)
}

func (d *drill) start() error {
	groups := toolgroups.Of("alpha", "beta", toolgroups.OrgManagement)
	id, err := d.Start(context.Background(), org.TaskSpec{Text: "go", Caller: operator, Groups: &groups})
	if task, ok := d.realm.(*runtime.Runtime).Org().Task(id); ok {
		d.ids["root"], d.ids["task"] = string(task.Top), string(id)
	}
	return err
}

// work has everybody call everything.
func (d *drill) work() (err error) {
	for _, who := range []string{"boss", "worker", "root"} {
		for _, name := range []string{"t0", "t3", "t4"} {
			err = errors.Join(err, d.do(who, name, map[string]any{}))
		}
	}
	return err
}

// update has the operator give somebody's role other sets; nil leaves one as it is.
func (d *drill) update(who string, use, grant ids) error {
	var spec org.RoleSpec
	if use != nil {
		set := toolgroups.Of(use...)
		spec.Use = &set
	}
	if grant != nil {
		set := toolgroups.Of(grant...)
		spec.Grant = &set
	}
	d.operate(func() error {
		_, _, err := d.UpdateRole(operator, d.roleOf(who), spec, false)
		return err
	})
	return nil
}

func (d *drill) delete(who string) error {
	d.operate(func() error {
		_, err := d.DeleteRole(operator, d.roleOf(who), false)
		return err
	})
	return nil
}

func (d *drill) roleOf(who string) identity.RoleID { return identity.RoleID(d.ids["role of "+who]) }

// Fail closed: "Any failure to find out is a denial. A fault may remove
// permission, never add it." Every n-th operation of the store fails, once as
// one that did nothing and once as a commit that breaks the store for good:
// whatever acts, then and in the next process, had the right on record.
func TestNoFaultOfTheStoreLetsACallThrough(t *testing.T) {
	staff := newStaff(t)
	whole := newDrill(staff, fault{})
	if err := whole.run(); err != nil {
		t.Fatal(err)
	}
	if whole.acted < 6 {
		t.Fatalf("%d calls acted without a fault; this says nothing", whole.acted)
	}
	failed, acted := map[string]int{}, 0
	for _, f := range whole.store.faults() {
		for range 10 { // how often the store is asked depends on who comes first
			d := newDrill(staff, f)
			if err := d.run(); err != nil {
				t.Errorf("%+v: %v", f, err)
			}
			if acted += d.acted; d.store.failed {
				failed[f.operation]++
				break
			}
		}
	}
	t.Logf("%d calls act without a fault, %d with one of %v", whole.acted, acted, failed)
	for operation := range whole.store.n {
		if failed[operation] == 0 {
			t.Errorf("%s never failed", operation)
		}
	}
	if len(failed) < 6 {
		t.Errorf("only %v failed", failed)
	}
}

// faults lists one fault, or two, for each operation there was.
func (f *faulty) faults() (list []fault) {
	for operation, n := range f.n {
		for at := 1; at <= n; at++ {
			if list = append(list, fault{operation, at, false}); operation == "Commit" {
				list = append(list, fault{operation, at, true})
			}
		}
	}
	return list
}

// twist is a way in which a field of a record is not what it was.
var twists = []string{"", `null`, `0`, `""`, `"x"`, `[]`, `["x"]`, `{}`, `{"x":"y"}`, `true`, `false`}

// The same of what is on record: whatever field of whatever record is lost or
// spoilt, and when the record is gone or no JSON, nobody may call a tool it
// could not call before.
func TestNoSpoiltRecordAddsARight(t *testing.T) {
	store := newMemory()
	furnishRecords(t, store)
	before := sights(t, store, nil)
	n, less := 0, 0
	for _, r := range everyRecord(t, store) {
		for name, value := range spoilt(r.Value) {
			n++
			after := sights(t, store, &journal.Record{Kind: r.Kind, Key: r.Key, Value: value})
			for agent, tools := range after {
				if more := without(tools, before[agent]); len(more) > 0 {
					t.Errorf("%s %s %s: agent %s may now call %v", r.Kind, r.Key, name, agent, more)
				}
			}
			if count(after) < count(before) {
				less++
			}
		}
	}
	t.Logf("%d spoilt records, %d of them took rights away", n, less)
	if less < n/10 {
		t.Errorf("%d of %d spoilt records took rights away; this says nothing", less, n)
	}
}

// furnishRecords fills a store with roles, tasks and agents whose rights are
// all bounded by somebody.
func furnishRecords(t *testing.T, store *memory) {
	t.Helper()
	rt := reopened(t, store)
	defer rt.Close()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	all, some, alpha, none := toolgroups.All(), toolgroups.Of("alpha", "beta", "kit"), toolgroups.Of("alpha"), toolgroups.Of()
	caller, err := rt.CreateRole(ctx, call(operator), org.RoleSpec{Name: "caller", Use: &all, Grant: &none})
	must(err)
	gone, err := rt.CreateRole(ctx, call(operator), org.RoleSpec{Name: "gone", Use: &alpha, Grant: &alpha})
	must(err)
	for _, spec := range []org.TaskSpec{{Caller: operator, Groups: &some}, {Caller: identity.ByCaller("ann", caller.ID)}} {
		id, err := rt.Start(ctx, spec)
		must(err)
		task, _ := rt.Org().Task(id)
		by := task.Top
		for _, grant := range []toolgroups.Set{some, alpha, none} {
			role, err := rt.CreateRole(ctx, call(identity.ByAgent(by)), org.RoleSpec{Name: fmt.Sprint("role ", by, grant), Use: &some, Grant: &grant})
			if err != nil { // the last may give alpha alone
				role, err = rt.CreateRole(ctx, call(identity.ByAgent(by)), org.RoleSpec{Name: fmt.Sprint("role ", by), Use: &alpha, Grant: &none})
			}
			must(err)
			spawned, err := rt.Spawn(ctx, call(identity.ByAgent(by)), org.Spawn{Role: role.ID, Brief: brief}, nil)
			must(err)
			by = spawned.ID
		}
	}
	_, _, err = rt.UpdateRole(operator, caller.ID, org.RoleSpec{Use: &alpha}, false)
	must(err)
	_, err = rt.DeleteRole(operator, gone.ID, false)
	must(err)
}

// reopened begins a process on a store; its groups have effects.
func reopened(t *testing.T, store journal.Store) *runtime.Runtime {
	t.Helper()
	d := newDesk()
	for _, g := range slices.Concat(builtins, spoils) {
		if _, err := d.Register(g.owner, g.group(nil)); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := newRuntime(store, d.Manager, newBrain())
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// everyRecord lists the organization's records.
func everyRecord(t *testing.T, store *memory) []journal.Record {
	t.Helper()
	var list []journal.Record
	for _, kind := range []org.Kind{org.KindRole, org.KindAgent, org.KindTask, org.KindMeta} {
		for r, err := range store.Records(t.Context(), string(kind), "") {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

// sights lists what every agent may call, when one record is another; one
// without a value is gone.
func sights(t *testing.T, store *memory, other *journal.Record) map[identity.AgentID][]string {
	t.Helper()
	put, spoilt := everyRecord(t, store), newMemory()
	if other != nil {
		put = append(put, *other)
	}
	if _, err := spoilt.Commit(t.Context(), &journal.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	rt := reopened(t, spoilt)
	defer rt.Close()
	all := map[identity.AgentID][]string{"nobody": nil}
	for _, a := range rt.Org().Agents("") {
		all[a.ID] = definitionNames(rt.Gate().Subject(identity.ByAgent(a.ID)).Visible())
	}
	return all
}

func count(sights map[identity.AgentID][]string) int {
	n := 0
	for _, list := range sights {
		n += len(list)
	}
	return n
}

// spoilt lists a record's spoilt forms: by field, cut short, of another kind,
// and gone.
func spoilt(record []byte) map[string][]byte {
	list := map[string][]byte{
		"is gone": nil, "is cut": record[:len(record)/2], "is empty": {}, "is null": []byte(`null`), "is {}": []byte(`{}`), "is []": []byte(`[]`),
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return list
	}
	for name := range fields {
		for _, twist := range twists {
			other := maps.Clone(fields)
			if other[name] = json.RawMessage(twist); twist == "" {
				delete(other, name)
			}
			list[fmt.Sprintf("with %s as %q", name, twist)] = mustJSON(other)
		}
	}
	return list
}
