package org_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func compareIDs(a, b identity.AgentID) int { return cmp.Compare(a, b) }

// heap gives what is alive now.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// toolIn makes a tool that the given states offer.
func toolIn(name string, states ...string) ([]tool.Tool, error) {
	t, err := tool.New(name, "", noop, &tool.Options{States: states})
	return []tool.Tool{t}, err
}

// "A damaged or malformed record is left out and logged: what depends on it
// is denied."
func TestCorruptRecordsAreLeftOut(t *testing.T) {
	const role = `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`
	tests := []struct{ name, kind, key, value string }{
		{"a role that is no JSON", "role", "r", `{"id":"r"`},
		{"a role that is null", "role", "r", `null`},
		{"a role under another's key", "role", "r", strings.Replace(role, `"id":"r"`, `"id":"x"`, 1)},
		{"a role with groups that are no list", "role", "r", strings.Replace(role, `["*"]`, `"*"`, 1)},
		{"a role whose status is not known", "role", "r", strings.Replace(role, "active", "paused", 1)},
		{"a role without a status", "role", "r", strings.Replace(role, `"status":"active",`, "", 1)},
		{"a role whose maker is not known", "role", "r", strings.Replace(role, "operator", "nowhere", 1)},
		{"a role without a maker", "role", "r", strings.Replace(role, `"createdByRole":"operator",`, "", 1)},
		{"a role that made itself", "role", "r", strings.Replace(role, "operator", "r", 1)},
		{"a role that is damaged", "role", "r", "damaged"},
		{"an agent that is no JSON", "agent", "a", `[`},
		{"an agent under another's key", "agent", "a", `{"id":"b","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`},
		{"an agent without a status", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK"}`},
		{"an agent of a status that is not known", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"deleted"}`},
		{"an agent whose parent is gone", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"gone","taskId":"TASK","status":"active"}`},
		{"an agent without a parent that its task does not know", "agent", "a", `{"id":"a","roleId":"r","taskId":"TASK","status":"active"}`},
		{"an agent that says it is root", "agent", "a", `{"id":"a","roleId":"root","taskId":"TASK","status":"active","root":true}`},
		{"an agent that is its own parent", "agent", "a", `{"id":"a","roleId":"r","parentAgentId":"a","taskId":"TASK","status":"active"}`},
		{"a task that is no JSON", "task", "TASK", `1`},
		{"a task under another's key", "task", "TASK", `{"id":"x"}`},
		{"a task that is damaged", "task", "TASK", "damaged"},
		{"a task whose caller's role is lost", "task", "TASK", `{"id":"TASK","agent":"TOP","caller":"user:ann@weak","status":"running","ceiling":{"Set":["*"]},"groups":{"Set":["*"]}}`},
		{"a task without a ceiling", "task", "TASK", `{"id":"TASK","agent":"TOP","status":"running"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := open(t)
			top := h.task(org.TaskSpec{})
			fill := strings.NewReplacer("TOP", string(top), "TASK", string(h.agent(top).Task)).Replace
			h.store.set("role", "r", role)
			h.store.set("agent", "a", fill(`{"id":"a","roleId":"r","parentAgentId":"TOP","taskId":"TASK","status":"active"}`))
			h.reopen()
			h.wantMay("a", every...)

			key := fill(tt.key)
			if tt.value == "damaged" {
				h.store.damaged = append(h.store.damaged, key)
			} else {
				h.store.set(tt.kind, key, fill(tt.value))
			}
			h.log.Reset()
			h.reopen()
			h.wantMay("a")
			if left := strings.HasSuffix(tt.name, "no JSON") || strings.HasSuffix(tt.name, "damaged") || strings.HasSuffix(tt.name, "key"); left {
				if got := h.log.String(); !strings.Contains(got, "record left out") || !strings.Contains(got, "key="+key) {
					t.Errorf("got log %q, want the record's key", got)
				}
			}
		})
	}
}

// Agents that are each other's parents would be climbed forever.
func TestACircleOfParentsIsCut(t *testing.T) {
	h := open(t)
	h.store.set("role", "r", `{"id":"r","name":"r","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
	for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
		h.store.set("agent", pair[0], `{"id":"`+pair[0]+`","parentAgentId":"`+pair[1]+`","roleId":"r","taskId":"t","status":"active"}`)
	}
	h.reopen()
	for _, id := range []identity.AgentID{"a", "b", "c"} {
		h.wantMay(id)
	}
}

// However deep agents stand, a start takes a time in proportion to their
// number, and so does their end. Were it the square, this would take minutes.
func TestAgentsMayStandDeep(t *testing.T) {
	const depth = 100_000
	h := open(t)
	parent := h.task(org.TaskSpec{})
	task := h.agent(parent).Task
	roles := []identity.RoleID{h.role(operator, org.RoleSpec{Use: of("docs"), Grant: of("docs", "artifact")}).ID, h.role(operator, org.RoleSpec{Use: of("artifact", "docs"), Grant: of("docs")}).ID}
	for i := range depth {
		id := identity.AgentID(fmt.Sprintf("deep%d", (i*7919)%depth)) // in the store no parent stands before its children
		h.store.set("agent", string(id), fmt.Sprintf(`{"id":%q,"roleId":%q,"parentAgentId":%q,"taskId":%q,"status":"active"}`, id, roles[i/2%2], parent, task))
		parent = id
	}
	h.reopen()
	h.wantMay(parent, "search")
	h.wantMay(h.spawn(parent, h.role(operator, org.RoleSpec{Use: of("docs")}).ID), "search")
	if entry, ok := h.TopAncestor(parent); !ok || entry != "deep0" {
		t.Errorf("got %q", entry)
	}
	h.update(roles[0], org.RoleSpec{Grant: of()})
	h.wantMay(parent)
	ended, changes, err := h.Terminate(operator, "deep0", "c", "", h.stored)
	if err != nil || len(ended) != depth+1 || len(changes) != 2*(depth+1) || ended[depth].Agent != "deep0" {
		t.Errorf("got %d terminations, %v", len(ended), err)
	}
}

func TestTheEpochIsKeptAndMovesWithAProcess(t *testing.T) {
	h := open(t)
	h.role(operator, org.RoleSpec{})
	before := h.Epoch()
	h.store.put(h.Advance())
	if h.Epoch() != before+1 {
		t.Errorf("got %d after %d", h.Epoch(), before)
	}
	h.reopen()
	if h.Epoch() != before+1 {
		t.Errorf("got %d from the store, want %d", h.Epoch(), before+1)
	}
	h.store.set("meta", "epoch", `"x"`)
	h.store.set("meta", "other", `7`)
	h.reopen()
	if h.Epoch() != 0 {
		t.Errorf("got %d from a lost epoch, want 0", h.Epoch())
	}
}

func TestTasks(t *testing.T) {
	h := open(t)
	top := h.task(org.TaskSpec{Text: "secret text", State: "s", Workspace: "/w", ReadOnly: true, Config: "hash", FirstSeq: 7})
	second := h.task(org.TaskSpec{})
	id := h.agent(top).Task
	task, ok := h.Task(id)
	if !ok || task.Text != "" || task.State != "s" || task.Top != top || task.Status != org.Running || task.FirstSeq != 7 || !task.ReadOnly || task.Workspace != "/w" || task.Config != "hash" {
		t.Errorf("got %+v", task)
	}
	if _, ok := h.Task("nowhere"); ok {
		t.Error("a task that is not there is found")
	}
	var stored org.Task
	if err := json.Unmarshal(h.store.records["task "+string(id)], &stored); err != nil || stored.Text != "secret text" {
		t.Fatalf("got %+v, %v", stored, err)
	}
	failure := &org.TaskError{Code: errcode.TaskStalled, Message: "stalled"}
	changes := h.EndTask(&stored, org.Failed, json.RawMessage(`"r"`), failure)
	if len(changes) != 1 {
		t.Fatalf("got %d changes", len(changes))
	}
	h.store.put(changes)
	if again := h.EndTask(&stored, org.Done, nil, nil); again != nil {
		t.Error("a task ended twice")
	}
	if h.EndTask(&org.Task{ID: "nowhere"}, org.Done, nil, nil) != nil {
		t.Error("a task that is not there ended")
	}
	h.reopen()
	list := h.Tasks()
	if len(list) != 2 || list[0].ID != id || list[1].Top != second {
		t.Fatalf("got %+v", list)
	}
	if diff := gocmp.Diff(list[0].Error, failure); diff != "" || list[0].Status != org.Failed || list[0].Result != nil || list[0].EndedAt.IsZero() {
		t.Errorf("got %+v", list[0])
	}
}

// Whoever asks while roles and groups change gets an answer of before or of
// after, and the race detector has nothing to say.
func TestReadingWhileTheOrganizationChanges(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Use: of("docs")})
	agent := h.spawn(root, role.ID)
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
				slot, _ := h.Resolve(identity.ByAgent(agent))
				if got := slot.View().Names(); len(got) > 1 {
					t.Errorf("got %v", got)
				}
				h.Roles()
				h.Agents("")
				_ = h.MayMessage(agent, root)
			}
		})
	}
	for i := range 300 {
		h.update(role.ID, org.RoleSpec{Use: of([]toolgroups.GroupID{"docs", "artifact"}[i%2])})
		h.register("mcp:docs", "docs", "search")
	}
	close(stop)
	readers.Wait()
}

