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
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

var errFault = errors.New("injected fault")

// fault fails the at-th operation of a kind. With breaks set, a commit fails
// after its preparation, like one whose write fails, and the store accepts no
// more operations until it is repaired.
type fault struct {
	operation string
	at        int
	breaks    bool
}

// faultyStore is a store with a fault.
type faultyStore struct {
	loggingStore
	fault
	runnable []identity.AgentID // result of Runnable

	mu     sync.Mutex     // guards the fields below
	counts map[string]int // number of operations by kind
	broken bool
	failed bool
}

// next counts an operation and returns the error it has to fail with, nil for
// none.
func (s *faultyStore) next(operation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[operation]++
	switch {
	case s.broken:
		return journal.ErrClosed
	case operation != s.operation || s.counts[operation] != s.at:
		return nil
	}
	s.failed = true
	return errFault
}

// repair makes a broken store usable again.
func (s *faultyStore) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = false
}

// Commit implements journal.Log.
func (s *faultyStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	err := s.next("Commit")
	switch {
	case err == nil:
		return s.loggingStore.Commit(ctx, b)
	case err != errFault || !s.breaks:
		return 0, err
	}
	s.mu.Lock()
	s.broken = true
	s.mu.Unlock()
	prepare := b.Prepare
	_, err = s.memoryStore.Commit(ctx, &journal.Batch{Prepare: func(*journal.Batch) error {
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
func (s *faultyStore) Read(ctx context.Context, id identity.AgentID, after uint64) iter.Seq2[journal.Event, error] {
	return failingSeq(s, "Read", s.memoryStore.Read(ctx, id, after))
}

// ReadRecords implements journal.RecordReader.
func (s *faultyStore) ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return failingSeq(s, "Records", s.memoryStore.ReadRecords(ctx, kind, prefix))
}

// failingSeq returns a sequence, which fails after its first element if the
// operation has to fail.
func failingSeq[T any](f *faultyStore, operation string, list iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err, n := f.next(operation), 0
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

// ReadRecord implements journal.RecordReader.
func (s *faultyStore) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	if err := s.next("Record"); err != nil {
		return nil, err
	}
	return s.memoryStore.ReadRecord(ctx, kind, key)
}

// ReadInbox implements journal.Mailbox.
func (s *faultyStore) ReadInbox(ctx context.Context, id identity.AgentID) ([]journal.Message, error) {
	if err := s.next("Inbox"); err != nil {
		return nil, err
	}
	return s.memoryStore.ReadInbox(ctx, id)
}

// DelayedMessages implements journal.Mailbox.
func (s *faultyStore) DelayedMessages(ctx context.Context) ([]journal.Message, error) {
	if err := s.next("Delayed"); err != nil {
		return nil, err
	}
	return s.memoryStore.DelayedMessages(ctx)
}

// RunnableAgents implements journal.Mailbox.
func (s *faultyStore) RunnableAgents(ctx context.Context) ([]identity.AgentID, error) {
	if err := s.next("Runnable"); err != nil {
		return nil, err
	}
	return s.runnable, nil
}

// commitRecorder is a Recorder that commits the starts and outcomes of calls of
// an agent.
type commitRecorder struct {
	store journal.Store
	agent identity.AgentID
}

// CallPending implements gate.CallRecorder.
func (commitRecorder) CallPending(context.Context, []gate.CallRequest) error { return nil }

// CallStarted implements gate.CallRecorder.
func (r commitRecorder) CallStarted(ctx context.Context, calls []*gate.Admission) error {
	_, err := r.store.Commit(ctx, &journal.Batch{Stream: r.agent, Prepare: func(*journal.Batch) error {
		if slices.ContainsFunc(calls, (*gate.Admission).Superseded) {
			return gate.ErrSuperseded
		}
		return nil
	}})
	return err
}

// CallFinished implements gate.CallRecorder.
func (r commitRecorder) CallFinished(ctx context.Context, _ []*gate.Admission) error {
	_, err := r.store.Commit(ctx, &journal.Batch{Stream: r.agent})
	return err
}

// faultRun runs a fixed scenario of an organization on a faulty store.
type faultRun struct {
	*attackEnv
	builtins    *builtinGroups
	store       *faultyStore
	effectCount int
	ids         map[string]string // ids of created roles and agents, by name
}

func newFaultRun(builtins *builtinGroups, f fault) *faultRun {
	d := &faultRun{attackEnv: emptyAttackEnv(), builtins: builtins, ids: map[string]string{}}
	d.store = &faultyStore{loggingStore: loggingStore{newMemoryStore(), &d.log}, fault: f, counts: map[string]int{}}
	return d
}

// openRuntime starts a runtime on the store, as a new process would.
func (f *faultRun) openRuntime() error {
	f.store.repair()
	f.groups = newCheckedManager()
	f.rules.groups = &f.groups.Naive
	rt, err := newRuntime(f.store, f.groups.Manager, newScriptedModel())
	if err != nil {
		return err
	}
	f.system, f.builtins.ToolHost = rt, rt.ToolHost()
	return f.registerGroups(f.builtins.groups[:1]) // org_management
}

// callTool makes a call as an agent and checks its recorded effects against the
// invariants. Errors of the call are ignored, since the fault may cause them.
func (f *faultRun) callTool(who, name string, args any) error {
	id := identity.AgentID(f.ids[who])
	p := f.rules.agents[id]
	may := f.rules.mayCall(p, name)
	out, err := f.Gate().Call(context.Background(), identity.ByAgent(id), []gate.CallRequest{newRequest(name, string(mustJSON(args)))}, commitRecorder{f.store, id})
	done := f.effects.drain()
	f.effectCount += len(done)
	if len(done) > 0 && !may {
		return newViolation(violationEffect, "%s called %s, which it may not call", who, name)
	}
	if len(done) > 0 && err == nil && !out[0].Allowed() {
		return newViolation(violationEffect, "%s called %s, which was rejected but ran", who, name)
	}
	if p != nil {
		if err := f.rules.checkCommits(p, name, f.dropTaskRecords(f.log.drain())); err != nil {
			return err
		}
	}
	if err == nil && len(out) == 1 {
		var made struct{ ID string }
		_ = json.Unmarshal(out[0].Result.Structured, &made)
		if key, ok := args.(map[string]any)["name"]; ok {
			f.ids[fmt.Sprint(key)] = made.ID
		} else if made.ID != "" {
			f.ids["agent of "+fmt.Sprint(args.(map[string]any)["roleId"])] = made.ID
		}
	}
	return nil
}

// dropTaskRecords applies records of tasks, which a fault may end at any time,
// and returns the other changes.
func (f *faultRun) dropTaskRecords(made []change) []change {
	for i := range made {
		made[i].put = slices.DeleteFunc(made[i].put, func(r journal.Record) bool {
			task := r.Kind == string(org.KindTask)
			if task {
				f.rules.apply(r)
			}
			return task
		})
	}
	return slices.DeleteFunc(made, func(c change) bool { return len(c.put)+len(c.post) == 0 })
}

// createAgent creates, as the agent by, a role and an agent of it, which later
// calls refer to by name.
func (f *faultRun) createAgent(by, name string, use, grant ids) error {
	if err := f.callTool(by, "create_role", createRoleArgs("role of "+name, &use, &grant)); err != nil {
		return err
	}
	role := f.ids["role of "+name]
	err := f.callTool(by, "spawn_agent", map[string]any{"roleId": role, "taskBrief": taskBrief})
	f.ids[name] = f.ids["agent of "+role]
	return err
}

// byOperator makes a change by the operator, which may fail.
func (f *faultRun) byOperator(change func() error) {
	_ = change()
	f.applyCommits()
}

// run is the scenario: agents are created, call tools, lose permissions and get
// them back. A second process continues, and more permissions are revoked.
func (f *faultRun) run() error {
	if err := f.openRuntime(); err != nil {
		return nil // without a runtime nothing can run
	}
	err := f.firstProcess()
	f.Close()
	f.store.runnable = []identity.AgentID{identity.AgentID(f.ids["root"])}
	if f.openRuntime() != nil {
		return err
	}
	_ = f.system.(*runtime.Runtime).ResumeTask(context.Background(), identity.TaskID(f.ids["task"]))
	err = errors.Join(err, f.secondProcess())
	f.Close()
	return err
}

// firstProcess is the part before the restart.
func (f *faultRun) firstProcess() error {
	f.byOperator(f.startTask)
	return errors.Join(
		f.createAgent("root", "manager", ids{"beta", toolgroups.OrgManagement}, ids{"alpha", toolgroups.OrgManagement}),
		f.createAgent("manager", "worker", ids{"alpha"}, ids{}),
		f.callAllTools(),
		f.updateRole("manager", nil, ids{}),
		f.callAllTools(),
		f.updateRole("manager", nil, ids{"alpha", "beta", "gamma"}),
		f.callAllTools(),
	)
}

// secondProcess is the part after the restart.
func (f *faultRun) secondProcess() error {
	return errors.Join(
		f.callAllTools(),
		f.updateRole("worker", ids{"gamma", "beta"}, nil),
		f.callAllTools(),
		f.callTool("manager", "terminate_agent", map[string]any{"agentId": f.ids["worker"]}),
		f.callAllTools(),
		f.deleteRole("manager"),
		f.callAllTools(),
	)
}

func (f *faultRun) startTask() error {
	groups := toolgroups.SetOf("alpha", "beta", toolgroups.OrgManagement)
	id, err := f.StartTask(context.Background(), org.TaskSpec{Text: "go", Caller: operator, Groups: &groups})
	if task, ok := f.system.(*runtime.Runtime).Org().TaskByID(id); ok {
		f.ids["root"], f.ids["task"] = string(task.Top), string(id)
	}
	return err
}

// callAllTools calls every tool as every agent.
func (f *faultRun) callAllTools() (err error) {
	for _, who := range []string{"manager", "worker", "root"} {
		for _, name := range []string{"t0", "t3", "t4"} {
			err = errors.Join(err, f.callTool(who, name, map[string]any{}))
		}
	}
	return err
}

// updateRole changes the sets of an agent's role as the operator; a nil set is
// kept.
func (f *faultRun) updateRole(who string, use, grant ids) error {
	var spec org.RoleSpec
	if use != nil {
		set := toolgroups.SetOf(use...)
		spec.Use = &set
	}
	if grant != nil {
		set := toolgroups.SetOf(grant...)
		spec.Grant = &set
	}
	f.byOperator(func() error {
		_, _, err := f.UpdateRole(operator, f.roleID(who), spec, false)
		return err
	})
	return nil
}

func (f *faultRun) deleteRole(who string) error {
	f.byOperator(func() error {
		_, err := f.DeleteRole(operator, f.roleID(who), false)
		return err
	})
	return nil
}

func (f *faultRun) roleID(who string) identity.RoleID { return identity.RoleID(f.ids["role of "+who]) }

// A fault may remove permissions but never add one. Every n-th operation of the
// store fails: once without an effect and, for commits, once so that the store
// is broken afterwards. Every tool that runs, in this and in the next process,
// must be allowed by the records.
func TestStoreFault_NeverAllowsCall(t *testing.T) {
	builtins := newBuiltinGroups(t)
	intact, always := intactRuns(t, builtins)
	failed, effects := map[string]int{}, 0
	for _, f := range intact.store.allFaults() {
		for range 10 { // the number of operations depends on scheduling
			d := newFaultRun(builtins, f)
			if err := d.run(); err != nil {
				t.Errorf("%+v: %v", f, err)
			}
			if effects += d.effectCount; d.store.failed {
				failed[f.operation]++
				break
			}
		}
	}
	t.Logf("%d calls ran without a fault, %d with one of %v", intact.effectCount, effects, failed)
	for operation := range always {
		if failed[operation] == 0 {
			t.Errorf("%s never failed", operation)
		}
	}
	if len(failed) < 6 {
		t.Errorf("only %v failed", failed)
	}
}

// intactRuns plays the story some times without a fault. It returns the first run,
// and the operations that every run makes: whether an agent's journal is read again,
// for example, depends on scheduling.
func intactRuns(t *testing.T, builtins *builtinGroups) (first *faultRun, always map[string]int) {
	t.Helper()
	for n := range 5 {
		run := newFaultRun(builtins, fault{})
		if err := run.run(); err != nil {
			t.Fatal(err)
		}
		if run.effectCount < 6 {
			t.Fatalf("only %d calls ran without a fault; the test proves nothing", run.effectCount)
		}
		if n == 0 {
			first, always = run, maps.Clone(run.store.counts)
		}
		maps.DeleteFunc(always, func(operation string, _ int) bool { return run.store.counts[operation] == 0 })
	}
	return first, always
}

// allFaults lists one fault for each operation that was counted, two for
// commits.
func (s *faultyStore) allFaults() (list []fault) {
	for operation, n := range s.counts {
		for at := 1; at <= n; at++ {
			if list = append(list, fault{operation, at, false}); operation == "Commit" {
				list = append(list, fault{operation, at, true})
			}
		}
	}
	return list
}

// corruptions are values that replace a field of a record; "" deletes the
// field.
var corruptions = []string{"", `null`, `0`, `""`, `"x"`, `[]`, `["x"]`, `{}`, `{"x":"y"}`, `true`, `false`}

// The same for records: a field of any record may be lost or corrupted, or the
// record may be missing or invalid JSON. Then no agent may call a tool that it
// could not call before.
func TestCorruptRecord_NeverAddsPermission(t *testing.T) {
	store := newMemoryStore()
	storeSampleRecords(t, store)
	before := visibleTools(t, store, nil)
	list, less := short.SampleList(t, 300, corruptedRecords(t, store)), 0
	for _, r := range list {
		after := visibleTools(t, store, &r.Record)
		for agent, tools := range after {
			if more := without(tools, before[agent]); len(more) > 0 {
				t.Errorf("%s %s %s: agent %s may now call %v", r.Kind, r.Key, r.form, agent, more)
			}
		}
		if countTools(after) < countTools(before) {
			less++
		}
	}
	t.Logf("%d corrupted records, %d of them removed permissions", len(list), less)
	if less < len(list)/10 {
		t.Errorf("only %d of %d corrupted records removed permissions; the test proves nothing", less, len(list))
	}
}

// storeSampleRecords fills a store with roles, tasks and agents whose
// permissions are all limited.
func storeSampleRecords(t *testing.T, store *memoryStore) {
	t.Helper()
	rt := newRuntimeOn(t, store)
	defer rt.Close()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	all, some, alpha, none := toolgroups.AllGroups(), toolgroups.SetOf("alpha", "beta", "kit"), toolgroups.SetOf("alpha"), toolgroups.SetOf()
	caller, err := rt.CreateRole(ctx, newCall(operator), org.RoleSpec{Name: "caller", Use: &all, Grant: &none})
	must(err)
	gone, err := rt.CreateRole(ctx, newCall(operator), org.RoleSpec{Name: "gone", Use: &alpha, Grant: &alpha})
	must(err)
	for _, spec := range []org.TaskSpec{{Caller: operator, Groups: &some}, {Caller: identity.ByCaller("ann", caller.ID)}} {
		id, err := rt.StartTask(ctx, spec)
		must(err)
		task, _ := rt.Org().TaskByID(id)
		by := task.Top
		for _, grant := range []toolgroups.GroupSet{some, alpha, none} {
			role, err := rt.CreateRole(ctx, newCall(identity.ByAgent(by)), org.RoleSpec{Name: fmt.Sprint("role ", by, grant), Use: &some, Grant: &grant})
			if err != nil { // the last one may grant only alpha
				role, err = rt.CreateRole(ctx, newCall(identity.ByAgent(by)), org.RoleSpec{Name: fmt.Sprint("role ", by), Use: &alpha, Grant: &none})
			}
			must(err)
			spawned, err := rt.SpawnAgent(ctx, newCall(identity.ByAgent(by)), org.SpawnSpec{Role: role.ID, Brief: taskBrief}, nil)
			must(err)
			by = spawned.ID
		}
	}
	_, _, err = rt.UpdateRole(operator, caller.ID, org.RoleSpec{Use: &alpha}, false)
	must(err)
	_, err = rt.DeleteRole(operator, gone.ID, false)
	must(err)
}

// newRuntimeOn starts a runtime on a store, as a new process would.
func newRuntimeOn(t *testing.T, store journal.Store) *runtime.Runtime {
	t.Helper()
	d := newCheckedManager()
	for _, g := range slices.Concat(builtinSpecs, targetGroups) {
		if _, err := grouptest.RegisterGroup(d.Manager, g.Owner, g.Group(nil)); err != nil {
			t.Fatal(err)
		}
	}
	rt, err := newRuntime(store, d.Manager, newScriptedModel())
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// allRecords returns the records of the organization.
func allRecords(t *testing.T, store *memoryStore) []journal.Record {
	t.Helper()
	var list []journal.Record
	for _, kind := range []org.RecordKind{org.KindRole, org.KindAgent, org.KindTask, org.KindMeta} {
		for r, err := range store.ReadRecords(t.Context(), string(kind), "") {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

// visibleTools returns what every agent may call when one record is replaced by
// other; without a value that record is deleted.
func visibleTools(t *testing.T, store *memoryStore, other *journal.Record) map[identity.AgentID][]string {
	t.Helper()
	put, corrupted := allRecords(t, store), newMemoryStore()
	if other != nil {
		put = append(put, *other)
	}
	if _, err := corrupted.Commit(t.Context(), &journal.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	rt := newRuntimeOn(t, corrupted)
	defer rt.Close()
	all := map[identity.AgentID][]string{"nobody": nil}
	for _, a := range rt.Org().ListAgents("") {
		all[a.ID] = definitionNames(rt.Gate().Subject(identity.ByAgent(a.ID)).VisibleTools())
	}
	return all
}

// countTools returns the total number of visible tools.
func countTools(sights map[identity.AgentID][]string) int {
	n := 0
	for _, list := range sights {
		n += len(list)
	}
	return n
}

// corruptedRecord is a record in one of its corruptedForms.
type corruptedRecord struct {
	journal.Record
	form string
}

// corruptedRecords returns all corrupted forms of all records of a store, in a fixed order.
func corruptedRecords(t *testing.T, store *memoryStore) []corruptedRecord {
	t.Helper()
	var list []corruptedRecord
	for _, r := range allRecords(t, store) {
		forms := corruptedForms(r.Value)
		for _, form := range slices.Sorted(maps.Keys(forms)) {
			list = append(list, corruptedRecord{journal.Record{Kind: r.Kind, Key: r.Key, Value: forms[form]}, form})
		}
	}
	return list
}

// corruptedForms returns corrupted forms of a record: with changed fields,
// truncated, of another type, and missing.
func corruptedForms(record []byte) map[string][]byte {
	list := map[string][]byte{
		"is gone": nil, "is cut": record[:len(record)/2], "is empty": {}, "is null": []byte(`null`), "is {}": []byte(`{}`), "is []": []byte(`[]`),
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return list
	}
	for name := range fields {
		for _, value := range corruptions {
			other := maps.Clone(fields)
			if other[name] = json.RawMessage(value); value == "" {
				delete(other, name)
			}
			list[fmt.Sprintf("with %s as %q", name, value)] = mustJSON(other)
		}
	}
	return list
}
