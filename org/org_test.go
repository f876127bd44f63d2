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
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	_, _ = groups.Register(toolgroups.Builtin, toolgroups.Group{ID: toolgroups.Workspace, Tools: stubs("read_file", "write_file")})
	o, _ := org.Load(org.Config{Groups: groups, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)

	use := toolgroups.Of(toolgroups.Workspace)
	role, _, _ := o.CreateRole(identity.ByOperator("me"), "r1", org.RoleSpec{Name: "scribe", Prompt: "Write.", Use: &use})
	_, root, _, _ := o.StartTask("t1", org.TaskSpec{Text: "a letter", Caller: identity.ByOperator("me")})
	agent, _, _ := o.Spawn(root.ID, "a1", org.Spawn{Role: role.ID, Brief: org.TaskBrief{
		Objective: "a letter", Constraints: org.Lines{}, Inputs: "none", Outputs: "letter.txt", CompletionCriteria: "it is there",
	}})
	slot, state := o.Resolve(identity.ByAgent(agent.ID))
	fmt.Println(slot.View().Names(), slot.View().ForState(state).Has(handle(groups, "read_file")))

	none := toolgroups.Of()
	_, diff, _, _ := o.UpdateRole(identity.ByOperator("me"), role.ID, org.RoleSpec{Use: &none}, false)
	fmt.Println(diff[0].Role, "loses", diff[0].Loses)
	fmt.Println(slot.View().Names())
	// Output:
	// [read_file write_file] true
	// scribe loses [read_file write_file]
	// []
}

func handle(m *toolgroups.Manager, name string) *toolgroups.Handle {
	h, _ := m.Snapshot().Lookup(name)
	return h
}

func noop(context.Context, struct{}) (string, error) { return "", nil }

// stubs makes tools that nobody calls.
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

// memory is a Source that keeps what a store would.
type memory struct {
	records map[string]json.RawMessage // by kind, space, key
	damaged []string                   // keys that come with an error
}

func (m *memory) Records(kind string) iter.Seq2[org.Record, error] {
	return func(yield func(org.Record, error) bool) {
		for _, at := range slices.Sorted(maps.Keys(m.records)) {
			key, ok := strings.CutPrefix(at, kind+" ")
			if !ok {
				continue
			}
			var err error
			if slices.Contains(m.damaged, key) {
				err = errors.New("damaged")
			}
			if !yield(org.Record{Key: key, Value: m.records[at]}, err) {
				return
			}
		}
	}
}

func (m *memory) put(changes []org.Change) {
	for _, c := range changes {
		m.records[string(c.Kind)+" "+c.Key] = c.Value
		if c.Value == nil {
			delete(m.records, string(c.Kind)+" "+c.Key)
		}
	}
}

func (m *memory) set(kind, key, value string) { m.records[kind+" "+key] = json.RawMessage(value) }

// house is an organization with groups, a store and a clock that ticks.
type house struct {
	*org.Org
	t      testing.TB
	groups *toolgroups.Manager
	store  *memory
	log    *bytes.Buffer
	now    time.Time
	n      int // ids handed out
}

var operator = identity.ByOperator("op")

func open(t testing.TB) *house {
	h := &house{t: t, groups: toolgroups.NewManager(toolgroups.Reserved()...), store: &memory{records: map[string]json.RawMessage{}}, log: new(bytes.Buffer)}
	h.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h.register(toolgroups.Builtin, toolgroups.OrgManagement, "create_role", "spawn_agent")
	h.register(toolgroups.Builtin, toolgroups.Workspace, "read_file", "write_file")
	h.register(toolgroups.Builtin, toolgroups.Command, "run_command")
	h.register(toolgroups.Builtin, toolgroups.Artifact, "put_artifact")
	h.register("mcp:docs", "docs", "search")
	h.reopen()
	return h
}

