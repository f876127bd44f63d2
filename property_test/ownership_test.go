package property_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Two hostile owners may register and unregister anything, with any ids and
// tool names. Nothing of other owners is changed, shadowed or removed:
// neither groups, nor tools, nor what a role sees of them.
func TestManager_OwnersCannotChangeOthers(t *testing.T) {
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 250}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		for _, g := range slices.Concat(builtinSpecs, moduleGroups) {
			if _, err := d.Register(g); err != nil {
				return err
			}
		}
		for !t.IsEmpty() {
			attacker := proptest.PickFrom[toolgroups.GroupOwner](t, "module:a", "module:b")
			before := stateOfOthers(d.CurrentSnapshot(), attacker)
			if err := d.randomAttack(t, attacker); err != nil {
				return err
			}
			if after := stateOfOthers(d.CurrentSnapshot(), attacker); after != before {
				return fmt.Errorf("%s changed what others own:\n%s\nbecame\n%s", attacker, before, after)
			}
		}
		return nil
	})
}

// randomAttack registers or unregisters a group as the attacker, mostly with an
// id of another owner. The result is compared with the naive registry.
func (m *checkedManager) randomAttack(t *proptest.Choices, attacker toolgroups.GroupOwner) error {
	targets := append(ids{toolgroups.OrgManagement, toolgroups.Artifact}, groupIDs...)
	if t.OneIn(3) {
		_, err := m.Unregister(attacker, proptest.PickFrom(t, targets...))
		return err
	}
	g := anyGroup(t)
	g.ID, g.Owner = proptest.PickFrom(t, targets...), attacker
	if t.OneIn(4) {
		g.Tools = append(g.Tools, toolSpec{Name: proptest.PickFrom(t, "create_role", "put_artifact")})
	}
	_, err := m.Register(g)
	return err
}

// stateOfOthers returns everything that does not belong to the attacker as
// text: groups with their tools, handles by name, and the tools that a role
// with these groups may call. Tools of the attacker in toolsets, by reference,
// are omitted.
func stateOfOthers(s *toolgroups.Snapshot, attacker toolgroups.GroupOwner) string {
	var text string
	for _, info := range s.ListGroups() {
		if info.Owner != attacker {
			text += fmt.Sprintln(info.ID, info.Owner, info.Description, info.RegisteredAt, exceptOwner(s, info.Tools, attacker))
			role := s.Compile(s.PinOwners(toolgroups.SetOf(info.ID)))
			text += fmt.Sprintln(info.ID, "allows", exceptOwner(s, definitionNames(role.ForState("").ToolDefinitions()), attacker))
		}
	}
	for _, h := range s.ListTools() {
		if h.Owner != attacker {
			found, _ := s.LookupTool(h.Definition.Name)
			text += fmt.Sprintf("%s %s %s %p\n", h.Definition.Name, h.Group, h.Owner, found)
		}
	}
	return text
}

// exceptOwner returns the names of tools that do not belong to the attacker.
func exceptOwner(s *toolgroups.Snapshot, names []string, attacker toolgroups.GroupOwner) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		h, ok := s.LookupTool(name)
		return ok && h.Owner == attacker
	})
}

// A group id in a role is pinned to its owner at that time. The role loses the
// group when it is unregistered, gets nothing of a group of another owner with
// that id, and has it again when its owner registers it again.
func TestGroupOwner_GrantNotInherited(t *testing.T) {
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 60}, func(t *proptest.Choices) error {
		d := newCheckedManager()
		first, second := owners[0], owners[1]
		id := proptest.PickFrom(t, groupIDs...)
		if _, err := d.Register(groupSpec{ID: id, Owner: first, Tools: []toolSpec{{Name: "t0"}}}); err != nil {
			return err
		}
		role := d.CurrentSnapshot().PinOwners(toolgroups.SetOf(id))
		for !t.IsEmpty() {
			if _, err := d.Unregister(proptest.PickFrom[toolgroups.GroupOwner](t, first, second), id); err != nil {
				return err
			}
			owner := proptest.PickFrom[toolgroups.GroupOwner](t, first, second)
			if _, err := d.Register(groupSpec{ID: id, Owner: owner, Tools: []toolSpec{{Name: proptest.PickFrom(t, toolNames...)}}}); err != nil {
				return err
			}
			var want []string
			if d.Naive.OwnerOf(id) == first {
				want = d.Naive.Definitions(id)
			}
			if got := definitionNames(d.CurrentSnapshot().Compile(role).ForState("").ToolDefinitions()); !slices.Equal(got, want) {
				return fmt.Errorf("group %s belongs to %s; a role pinned to %s sees %v, want %v", id, d.Naive.OwnerOf(id), first, got, want)
			}
		}
		return nil
	})
}

