package org_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// heapSize returns the bytes of live objects on the heap.
func heapSize() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// toolIn returns a tool that is visible in the given states.
func toolIn(name string, states ...string) ([]tool.Tool, error) {
	t, err := tool.New(name, "", noop, &tool.Options{States: states})
	return []tool.Tool{t}, err
}

// Damaged and malformed records are ignored and logged. What depends on them is denied.
func TestLoad_IgnoresCorruptRecords(t *testing.T) {
	const role = `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`
	tests := []struct {
		name, kind, key, value string
		logged                 bool
	}{
		{"role with malformed JSON", "role", "r", `{"id":"r"`, true},
		{"role is null", "role", "r", `null`, false},
		{"role under another key", "role", "r", strings.Replace(role, `"id":"r"`, `"id":"x"`, 1), true},
		{"role whose groups are not a list", "role", "r", strings.Replace(role, `["*"]`, `"*"`, 1), false},
		{"role with unknown status", "role", "r", strings.Replace(role, "active", "paused", 1), false},
		{"role without status", "role", "r", strings.Replace(role, `"status":"active",`, "", 1), false},
		{"role with unknown creator", "role", "r", strings.Replace(role, "operator", "nowhere", 1), false},
		{"role without creator", "role", "r", strings.Replace(role, `"createdByRole":"operator",`, "", 1), false},
		{"role that created itself", "role", "r", strings.Replace(role, "operator", "r", 1), false},
		{"damaged role", "role", "r", "damaged", true},
		{"agent with malformed JSON", "agent", "a", `[`, true},
		{"agent under another key", "agent", "a", `{"id":"b","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`, true},
		{"agent without status", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK"}`, false},
		{"agent with unknown status", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"deleted"}`, false},
		{"agent with missing parent", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"gone","taskId":"TASK","status":"active"}`, false},
		{"agent without parent that is not the top agent", "agent", "a", `{"id":"a","roleId":"r","taskId":"TASK","status":"active"}`, false},
		{"agent that claims to be root", "agent", "a", `{"id":"a","roleId":"root","taskId":"TASK","status":"active","root":true}`, false},
		{"agent that is its own parent", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"a","taskId":"TASK","status":"active"}`, false},
		{"task with malformed JSON", "task", "TASK", `1`, true},
		{"task under another key", "task", "TASK", `{"id":"x"}`, true},
		{"damaged task", "task", "TASK", "damaged", true},
		{"task without the role of its caller", "task", "TASK", `{"id":"TASK","agent":"TOP","caller":"user:ann@weak","status":"running","ceiling":{"Set":["*"]},"groups":{"Set":["*"]}}`, false},
		{"task without ceiling", "task", "TASK", `{"id":"TASK","agent":"TOP","status":"running"}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			top := f.task(org.TaskSpec{})
			fill := strings.NewReplacer("TOP", string(top), "TASK", string(f.agent(top).Task)).Replace
			f.store.set("role", "r", role)
			f.store.set("agent", "a", fill(`{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`))
			f.reopen()
			f.wantTools("a", allTools...)

			key := fill(tt.key)
			if tt.value == "damaged" {
				f.store.damaged = append(f.store.damaged, key)
			} else {
				f.store.set(tt.kind, key, fill(tt.value))
			}
			f.log.Reset()
			f.reopen()
			f.wantTools("a")
			if got := f.log.String(); tt.logged && !(strings.Contains(got, "record ignored") && strings.Contains(got, "key="+key)) {
				t.Errorf("got log %q, want the record's key", got)
			}
		})
	}
}

