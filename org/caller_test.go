package org_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// visible returns the tools that a principal may call, sorted, and its workflow state.
func (f *fixture) visible(p identity.Principal) (names []string, state string) {
	ref, state := f.ResolveView(p)
	names = append([]string{}, ref.CurrentView().ForState(state).ToolNames()...)
	slices.Sort(names)
	return names, state
}

func (f *fixture) wantVisible(p identity.Principal, state string, want ...string) {
	f.t.Helper()
	names, at := f.visible(p)
	if diff := cmp.Diff(names, append([]string{}, want...)); diff != "" || at != state {
		f.t.Errorf("%s is in state %q, want %q; tools, got before want:\n%s", p, at, state, diff)
	}
}

func ann(role org.Role) identity.Principal { return identity.ByCaller("ann", role.ID) }

// A caller has the permissions of its role, within what the role's creators may grant.
// Each change is effective when the call that made it returns.
func TestCaller_HasPermissionsOfRole(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	reader := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	all := f.role(operator, org.RoleSpec{Name: "all"})

	f.wantVisible(ann(all), "", allTools...)
	f.wantVisible(ann(reader), "", "read_file", "search", "write_file")
	ref, _ := f.ResolveView(ann(reader))
	f.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	f.wantVisible(ann(reader), "", "search")
	f.update(boss.ID, org.RoleSpec{Grant: of("docs", "workspace")})
	f.register("mcp:docs", "docs", "search", "fetch")
	f.wantVisible(ann(reader), "", "fetch", "read_file", "search", "write_file")
	if err := grouptest.UnregisterGroup(f.groups, "mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	f.wantVisible(ann(reader), "", "read_file", "write_file")
	f.delete(boss.ID)
	f.wantVisible(ann(reader), "")
	f.delete(all.ID)
	f.wantVisible(ann(all), "")
	if names := ref.CurrentView().ToolNames(); len(names) != 0 {
		t.Errorf("a ViewRef from before still allows %v", names)
	}
}

func (f *fixture) delete(id identity.RoleID) {
	f.t.Helper()
	_, changes, err := f.DeleteRole(operator, id, false)
	if err != nil {
		f.t.Fatal(err)
	}
	f.store.put(changes)
}

// The users of a role share a ViewRef. Unknown and invalid callers are denied and do not
// create scopes.
func TestResolve_DeniesInvalidCallers(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r"})
	one, _ := f.ResolveView(ann(role))
	if other, _ := f.ResolveView(identity.ByCaller("bob", role.ID)); one != other {
		t.Error("two users of a role have different ViewRefs")
	}
	scopes := f.ScopeCount()
	long := strings.Repeat("x", 257)
	for _, p := range []identity.Principal{
		{Kind: identity.Caller}, identity.ByCaller("", role.ID), identity.ByCaller("ann", ""), identity.ByCaller("ann", "no role"),
		identity.ByCaller("ann", "r"), identity.ByCaller("ann", org.RootRole), identity.ByCaller(identity.UserName(long), role.ID),
		identity.ByCaller("a\xff", role.ID), identity.ByCaller("ann", identity.RoleID(long)),
		{Kind: identity.Operator, User: "ann", Role: role.ID}, {Kind: identity.Agent, User: "ann", Role: role.ID},
	} {
		f.wantVisible(p, "")
		if changes, err := f.ResetCaller(p); err == nil || changes != nil {
			t.Errorf("%q was reset", p)
		}
	}
	if got := f.ScopeCount(); got != scopes {
		t.Errorf("unknown callers created %d scopes", got-scopes)
	}
	wantCode(t, org.CheckCaller(identity.ByAgent("a")), errcode.Unauthenticated)
}

// registerStateTools registers the group flow: begin leads to the state open, and enter
// is visible in that state only.
func (f *fixture) registerStateTools() {
	f.t.Helper()
	var list []tool.Tool
	for name, o := range map[string]*tool.Options{"begin": {State: "open"}, "enter": {States: []string{"open"}}} {
		t, err := tool.New(name, "", noop, o)
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, t)
	}
	if _, err := grouptest.RegisterGroup(f.groups, "module:flow", toolgroups.Group{ID: "flow", Tools: list}); err != nil {
		f.t.Fatal(err)
	}
}

