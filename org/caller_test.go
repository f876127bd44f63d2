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
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// sees lists, sorted, what a principal may call, and gives its state.
func (h *house) sees(p identity.Principal) (names []string, state string) {
	slot, state := h.Resolve(p)
	names = append([]string{}, slot.View().ForState(state).Names()...)
	slices.Sort(names)
	return names, state
}

func (h *house) wantSees(p identity.Principal, state string, want ...string) {
	h.t.Helper()
	names, at := h.sees(p)
	if diff := cmp.Diff(names, append([]string{}, want...)); diff != "" || at != state {
		h.t.Errorf("%s is in state %q, want %q; what it may call, got before want:\n%s", p, at, state, diff)
	}
}

func ann(role org.Role) identity.Principal { return identity.ByCaller("ann", role.ID) }

// A caller may what its role may use, no more than the role's makers may
// grant, and each change is in force when it returns.
func TestACallerMayWhatItsRoleMay(t *testing.T) {
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Name: "boss", Use: of("org_management"), Grant: of("docs", "workspace")})
	agent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	reader := h.role(identity.ByAgent(agent), org.RoleSpec{Name: "reader", Use: of("docs", "workspace")})
	all := h.role(operator, org.RoleSpec{Name: "all"})

	h.wantSees(ann(all), "", every...)
	h.wantSees(ann(reader), "", "read_file", "search", "write_file")
	slot, _ := h.Resolve(ann(reader))
	h.update(boss.ID, org.RoleSpec{Grant: of("docs")})
	h.wantSees(ann(reader), "", "search")
	h.update(boss.ID, org.RoleSpec{Grant: of("docs", "workspace")})
	h.register("mcp:docs", "docs", "search", "fetch")
	h.wantSees(ann(reader), "", "fetch", "read_file", "search", "write_file")
	if err := h.groups.Unregister("mcp:docs", "docs"); err != nil {
		t.Fatal(err)
	}
	h.wantSees(ann(reader), "", "read_file", "write_file")
	h.delete(boss.ID)
	h.wantSees(ann(reader), "")
	h.delete(all.ID)
	h.wantSees(ann(all), "")
	if names := slot.View().Names(); len(names) != 0 {
		t.Errorf("whoever bound before still sees %v", names)
	}
}

func (h *house) delete(id identity.RoleID) {
	h.t.Helper()
	_, changes, err := h.DeleteRole(operator, id, false)
	if err != nil {
		h.t.Fatal(err)
	}
	h.store.put(changes)
}

// Users of one role share a Slot; nobody who is unknown, or has no name that
// can be kept, gets one.
func TestCallersWhoAreNobody(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "r"})
	one, _ := h.Resolve(ann(role))
	if other, _ := h.Resolve(identity.ByCaller("bob", role.ID)); one != other {
		t.Error("two users of a role have two slots")
	}
	slots := h.Slots()
	long := strings.Repeat("x", 257)
	for _, p := range []identity.Principal{
		{Kind: identity.Caller}, identity.ByCaller("", role.ID), identity.ByCaller("ann", ""), identity.ByCaller("ann", "no role"),
		identity.ByCaller("ann", "r"), identity.ByCaller("ann", org.RootRole), identity.ByCaller(identity.User(long), role.ID),
		identity.ByCaller("a\xff", role.ID), identity.ByCaller("ann", identity.RoleID(long)),
		{Kind: identity.Operator, User: "ann", Role: role.ID}, {Kind: identity.Agent, User: "ann", Role: role.ID},
	} {
		h.wantSees(p, "")
		if changes, err := h.ResetCaller(p); err == nil || changes != nil {
			t.Errorf("%q was reset", p)
		}
	}
	if got := h.Slots(); got != slots {
		t.Errorf("asking for what is unknown made %d slots", got-slots)
	}
	wantCode(t, org.CheckCaller(identity.ByAgent("a")), errcode.Unauthenticated)
}

// stages registers a group whose tools are for states.
func (h *house) stages() {
	h.t.Helper()
	var list []tool.Tool
	for name, o := range map[string]*tool.Options{"begin": {State: "open"}, "enter": {States: []string{"open"}}} {
		t, err := tool.New(name, "", noop, o)
		if err != nil {
			h.t.Fatal(err)
		}
		list = append(list, t)
	}
	if _, err := h.groups.Register("module:door", toolgroups.Group{ID: "door", Tools: list}); err != nil {
		h.t.Fatal(err)
	}
}

// Where a caller stands is kept for each user and role, over restarts.
func TestACallersStateLasts(t *testing.T) {
	h := open(t)
	h.stages()
	one, two := h.role(operator, org.RoleSpec{Name: "one", Use: of("door")}), h.role(operator, org.RoleSpec{Name: "two", Use: of("door")})
	bob := identity.ByCaller("bob", one.ID)
	h.store.put(h.SetCallerState(ann(one), "open"))
	check := func() {
		t.Helper()
		h.wantSees(ann(one), "open", "begin", "enter")
		h.wantSees(ann(two), "", "begin")
		h.wantSees(bob, "", "begin")
	}
	check()
	h.reopen()
	check()
	changes, err := h.ResetCaller(ann(one))
	if err != nil {
		t.Fatal(err)
	}
	h.store.put(changes)
	h.wantSees(ann(one), toolgroups.Undefined, "begin")
	h.store.put(h.SetCallerState(ann(one), ""))
	h.reopen()
	h.wantSees(ann(one), toolgroups.Undefined, "begin")
}

