package org_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	_, _ = grouptest.RegisterGroup(groups, toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: stubs("read_file", "write_file")})
	o, _ := org.LoadOrg(org.Config{Groups: groups, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)

	use := toolgroups.SetOf(toolgroups.Workspace)
	role, _, _ := o.CreateRole(identity.ByOperator("me"), "r1", org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: &use})
	task, _ := org.PrepareTask(org.TaskSpec{Text: "a letter", Caller: identity.ByOperator("me")})
	_, root, _, _ := o.StartTask("t1", 0, task)
	agent, _, _ := o.SpawnAgent(root.ID, "a1", org.SpawnSpec{Role: role.ID, Brief: org.TaskBrief{
		Objective: "a letter", Constraints: org.TextLines{}, Inputs: "none", Outputs: "letter.txt", CompletionCriteria: "it is there",
	}})
	ref, state := o.ResolveView(identity.ByAgent(agent.ID))
	fmt.Println(ref.CurrentView().ToolNames(), ref.CurrentView().ForState(state).HasTool(handle(groups, "read_file")))

	none := toolgroups.SetOf()
	_, diff, _, _ := o.UpdateRole(identity.ByOperator("me"), role.ID, org.RoleSpec{Use: &none}, false)
	fmt.Println(diff.Agents[0].Role, "loses", diff.Agents[0].Loses)
	fmt.Println(ref.CurrentView().ToolNames())
	// Output:
	// [read_file write_file] true
	// scribe loses [read_file write_file]
	// []
}

func handle(m *toolgroups.Manager, name string) *toolgroups.ToolHandle {
	h, _ := m.CurrentSnapshot().LookupTool(name)
	return h
}

func noop(context.Context, struct{}) (string, error) { return "", nil }

// stubs returns tools that are never called.
func stubs(names ...string) []tool.Tool {
	var list []tool.Tool
	for _, name := range names {
		t, err := tool.New(name, "", noop, nil)
		if err != nil {
			panic(err)
		}
		list = append(list, t)
	}
	return list
}

// memoryStore is an org.RecordSource in memory.
type memoryStore struct {
	records map[string]json.RawMessage // by "kind key"
	damaged []string                   // keys of records that Records yields with an error
}

func (m *memoryStore) Records(kind string) iter.Seq2[org.StoredRecord, error] {
	return func(yield func(org.StoredRecord, error) bool) {
		for _, at := range slices.Sorted(maps.Keys(m.records)) {
			key, ok := strings.CutPrefix(at, kind+" ")
			if !ok {
				continue
			}
			var err error
			if slices.Contains(m.damaged, key) {
				err = errors.New("damaged")
			}
			if !yield(org.StoredRecord{Key: key, Value: m.records[at]}, err) {
				return
			}
		}
	}
}

func (m *memoryStore) put(changes []org.RecordChange) {
	for _, c := range changes {
		m.records[string(c.Kind)+" "+c.Key] = c.Value
		if c.Value == nil {
			delete(m.records, string(c.Kind)+" "+c.Key)
		}
	}
}

func (m *memoryStore) set(kind, key, value string) { m.records[kind+" "+key] = json.RawMessage(value) }

// fixture is an organization with groups, a store, and a clock that advances by a second
// with each reading.
type fixture struct {
	*org.Org
	t      testing.TB
	groups *toolgroups.Manager
	store  *memoryStore
	log    *bytes.Buffer
	now    time.Time
	n      int // ids handed out
}

var operator = identity.ByOperator("op")

func newFixture(t testing.TB) *fixture {
	f := &fixture{t: t, groups: toolgroups.NewManager(toolgroups.ReservedIDs()...), store: &memoryStore{records: map[string]json.RawMessage{}}, log: new(bytes.Buffer)}
	f.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.register(toolgroups.Builtin, toolgroups.OrgManagement, "create_role", "spawn_agent")
	f.register(toolgroups.Builtin, toolgroups.Workspace, "read_file", "write_file")
	f.register(toolgroups.Builtin, toolgroups.Command, "run_command")
	f.register(toolgroups.Builtin, toolgroups.Artifact, "put_artifact")
	f.register("mcp:docs", "docs", "search")
	f.reopen()
	return f
}

// reopen loads the organization from its store.
func (f *fixture) reopen() {
	f.t.Helper()
	o, err := org.LoadOrg(org.Config{
		Groups: f.groups, Log: slog.New(slog.NewTextHandler(f.log, nil)),
		Now: func() time.Time { f.now = f.now.Add(time.Second); return f.now },
	}, f.store)
	if err != nil {
		f.t.Fatal(err)
	}
	f.Org = o
}