// contestFixture is a runtime in which owners compete for ids and tool names
// while agents make calls. Every tool logs its owner.
type contestFixture struct {
	*runtime.Runtime
	effects effectLog
	agents  map[toolgroups.GroupOwner]identity.AgentID // by the owner its role is pinned to; "" for the role with all groups

	contested atomic.Int64 // allowed calls of the contested tool
}

// contestedGroup has the id, and its tool the name, that all attackers
// register.
var contestedGroup = groupSpec{ID: "contested", Tools: []toolSpec{{Name: "t9"}}}

// victimGroup belongs to an owner that attackers must not affect.
var victimGroup = groupSpec{ID: "vault", Owner: "module:v", Tools: []toolSpec{{Name: "t0"}, {Name: "t1"}}}

var attackers = []toolgroups.GroupOwner{"module:a", "module:b"}

func newContestFixture(t *testing.T) *contestFixture {
	t.Helper()
	a := &contestFixture{agents: map[toolgroups.GroupOwner]identity.AgentID{}}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	var err error
	if a.Runtime, err = newRuntime(newMemoryStore(), groups, newScriptedModel()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	for _, g := range append(slices.Clone(builtinSpecs), victimGroup) {
		a.must(t, a.register(g.Owner, g))
	}
	for _, owner := range attackers {
		a.must(t, a.register(owner, contestedGroup))
		a.agents[owner] = a.startAgent(t, owner, "contested", "vault")
		a.must(t, grouptest.UnregisterGroup(a.GroupManager(), owner, contestedGroup.ID))
	}
	a.agents[""] = a.startAgent(t, "all", "*")
	return a
}

func (f *contestFixture) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// register registers a group with effectTools as an owner.
func (f *contestFixture) register(owner toolgroups.GroupOwner, g groupSpec) error {
	g.Owner = owner
	_, err := grouptest.RegisterGroup(f.GroupManager(), owner, effectGroup(g, &f.effects))
	return err
}

// startAgent starts a task of a role with some groups and returns its agent.
func (f *contestFixture) startAgent(t *testing.T, name toolgroups.GroupOwner, use ...toolgroups.GroupID) identity.AgentID {
	t.Helper()
	set := toolgroups.SetOf(use...)
	_, err := f.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "for " + string(name), Use: &set})
	f.must(t, err)
	id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: operator, Role: "for " + string(name)})
	f.must(t, err)
	task, _ := f.Org().TaskByID(id)
	return task.Top
}

// registerRandomly registers and unregisters groups as an attacker, with ids
// and tool names of its own and of others: so many rounds, and more until the
// contested tool has run.
func (f *contestFixture) registerRandomly(r *rand.Rand, attacker toolgroups.GroupOwner, rounds int) {
	wanted := append(ids{toolgroups.OrgManagement, toolgroups.Artifact, "Vault", "vault/x"}, contestedGroup.ID, contestedGroup.ID, contestedGroup.ID, victimGroup.ID)
	names := []string{"t0", "t1", "t9", "t9", "t9", "T0", "create_role", "put_artifact", "t10"}
	for n := 0; n < rounds || f.contested.Load() == 0 && n < 1000*rounds; n++ {
		g := groupSpec{ID: wanted[r.IntN(len(wanted))], Refs: []string{"t0", "create_role", "t9"}}
		for range 1 + r.IntN(2) {
			g.Tools = append(g.Tools, toolSpec{Name: names[r.IntN(len(names))]})
		}
		if r.IntN(2) == 0 {
			_ = f.register(attacker, g)
		} else {
			_ = grouptest.UnregisterGroup(f.GroupManager(), attacker, g.ID)
		}
	}
}