// A caller whose record is damaged is denied, not put back to the beginning;
// nobody else is touched. Who it was is known by the record's key; if that is
// gone too, everybody without a record is denied. The operator mends both.
func TestACallerWhoseRecordIsDamagedIsDenied(t *testing.T) {
	for _, c := range []struct {
		name    string
		harm    func(s *memory, key string)
		strange string // what somebody without a record is denied for: the key is gone
	}{
		{"it cannot be read", func(s *memory, key string) { s.damaged = []string{key} }, ""},
		{"it is no JSON", func(s *memory, key string) { s.set("caller", key, `{`) }, ""},
		{"it is another's", func(s *memory, key string) { s.set("caller", key, `{"user":"bob","roleId":"r1","state":"open"}`) }, ""},
		{"it has no state", func(s *memory, key string) { s.set("caller", key, `{"user":"ann","roleId":"r1"}`) }, ""},
		{"its key is gone", func(s *memory, key string) {
			delete(s.records, "caller "+key)
			s.set("caller", "", `{}`)
			s.damaged = []string{""}
		}, "yes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			h.stages()
			role := h.role(operator, org.RoleSpec{Name: "r", Use: of("door")})
			bob, eve := identity.ByCaller("bob", role.ID), identity.ByCaller("eve", role.ID)
			h.store.put(append(h.SetCallerState(ann(role), "open"), h.SetCallerState(bob, "open")...))
			c.harm(h.store, ann(role).Key())
			h.reopen()
			h.wantSees(ann(role), "")
			h.wantSees(bob, "open", "begin", "enter")
			if c.strange == "" {
				h.wantSees(eve, "", "begin")
			} else {
				h.wantSees(eve, "")
			}
			if !strings.Contains(h.log.String(), "kind=caller") {
				t.Errorf("the log says nothing of it: %s", h.log)
			}
			for _, p := range []identity.Principal{ann(role), eve} {
				if _, err := h.ResetCaller(p); err != nil {
					t.Error(err)
				}
				h.wantSees(p, toolgroups.Undefined, "begin")
			}
		})
	}
}

// Changed tells of every move of the epoch, when what moved it is in force.
func TestChangedTellsOfEveryMove(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	for name, move := range map[string]func(){
		"a role is made":    func() { h.role(operator, org.RoleSpec{}) },
		"a role is changed": func() { h.update(role.ID, org.RoleSpec{Use: of("workspace")}) },
		"a group comes":     func() { h.register("module:x", "x", "x_tool") },
		"a process begins":  func() { h.Advance() },
		"a role is deleted": func() { h.delete(h.role(operator, org.RoleSpec{}).ID) },
	} {
		changed, same, epoch := h.Changed(), h.Changed(), h.Epoch()
		if changed != same || closed(changed) {
			t.Errorf("%s: closed before, or two channels for one wait", name)
		}
		move()
		if !closed(changed) || h.Epoch() == epoch || closed(h.Changed()) {
			t.Errorf("%s: nobody was told, or the next one at once", name)
		}
	}
	changed := h.Changed()
	_, _, _, err := h.UpdateRole(operator, role.ID, org.RoleSpec{Use: of("docs")}, true)
	if err != nil || closed(changed) {
		t.Errorf("a dry run told somebody (%v)", err)
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

// Whoever is told and looks sees what is in force: with every role that was
// changed before, no tool that was taken away.
func TestWhoIsToldSeesTheChange(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "r"})
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Go(func() {
		slot, _ := h.Resolve(ann(role))
		for {
			before := slot.View().Evaluation(toolgroups.Granted).Epoch
			changed := h.Changed()
			select {
			case <-done:
				return
			case <-changed:
			}
			if now := slot.View().Evaluation(toolgroups.Granted).Epoch; now <= before {
				t.Errorf("told of a change, but the view is of epoch %d, as before (%d)", now, before)
			}
		}
	})
	for n := range 200 {
		h.update(role.ID, org.RoleSpec{Use: []*toolgroups.Set{of("docs"), of("workspace")}[n%2]})
	}
	close(done)
	watching.Wait()
}

// Many users, known or not, bind at once while their role changes.
func TestCallersBindSideBySide(t *testing.T) {
	h := open(t)
	role := h.role(operator, org.RoleSpec{Name: "r", Use: of("docs")})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 100 {
				p := identity.ByCaller(identity.User(fmt.Sprint("u", n)), role.ID)
				if i%2 == 0 {
					p.Role = identity.RoleID(fmt.Sprint("unknown ", n, i))
				}
				slot, _ := h.Resolve(p)
				if got := len(slot.View().Names()); i%2 == 0 && got != 0 || got > 2 {
					t.Errorf("%s sees %d tools", p, got)
				}
			}
		})
	}
	for n := range 100 {
		h.update(role.ID, org.RoleSpec{Use: []*toolgroups.Set{of("docs"), of("workspace")}[n%2]})
	}
	all.Wait()
}

// A caller's tasks are those it gave in this role.
func TestATaskKnowsWhoGaveIt(t *testing.T) {
	h := open(t)
	role, other := h.role(operator, org.RoleSpec{Name: "r"}), h.role(operator, org.RoleSpec{Name: "other"})
	h.task(org.TaskSpec{Caller: ann(role)})
	h.task(org.TaskSpec{})
	tasks := h.Tasks()
	for p, want := range map[identity.Principal]bool{
		ann(role): true, ann(other): false, identity.ByCaller("bob", role.ID): false, operator: false, {}: false,
		{Kind: identity.Operator, User: "ann", Role: role.ID}: false,
	} {
		if got := tasks[0].StartedBy(p); got != want || tasks[1].StartedBy(p) {
			t.Errorf("%s gave it: %t", p, got)
		}
	}
	_, _, _, err := h.StartTask("nameless", org.TaskSpec{Caller: identity.ByCaller("", role.ID)})
	wantCode(t, err, errcode.Unauthenticated)
}