func (f *fixture) register(owner toolgroups.GroupOwner, id toolgroups.GroupID, tools ...string) {
	f.t.Helper()
	if _, err := grouptest.RegisterGroup(f.groups, owner, toolgroups.Group{ID: id, Tools: stubs(tools...)}); err != nil {
		f.t.Fatal(err)
	}
}

// configure applies a configuration of roles.
func (f *fixture) configure(c org.RoleConfig) []org.RoleEdit {
	f.t.Helper()
	var edits []org.RoleEdit
	err := f.groups.UpdateWith(func(change toolgroups.Change) (err error) {
		edits, err = f.ApplyRoles(c, change)
		return err
	}, func(*toolgroups.Tx) error { return nil })
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range edits {
		f.store.put(e.Records)
	}
	return edits
}

func (f *fixture) id(prefix string) string {
	f.n++
	return fmt.Sprintf("%s%d", prefix, f.n)
}

// firstSeq is the sequence number before the tasks of a fixture.
const firstSeq = 7

// StartTask prepares and starts a task.
func (f *fixture) StartTask(id identity.TaskID, spec org.TaskSpec) (org.Task, org.Agent, []org.RecordChange, error) {
	prepared, err := org.PrepareTask(spec)
	if err != nil {
		return org.Task{}, org.Agent{}, nil, err
	}
	return f.Org.StartTask(id, firstSeq, prepared)
}

// task starts a task and returns its top agent.
func (f *fixture) task(spec org.TaskSpec) identity.AgentID {
	f.t.Helper()
	if spec.Caller.Kind == identity.None {
		spec.Caller = operator
	}
	_, agent, changes, err := f.StartTask(identity.TaskID(f.id("task")), spec)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
	return agent.ID
}

func (f *fixture) create(by identity.Principal, spec org.RoleSpec) (org.Role, error) {
	if spec.Name == "" {
		spec.Name = f.id("role ")
	}
	role, changes, err := f.CreateRole(by, identity.RoleID(f.id("r")), spec)
	f.store.put(changes)
	return role, err
}

func (f *fixture) role(by identity.Principal, spec org.RoleSpec) org.Role {
	f.t.Helper()
	role, err := f.create(by, spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return role
}

func (f *fixture) update(id identity.RoleID, spec org.RoleSpec) org.PermissionDiff {
	f.t.Helper()
	_, diff, changes, err := f.UpdateRole(operator, id, spec, false)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
	return diff
}

func (f *fixture) trySpawn(parent identity.AgentID, role identity.RoleID, collaborators ...identity.AgentID) (identity.AgentID, error) {
	s := org.SpawnSpec{Role: role, Brief: brief()}
	for _, c := range collaborators {
		s.Brief.Collaborators = append(s.Brief.Collaborators, org.Collaborator{Agent: c})
	}
	agent, changes, err := f.SpawnAgent(parent, identity.AgentID(f.id("a")), s)
	f.store.put(changes)
	return agent.ID, err
}

func (f *fixture) spawn(parent identity.AgentID, role identity.RoleID, collaborators ...identity.AgentID) identity.AgentID {
	f.t.Helper()
	id, err := f.trySpawn(parent, role, collaborators...)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// tools returns the tools that an agent may call, sorted.
func (f *fixture) tools(id identity.AgentID) []string {
	ref, state := f.ResolveView(identity.ByAgent(id))
	names := []string{}
	for _, d := range ref.CurrentView().ForState(state).ToolDefinitions() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

func (f *fixture) wantTools(id identity.AgentID, want ...string) {
	f.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(f.tools(id), want); diff != "" {
		f.t.Errorf("tools of %s, got before want:\n%s", id, diff)
	}
}

// stored returns the record of an agent, as the runtime does for Terminate.
func (f *fixture) stored(id identity.AgentID) (org.Agent, bool) {
	var a org.Agent
	record, ok := f.store.records["agent "+string(id)]
	if !ok {
		record = f.store.records["ended "+string(id)]
	}
	err := json.Unmarshal(record, &a)
	return a, err == nil
}

func brief() org.TaskBrief {
	return org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}
}

func of(ids ...toolgroups.GroupID) *toolgroups.GroupSet {
	s := toolgroups.SetOf(ids...)
	return &s
}

func wantCode(t testing.TB, err error, code errcode.Code, texts ...string) {
	t.Helper()
	if got := errcode.CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
	if err == nil {
		return
	}
	for _, text := range texts {
		if !strings.Contains(errcode.Message(err), text) {
			t.Errorf("got %q, want a message with %q", errcode.Message(err), text)
		}
	}
}

func wantSet(t testing.TB, got toolgroups.GroupSet, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// allTools are the tools of a fixture.
var allTools = []string{"create_role", "put_artifact", "read_file", "run_command", "search", "spawn_agent", "write_file"}