// Two hostile owners register and unregister groups at random and concurrently,
// while agents make calls. The tools of the victim and the built-in ones run
// for every call, as those of their owner. The tool that both attackers
// register runs for an agent only as that of the owner its role was pinned to.
// No tool runs without a call.
func TestManager_ConcurrentOwnersStaySeparate(t *testing.T) {
	seed := flags.Seed()
	t.Logf("seed %d", seed)
	a := newContestFixture(t)
	var owners, calls sync.WaitGroup
	over := make(chan struct{})
	for i, owner := range attackers {
		owners.Go(func() {
			a.registerRandomly(rand.New(rand.NewPCG(uint64(seed), uint64(i))), owner, 10*max(cases, flags.Cases))
		})
	}
	allowed := make([]map[string]int, 3)
	for i, who := range []toolgroups.GroupOwner{"module:a", "module:b", ""} {
		allowed[i] = map[string]int{}
		calls.Go(func() { a.callAllTools(t, who, allowed[i], over) })
	}
	owners.Wait()
	close(over)
	calls.Wait()
	for _, d := range a.effects.drain() {
		a.checkEffect(t, d)
	}
	t.Logf("allowed: %v", allowed)
	if allowed[0]["t9"]+allowed[1]["t9"]+allowed[2]["t9"] == 0 {
		t.Error("the contested tool never ran; the test proves nothing")
	}
}