// A record that claims to be root below somebody, or a parent in another task,
// claims rights it never had: it is nobody.
func TestARecordThatClaimsAPlaceItCannotHaveIsLost(t *testing.T) {
	none, all := toolgroups.Of(), toolgroups.All()
	for name, record := range map[string]string{
		"root below another": `{"id":"a","roleId":"root","parentAgentId":"WEAK","taskId":"TASK","status":"active","root":true}`,
		"root of no task":    `{"id":"a","roleId":"root","taskId":"TASK","status":"active","root":true}`,
		"a parent elsewhere": `{"id":"a","roleId":"r1","parentAgentId":"STRONG","taskId":"TASK","status":"active"}`,
		"a parent nowhere":   `{"id":"a","roleId":"r1","parentAgentId":"nobody","taskId":"TASK","status":"active"}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			weak, strong := h.task(org.TaskSpec{Groups: &none}), h.task(org.TaskSpec{})
			h.store.set("role", "r1", `{"id":"r1","name":"w","createdByRole":"operator","status":"active","toolGroups":["*"],"grant":["*"]}`)
			fill := strings.NewReplacer("STRONG", string(strong), "WEAK", string(weak), "TASK", string(h.agent(weak).Task))
			h.store.set("agent", "a", fill.Replace(record))
			h.reopen()
			h.wantMay("a")
			if got := h.Grantable("a"); got.IsAll() || len(got.IDs()) > 0 {
				t.Errorf("it may grant %v", got)
			}
			if _, _, err := h.CreateRole(identity.ByAgent("a"), "r9", org.RoleSpec{Name: "super", Use: &all}); err == nil {
				t.Error("it made a role that may everything")
			}
		})
	}
}

// A start reads all agents there are: of one that is written as agents are it
// makes what is kept, and no more. encoding/json makes seventy objects.
func TestAStartMakesLittleOfEachAgent(t *testing.T) {
	const agents = 1000
	h := open(t)
	root := h.task(org.TaskSpec{State: "draft"})
	s := org.Spawn{Role: h.role(operator, org.RoleSpec{Use: of("docs")}).ID, Brief: org.TaskBrief{
		Objective: "two\n\"lines\" <&> é \u2028", Constraints: org.Lines{"a", "b\\"}, Inputs: "i", Outputs: "o", CompletionCriteria: "c",
		Collaborators: []org.Collaborator{{Agent: root, Role: "root", Description: "d"}}, References: org.Lines{"r"}, Priority: "high",
	}}
	for range agents {
		_, changes, err := h.Spawn(root, identity.AgentID(h.id("a")), s)
		if err != nil {
			t.Fatal(err)
		}
		h.store.put(changes)
	}
	listed := testing.AllocsPerRun(1, func() {
		for range h.store.Records("agent") {
		}
	})
	made := testing.AllocsPerRun(1, h.reopen) - listed
	if each := made / agents; each > 5 { // the member, its list of contacts and the one in it, and what reads
		t.Errorf("%.1f objects are made of each agent", each)
	}
}

// A start takes as long as there are agents in being: it does not look at
// those that have ended.
func TestAStartDoesNotLookAtWhoHasEnded(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	agent := h.spawn(root, h.role(operator, org.RoleSpec{Use: of()}).ID)
	_, changes, err := h.Terminate(operator, agent, "", "", h.stored)
	if err != nil {
		t.Fatal(err)
	}
	h.store.put(changes)
	for at := range h.store.records {
		if kind, key, _ := strings.Cut(at, " "); key == string(agent) {
			h.store.set(kind, key, `{`) // who looks says so
		}
	}
	h.reopen()
	if got := h.log.String(); got != "" {
		t.Errorf("got log %q", got)
	}
}