// The state of a caller is kept for each user and role, and survives a restart.
func TestCaller_StateSurvivesRestart(t *testing.T) {
	f := newFixture(t)
	f.registerStateTools()
	one, two := f.role(operator, org.RoleSpec{Name: "one", Use: of("flow")}), f.role(operator, org.RoleSpec{Name: "two", Use: of("flow")})
	bob := identity.ByCaller("bob", one.ID)
	f.store.put(f.SetCallerState(ann(one), "open"))
	check := func() {
		t.Helper()
		f.wantVisible(ann(one), "open", "begin", "enter")
		f.wantVisible(ann(two), "", "begin")
		f.wantVisible(bob, "", "begin")
	}
	check()
	f.reopen()
	check()
	changes, err := f.ResetCaller(ann(one))
	if err != nil {
		t.Fatal(err)
	}
	f.store.put(changes)
	f.wantVisible(ann(one), toolgroups.UndefinedState, "begin")
	f.store.put(f.SetCallerState(ann(one), ""))
	f.reopen()
	f.wantVisible(ann(one), toolgroups.UndefinedState, "begin")
}

// A caller whose record is damaged is denied, not set to the initial state. Others are
// not affected. If the key of the record is lost too, all callers without a record are
// denied. ResetCaller repairs both.
func TestCaller_DamagedRecordDenies(t *testing.T) {
	for _, c := range []struct {
		name    string
		damage  func(s *memoryStore, key string)
		keyLost bool // callers without a record are denied too
	}{
		{"damaged record", func(s *memoryStore, key string) { s.damaged = []string{key} }, false},
		{"malformed JSON", func(s *memoryStore, key string) { s.set("caller", key, `{`) }, false},
		{"record of another caller", func(s *memoryStore, key string) { s.set("caller", key, `{"user":"bob","roleId":"r1","state":"open"}`) }, false},
		{"no state", func(s *memoryStore, key string) { s.set("caller", key, `{"user":"ann","roleId":"r1"}`) }, false},
		{"lost key", func(s *memoryStore, key string) {
			delete(s.records, "caller "+key)
			s.set("caller", "", `{}`)
			s.damaged = []string{""}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.registerStateTools()
			role := f.role(operator, org.RoleSpec{Name: "r", Use: of("flow")})
			bob, eve := identity.ByCaller("bob", role.ID), identity.ByCaller("eve", role.ID)
			f.store.put(append(f.SetCallerState(ann(role), "open"), f.SetCallerState(bob, "open")...))
			c.damage(f.store, ann(role).Key())
			f.reopen()
			f.wantVisible(ann(role), "")
			f.wantVisible(bob, "open", "begin", "enter")
			if c.keyLost {
				f.wantVisible(eve, "")
			} else {
				f.wantVisible(eve, "", "begin")
			}
			if !strings.Contains(f.log.String(), "kind=caller") {
				t.Errorf("the damage is not logged: %s", f.log)
			}
			for _, p := range []identity.Principal{ann(role), eve} {
				if _, err := f.ResetCaller(p); err != nil {
					t.Error(err)
				}
				f.wantVisible(p, toolgroups.UndefinedState, "begin")
			}
		})
	}
}

// The channel of EpochChanged is closed after every change of the epoch.
func TestChanged_ClosedOnEveryEpoch(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	for name, move := range map[string]func(){
		"role created":     func() { f.role(operator, org.RoleSpec{}) },
		"role updated":     func() { f.update(role.ID, org.RoleSpec{Use: of("workspace")}) },
		"group registered": func() { f.register("module:x", "x", "x_tool") },
		"process started":  func() { f.AdvanceEpoch() },
		"role deleted":     func() { f.delete(f.role(operator, org.RoleSpec{}).ID) },
	} {
		changed, same, epoch := f.EpochChanged(), f.EpochChanged(), f.CurrentEpoch()
		if changed != same || closed(changed) {
			t.Errorf("%s: closed before the change, or two channels for one epoch", name)
		}
		move()
		if !closed(changed) || f.CurrentEpoch() == epoch || closed(f.EpochChanged()) {
			t.Errorf("%s: not closed, or the next channel is closed too", name)
		}
	}
	changed := f.EpochChanged()
	_, _, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Use: of("docs")}, true)
	if err != nil || closed(changed) {
		t.Errorf("a dry run closed the channel (%v)", err)
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// When the channel is closed the new View is published already.
func TestChanged_ClosedAfterPublish(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r"})
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		ref, _ := f.ResolveView(ann(role))
		for {
			before := ref.CurrentView().RuleEvaluation(toolgroups.Granted).Epoch
			changed := f.EpochChanged()
			select {
			case <-done:
				return
			case <-changed:
			}
			if now := ref.CurrentView().RuleEvaluation(toolgroups.Granted).Epoch; now <= before {
				t.Errorf("closed, but the View has epoch %d, before it was %d", now, before)
			}
		}
	})
	for n := range 200 {
		f.update(role.ID, org.RoleSpec{Use: []*toolgroups.GroupSet{of("docs"), of("workspace")}[n%2]})
	}
	close(done)
	wg.Wait()
}