// callAllTools calls every tool in turn until over is closed, and counts the
// allowed calls.
func (f *contestFixture) callAllTools(t *testing.T, who toolgroups.GroupOwner, allowed map[string]int, over <-chan struct{}) {
	for {
		for _, name := range []string{"t0", "t9", "t1", "put_artifact", "t9"} {
			out, err := callTool(f.Runtime, identity.ByAgent(f.agents[who]), name, `{}`)
			if err != nil {
				t.Error(err)
				return
			}
			if out.Allowed() {
				allowed[name]++
				if name == "t9" {
					f.contested.Add(1)
				}
			}
			if mustBeAllowed := name == "t0" || name == "t1" || name == "put_artifact" && who == ""; mustBeAllowed && !out.Allowed() && !outpaced(out.Err) {
				t.Errorf("agent for %q: %s of an owner without contest: %v", who, name, out.Err)
			}
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// outpaced reports whether the gate denied a call because permissions changed during
// each of its attempts to decide. That is right, and frequent on a loaded machine.
func outpaced(err error) bool {
	return strings.Contains(errcode.Message(err), "the permissions of this role keep changing")
}

// checkEffect checks that the tool that ran belongs to the expected owner.
func (f *contestFixture) checkEffect(t *testing.T, d effect) {
	t.Helper()
	want := map[string]toolgroups.GroupOwner{"t0": victimGroup.Owner, "t1": victimGroup.Owner, "put_artifact": toolgroups.Builtin}[d.tool]
	if d.tool == "t9" {
		want = d.owner // any owner is allowed for the role with all groups
		for _, owner := range attackers {
			if d.by == identity.ByAgent(f.agents[owner]) {
				want = owner
			}
		}
	}
	if want == "" || d.owner != want {
		t.Errorf("%s of %s ran for %s, want that of %q", d.tool, d.owner, d.by, want)
	}
}

// A running call completes with the tool it started with when the tool name
// passes to another owner. The next call of the same role is denied.
func TestGate_RunningCallKeepsItsTool(t *testing.T) {
	a := newContestFixture(t)
	began, release := make(chan struct{}), make(chan struct{})
	slow := effectGroup(groupSpec{ID: contestedGroup.ID, Owner: "module:a", Tools: contestedGroup.Tools}, &a.effects)
	slow.Tools[0] = blockingTool{slow.Tools[0].(effectTool), began, release}
	_, err := grouptest.RegisterGroup(a.GroupManager(), "module:a", slow)
	a.must(t, err)
	who := identity.ByAgent(a.agents["module:a"])
	ended := make(chan *gate.Admission, 1)
	go func() {
		out, err := callTool(a.Runtime, who, "t9", `{}`)
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	if _, err := await(began); err != nil {
		t.Fatal(err)
	}
	a.must(t, grouptest.UnregisterGroup(a.GroupManager(), "module:a", contestedGroup.ID))
	a.must(t, a.register("module:b", contestedGroup))
	next, err := callTool(a.Runtime, who, "t9", `{}`)
	if a.must(t, err); next.Allowed() {
		t.Error("the next call was allowed")
	}
	close(release)
	if out, err := await(ended); err != nil || !out.Allowed() || out.Result.IsError {
		t.Errorf("the running call: %+v, %v", out, err)
	}
	want := []effect{{"t9", "module:a", who}}
	if got := a.effects.drain(); !slices.Equal(got, want) {
		t.Errorf("effects: %v, want %v", got, want)
	}
}

// blockingTool is an effectTool that waits until it is released.
type blockingTool struct {
	effectTool
	began, release chan struct{}
}

func (t blockingTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	close(t.began)
	<-t.release
	return t.effectTool.Call(ctx, c)
}

// While groups are registered and unregistered concurrently, no reader is
// allowed a tool from the moment UnregisterGroup returned until the group is
// registered again. The race detector must find nothing.
func TestAuthorize_DeniesUnregisteredTool(t *testing.T) {
	f, agent := newReaderFixture(t)
	var phases [2]atomic.Int64 // odd while the writer's group is certainly unregistered
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range phases {
		writers.Go(func() { f.registerRepeatedly(t, i, agent, &phases[i]) })
	}
	for range 3 {
		readers.Go(func() { f.authorizeRepeatedly(t, agent, &phases, stop) })
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// readerFixture is an organization without a store, and its gate.
type readerFixture struct {
	*checkedManager
	gate *gate.Gate
}

// newReaderFixture returns an organization with one agent whose role has all
// groups.
func newReaderFixture(t *testing.T) (*readerFixture, identity.Principal) {
	t.Helper()
	d := newCheckedManager()
	log := slog.New(slog.DiscardHandler)
	o, err := org.LoadOrg(org.Config{Groups: d.Manager, Now: time.Now, Log: log}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Groups: d.Manager, Directory: o, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	role, _, err := o.CreateRole(operator, "all", org.RoleSpec{Name: "all"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := org.PrepareTask(org.TaskSpec{Caller: operator, Role: string(role.ID)})
	if err != nil {
		t.Fatal(err)
	}
	_, agent, _, err := o.StartTask("task", 0, task)
	if err != nil {
		t.Fatal(err)
	}
	return &readerFixture{d, g}, identity.ByAgent(agent.ID)
}

// writerGroup returns the group of the i-th writer.
func writerGroup(i int) toolgroups.Group {
	return groupSpec{ID: groupIDs[i], Owner: owners[i], Tools: []toolSpec{{Name: toolNames[2*i]}, {Name: toolNames[2*i+1]}}}.Group(nil)
}

// registerRepeatedly registers and unregisters the group of the i-th writer.
func (f *readerFixture) registerRepeatedly(t *testing.T, i int, agent identity.Principal, phase *atomic.Int64) {
	subject := f.gate.Subject(agent)
	for range 300 {
		if _, err := grouptest.RegisterGroup(f.Manager, owners[i], writerGroup(i)); err != nil {
			t.Error(err)
		}
		if err := grouptest.UnregisterGroup(f.Manager, owners[i], groupIDs[i]); err != nil {
			t.Error(err)
		}
		phase.Add(1) // unregistered
		for range 50 {
			if subject.AuthorizeTool(toolNames[2*i]).Allowed() {
				t.Errorf("%s is allowed after its group was unregistered", toolNames[2*i])
			}
		}
		phase.Add(1) // about to be registered again
	}
}

// authorizeRepeatedly authorizes tools of both writers until stop is closed.
func (f *readerFixture) authorizeRepeatedly(t *testing.T, agent identity.Principal, phases *[2]atomic.Int64, stop <-chan struct{}) {
	subject := f.gate.Subject(agent)
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		i := n % 2
		before := phases[i].Load()
		allowed := subject.AuthorizeTool(toolNames[2*i+n/2%2]).Allowed()
		if allowed && before%2 == 1 && phases[i].Load() == before {
			t.Errorf("%s was allowed after its group was unregistered", toolNames[2*i])
			return
		}
		subject.VisibleTools()
	}
}