// Agents that are parents of each other are denied, and LoadOrg ends.
func TestLoad_BreaksParentCycle(t *testing.T) {
	f := newFixture(t)
	f.store.set("role", "r", `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
	for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
		f.store.set("agent", pair[0], `{"id":"`+pair[0]+`","parentAgentId":"`+pair[1]+`","roleId":"r","taskId":"t","status":"active"}`)
	}
	f.reopen()
	for _, id := range []identity.AgentID{"a", "b", "c"} {
		f.wantTools(id)
	}
}

// However deep the tree of agents is, LoadOrg and TerminateAgent take time in proportion to their
// number. In quadratic time the whole test, which make check runs, would take minutes.
func TestLoad_DeepAgentTree(t *testing.T) {
	depth := short.Count(20_000, 100_000)
	f := newFixture(t)
	parent := f.task(org.TaskSpec{})
	task := f.agent(parent).Task
	roles := []identity.RoleID{f.role(operator, org.RoleSpec{Use: of("docs"), Grant: of("docs", "artifact")}).ID, f.role(operator, org.RoleSpec{Use: of("artifact", "docs"), Grant: of("docs")}).ID}
	for i := range depth {
		id := identity.AgentID(fmt.Sprintf("deep%d", (i*7919)%depth)) // in the store a parent may come after its children
		f.store.set("agent", string(id), fmt.Sprintf(`{"id":%q,"roleId":%q,"parentAgentId":%q,"taskId":%q,"status":"active"}`, id, roles[i/2%2], parent, task))
		parent = id
	}
	f.reopen()
	f.wantTools(parent, "search")
	f.wantTools(f.spawn(parent, f.role(operator, org.RoleSpec{Use: of("docs")}).ID), "search")
	if top, ok := f.TopAncestor(parent); !ok || top != "deep0" {
		t.Errorf("got %q", top)
	}
	f.update(roles[0], org.RoleSpec{Grant: of()})
	f.wantTools(parent)
	ended, changes, err := f.TerminateAgent(operator, "deep0", "c", "", f.stored)
	if err != nil || len(ended) != depth+1 || len(changes) != 2*(depth+1)+1 || ended[depth].Agent != "deep0" {
		t.Errorf("got %d terminations, %v", len(ended), err)
	}
}

func TestOrg_EpochPersists(t *testing.T) {
	f := newFixture(t)
	f.role(operator, org.RoleSpec{})
	before := f.CurrentEpoch()
	f.store.put(f.AdvanceEpoch())
	if f.CurrentEpoch() != before+1 {
		t.Errorf("got %d after %d", f.CurrentEpoch(), before)
	}
	f.reopen()
	if f.CurrentEpoch() != before+1 {
		t.Errorf("got %d from the store, want %d", f.CurrentEpoch(), before+1)
	}
	f.store.set("meta", "epoch", `"x"`)
	f.store.set("meta", "other", `7`)
	f.reopen()
	if f.CurrentEpoch() != 0 {
		t.Errorf("got %d from a lost epoch, want 0", f.CurrentEpoch())
	}
}

func TestOrg_Tasks(t *testing.T) {
	f := newFixture(t)
	top := f.task(org.TaskSpec{Text: "secret text", State: "s", Assigned: org.AssignedDir{Path: "/w"}, ReadOnly: true, Config: "hash"})
	second := f.task(org.TaskSpec{})
	id := f.agent(top).Task
	task, ok := f.TaskByID(id)
	if !ok || task.Text != "" || task.State != "s" || task.Top != top || task.Status != org.Running || task.FirstSeq != firstSeq || !task.ReadOnly || task.Workspace != "/w" || task.Config != "hash" {
		t.Errorf("got %+v", task)
	}
	if _, ok := f.TaskByID("nowhere"); ok {
		t.Error("an unknown task is found")
	}
	var stored org.Task
	if err := json.Unmarshal(f.store.records["task "+string(id)], &stored); err != nil || stored.Text != "secret text" {
		t.Fatalf("got %+v, %v", stored, err)
	}
	failure := &org.TaskError{Code: errcode.TaskStalled, Message: "stalled"}
	changes := f.EndTask(&stored, org.TaskEnd{Status: org.Failed, Result: json.RawMessage(`"r"`), Error: failure}, 0)
	if len(changes) != 1 {
		t.Fatalf("got %d changes", len(changes))
	}
	f.store.put(changes)
	if again := f.EndTask(&stored, org.TaskEnd{Status: org.Done}, 0); again != nil {
		t.Error("a task ended twice")
	}
	if f.EndTask(&org.Task{ID: "nowhere"}, org.TaskEnd{Status: org.Done}, 0) != nil {
		t.Error("an unknown task ended")
	}
	f.reopen()
	list := f.ListTasks()
	if len(list) != 2 || list[0].ID != id || list[1].Top != second {
		t.Fatalf("got %+v", list)
	}
	if diff := cmp.Diff(list[0].Error, failure); diff != "" || list[0].Status != org.Failed || list[0].Result != nil || list[0].EndedAt.IsZero() {
		t.Errorf("got %+v", list[0])
	}
}

// Readers see the state before or after a change of roles and groups. The race detector
// checks the rest.
func TestOrg_ConcurrentReads(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Use: of("docs")})
	agent := f.spawn(root, role.ID)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ref, _ := f.ResolveView(identity.ByAgent(agent))
				if got := ref.CurrentView().ToolNames(); len(got) > 1 {
					t.Errorf("got %v", got)
				}
				f.ListRoles()
				f.ListAgents("")
				_ = f.MayMessage(agent, root)
			}
		})
	}
	for i := range 300 {
		f.update(role.ID, org.RoleSpec{Use: of([]toolgroups.GroupID{"docs", "artifact"}[i%2])})
		f.register("mcp:docs", "docs", "search")
	}
	close(stop)
	readers.Wait()
}

// A record that claims to be a root below another agent, or to have a parent in another
// task, claims permissions that the agent never had. The agent is denied everything.
func TestLoad_RejectsImpossiblePosition(t *testing.T) {
	none, all := toolgroups.SetOf(), toolgroups.AllGroups()
	for name, record := range map[string]string{
		"root with a parent":     `{"id":"a","roleId":"root","parentAgentId":"WEAK","taskId":"TASK","status":"active","root":true}`,
		"root of no task":        `{"id":"a","roleId":"root","taskId":"TASK","status":"active","root":true}`,
		"role root below root":   `{"id":"a","roleId":"root","parentAgentId":"STRONG","taskId":"OTHER","status":"active"}`,
		"role root at no top":    `{"id":"a","roleId":"root","taskId":"TASK","status":"active"}`,
		"parent in another task": `{"id":"a","roleId":"r1","parentAgentId":"STRONG","taskId":"TASK","status":"active"}`,
		"unknown parent":         `{"id":"a","roleId":"r1","parentAgentId":"nobody","taskId":"TASK","status":"active"}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			weak, strong := f.task(org.TaskSpec{Groups: &none}), f.task(org.TaskSpec{})
			f.store.set("role", "r1", `{"id":"r1","name":"w","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
			fill := strings.NewReplacer("STRONG", string(strong), "WEAK", string(weak), "TASK", string(f.agent(weak).Task), "OTHER", string(f.agent(strong).Task))
			f.store.set("agent", "a", fill.Replace(record))
			f.reopen()
			f.wantTools("a")
			if got := f.GrantableGroups("a"); got.IsAll() || len(got.GroupIDs()) > 0 {
				t.Errorf("the agent may grant %v", got)
			}
			if _, _, err := f.CreateRole(identity.ByAgent("a"), "r9", org.RoleSpec{Name: "super", Use: &all}); err == nil {
				t.Error("the agent created a role with all permissions")
			}
		})
	}
}

// The flag makes an agent root, not its role: the first agent of a task whose record
// lost the flag is denied everything.
func TestLoad_RoleRootWithoutFlagDenied(t *testing.T) {
	f := newFixture(t)
	top := f.task(org.TaskSpec{})
	f.wantTools(top, "create_role", "spawn_agent")
	f.store.set("agent", string(top), `{"id":"`+string(top)+`","roleId":"root","taskId":"`+string(f.agent(top).Task)+`","status":"active"}`)
	f.reopen()
	f.wantTools(top)
	if got := f.GrantableGroups(top); got.IsAll() || len(got.GroupIDs()) > 0 {
		t.Errorf("the agent may grant %v", got)
	}
}

// Load allocates only what it keeps of an agent. encoding/json would allocate seventy
// objects for each.
func TestLoad_AllocationsPerAgent(t *testing.T) {
	const agents = 1000
	f := newFixture(t)
	root := f.task(org.TaskSpec{State: "draft"})
	s := org.SpawnSpec{Role: f.role(operator, org.RoleSpec{Use: of("docs")}).ID, Brief: org.TaskBrief{
		Objective: "two\n\"lines\" <&> é \u2028", Constraints: org.TextLines{"a", "b\\"}, Inputs: "i", Outputs: "o", CompletionCriteria: "c",
		Collaborators: []org.Collaborator{{Agent: root, Role: "root", Description: "d"}}, References: org.TextLines{"r"}, Priority: "high",
	}}
	for range agents {
		_, changes, err := f.SpawnAgent(root, identity.AgentID(f.id("a")), s)
		if err != nil {
			t.Fatal(err)
		}
		f.store.put(changes)
	}
	listed := testing.AllocsPerRun(1, func() {
		for range f.store.Records("agent") {
		}
	})
	allocs := testing.AllocsPerRun(1, f.reopen) - listed
	if each := allocs / agents; each > 5 { // the node, its list of contacts with one element, and the reader
		t.Errorf("%.1f allocations for each agent", each)
	}
}

// LoadOrg does not read the records of terminated agents.
func TestLoad_SkipsTerminatedAgents(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	agent := f.spawn(root, f.role(operator, org.RoleSpec{Use: of()}).ID)
	_, changes, err := f.TerminateAgent(operator, agent, "", "", f.stored)
	if err != nil {
		t.Fatal(err)
	}
	f.store.put(changes)
	for at := range f.store.records {
		if kind, key, _ := strings.Cut(at, " "); key == string(agent) {
			f.store.set(kind, key, `{`) // reading it is logged
		}
	}
	f.reopen()
	if got := f.log.String(); got != "" {
		t.Errorf("got log %q", got)
	}
}