// Many callers, known or not, are resolved concurrently while their role changes.
func TestResolve_ConcurrentCallers(t *testing.T) {
	f := newFixture(t)
	role := f.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 100 {
				p := identity.ByCaller(identity.UserName(fmt.Sprint("u", n)), role.ID)
				if i%2 == 0 {
					p.Role = identity.RoleID(fmt.Sprint("unknown ", n, i))
				}
				ref, _ := f.ResolveView(p)
				if got := len(ref.CurrentView().ToolNames()); i%2 == 0 && got != 0 || got > 2 {
					t.Errorf("%s sees %d tools", p, got)
				}
			}
		})
	}
	for n := range 100 {
		f.update(role.ID, org.RoleSpec{Use: []*toolgroups.GroupSet{of("docs"), of("workspace")}[n%2]})
	}
	all.Wait()
}

// StartedBy reports the tasks that a caller started in the same role.
func TestTask_StartedBy(t *testing.T) {
	f := newFixture(t)
	role, other := f.role(operator, org.RoleSpec{Name: "r"}), f.role(operator, org.RoleSpec{Name: "other"})
	f.task(org.TaskSpec{Caller: ann(role)})
	f.task(org.TaskSpec{})
	tasks := f.ListTasks()
	for p, want := range map[identity.Principal]bool{
		ann(role): true, ann(other): false, identity.ByCaller("bob", role.ID): false, operator: false, {}: false,
		{Kind: identity.Operator, User: "ann", Role: role.ID}: false,
	} {
		if got := tasks[0].StartedBy(p); got != want || tasks[1].StartedBy(p) {
			t.Errorf("started by %s: %t", p, got)
		}
	}
	_, _, _, err := f.StartTask("nameless", org.TaskSpec{Caller: identity.ByCaller("", role.ID)})
	wantCode(t, err, errcode.Unauthenticated)
}

// The agents of a caller's task are in the workflow state of the caller, wherever they are
// in the task and whatever moves it.
func TestCaller_AgentsShareState(t *testing.T) {
	f := newFixture(t)
	f.registerStateTools()
	role := f.role(operator, org.RoleSpec{Name: "one", Use: of("flow", toolgroups.OrgManagement)})
	f.store.put(f.SetCallerState(ann(role), "open"))
	root := f.task(org.TaskSpec{Caller: ann(role)})
	worker := f.spawn(root, f.role(operator, org.RoleSpec{Name: "worker", Use: of("flow")}).ID)
	others := f.spawn(f.task(org.TaskSpec{Caller: identity.ByCaller("bob", role.ID)}), role.ID)
	f.wantVisible(identity.ByAgent(worker), "open", "begin", "enter")
	f.reopen()
	f.wantVisible(identity.ByAgent(worker), "open", "begin", "enter")
	stored, _ := f.stored(worker)
	changes, err := f.SetState(worker, "closed", stored)
	if err != nil {
		t.Fatal(err)
	}
	f.store.put(changes)
	f.reopen()
	f.wantVisible(ann(role), "closed", "begin", "create_role", "spawn_agent")
	f.wantVisible(identity.ByAgent(worker), "closed", "begin")
	if a, _ := f.AgentByID(worker); a.State != "closed" {
		t.Errorf("the agent is shown in state %q", a.State)
	}
	if _, state := f.ResolveView(identity.ByAgent(others)); state != "" {
		t.Errorf("the agent of another user is in state %q", state)
	}
	f.store.damaged = []string{ann(role).Key()}
	f.reopen()
	f.wantVisible(identity.ByAgent(worker), "")
	f.wantVisible(identity.ByAgent(root), "")
}