// reopen loads the organization from its store.
func (h *house) reopen() {
	h.t.Helper()
	o, err := org.Load(org.Config{
		Groups: h.groups, Log: slog.New(slog.NewTextHandler(h.log, nil)),
		Now: func() time.Time { h.now = h.now.Add(time.Second); return h.now },
	}, h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Org = o
}

func (h *house) register(owner toolgroups.Owner, id toolgroups.GroupID, tools ...string) {
	h.t.Helper()
	if _, err := h.groups.Register(owner, toolgroups.Group{ID: id, Tools: stubs(tools...)}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) id(prefix string) string {
	h.n++
	return fmt.Sprintf("%s%d", prefix, h.n)
}

// task starts a task and gives its top agent.
func (h *house) task(spec org.TaskSpec) identity.AgentID {
	h.t.Helper()
	if spec.Caller.Kind == identity.None {
		spec.Caller = operator
	}
	_, agent, changes, err := h.StartTask(identity.TaskID(h.id("task")), spec)
	if err != nil {
		h.t.Fatal(err)
	}
	h.store.put(changes)
	return agent.ID
}

func (h *house) create(by identity.Principal, spec org.RoleSpec) (org.Role, error) {
	if spec.Name == "" {
		spec.Name = h.id("role ")
	}
	role, changes, err := h.CreateRole(by, identity.RoleID(h.id("r")), spec)
	h.store.put(changes)
	return role, err
}

func (h *house) role(by identity.Principal, spec org.RoleSpec) org.Role {
	h.t.Helper()
	role, err := h.create(by, spec)
	if err != nil {
		h.t.Fatal(err)
	}
	return role
}

func (h *house) update(id identity.RoleID, spec org.RoleSpec) org.Diff {
	h.t.Helper()
	_, diff, changes, err := h.UpdateRole(operator, id, spec, false)
	if err != nil {
		h.t.Fatal(err)
	}
	h.store.put(changes)
	return diff
}

func (h *house) trySpawn(parent identity.AgentID, role identity.RoleID, collaborators ...identity.AgentID) (identity.AgentID, error) {
	s := org.Spawn{Role: role, Brief: brief()}
	for _, c := range collaborators {
		s.Brief.Collaborators = append(s.Brief.Collaborators, org.Collaborator{Agent: c})
	}
	agent, changes, err := h.Spawn(parent, identity.AgentID(h.id("a")), s)
	h.store.put(changes)
	return agent.ID, err
}

func (h *house) spawn(parent identity.AgentID, role identity.RoleID, collaborators ...identity.AgentID) identity.AgentID {
	h.t.Helper()
	id, err := h.trySpawn(parent, role, collaborators...)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// may lists, sorted, what an agent sees.
func (h *house) may(id identity.AgentID) []string {
	slot, state := h.Resolve(identity.ByAgent(id))
	names := []string{}
	for _, d := range slot.View().ForState(state).Definitions() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	return names
}

func (h *house) wantMay(id identity.AgentID, want ...string) {
	h.t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(h.may(id), want); diff != "" {
		h.t.Errorf("what %s may call, got before want:\n%s", id, diff)
	}
}

// store gives an agent's record, as the runtime does for Terminate.
func (h *house) stored(id identity.AgentID) (org.Agent, bool) {
	var a org.Agent
	record, ok := h.store.records["agent "+string(id)]
	if !ok {
		record = h.store.records["ended "+string(id)]
	}
	err := json.Unmarshal(record, &a)
	return a, err == nil
}

func brief() org.TaskBrief {
	return org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}
}

func of(ids ...toolgroups.GroupID) *toolgroups.Set {
	s := toolgroups.Of(ids...)
	return &s
}

func wantCode(t testing.TB, err error, code errcode.Code, texts ...string) {
	t.Helper()
	if got := errcode.Of(err); got != code {
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

func wantSet(t testing.TB, got toolgroups.Set, want string) {
	t.Helper()
	if got.String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// every are all tools of an organization.
var every = []string{"create_role", "put_artifact", "read_file", "run_command", "search", "spawn_agent", "write_file"}
