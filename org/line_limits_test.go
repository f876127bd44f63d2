package org_test

import (
	"math"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func lineLimits(depth, hires, seconds int) org.AgentLimits {
	return org.AgentLimits{LineLimits: org.LineLimits{Depth: depth, Hires: hires, Seconds: seconds}}
}

// chain spawns agents of a role below one another until it is rejected, and returns how many.
func (f *fixture) chain(below identity.AgentID, role identity.RoleID) int {
	f.t.Helper()
	return f.spawnUntilLimited(func() error {
		child, err := f.trySpawn(below, role)
		below = child
		return err
	})
}

// The smallest depth along the line holds: of the agents above, of their roles, and of the roles
// that created these.
func TestLineLimits_Depth(t *testing.T) {
	f := newFixture(t)
	all := of(toolgroups.OrgManagement, toolgroups.Command)
	free := f.role(operator, org.RoleSpec{Name: "free", Use: all, Grant: all})
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: all, Grant: all, Limits: lineLimits(3, 0, 0)})
	root := f.task(org.TaskSpec{})
	boss := f.spawn(root, lead.ID)
	if n := f.chain(boss, free.ID); n != 3 {
		t.Errorf("%d levels below an agent of lead, want 3", n)
	}
	wide := f.role(identity.ByAgent(boss), org.RoleSpec{Name: "wide", Use: all, Grant: all, Limits: lineLimits(9, 0, 0)})
	if n := f.chain(boss, wide.ID); n != 3 {
		t.Errorf("%d levels of a role that lead has created, want 3", n)
	}
	narrow := f.role(identity.ByAgent(boss), org.RoleSpec{Name: "narrow", Use: all, Grant: all, Limits: lineLimits(1, 0, 0)})
	if n := f.chain(f.spawn(boss, narrow.ID), free.ID); n != 1 {
		t.Errorf("%d levels below an agent of narrow, want 1", n)
	}
	f.reopen()
	f.update(lead.ID, org.RoleSpec{Limits: lineLimits(1, 0, 0)})
	if n := f.chain(f.spawn(boss, free.ID), free.ID); n != 0 {
		t.Errorf("%d levels more after the limit has become smaller, want 0", n)
	}
}

// The smallest number of hires along the line holds, also for the agents of roles that lead created.
func TestLineLimits_Hires(t *testing.T) {
	f := newFixture(t)
	all := of(toolgroups.OrgManagement, toolgroups.Command)
	free := f.role(operator, org.RoleSpec{Name: "free", Use: all, Grant: all})
	lead := f.role(operator, org.RoleSpec{Name: "lead", Use: all, Grant: all, Limits: lineLimits(0, 5, 0)})
	root := f.task(org.TaskSpec{})
	boss := f.spawn(root, lead.ID)
	wide := f.role(identity.ByAgent(boss), org.RoleSpec{Name: "wide", Use: all, Grant: all, Limits: lineLimits(0, 9, 0)})
	narrow := f.role(identity.ByAgent(boss), org.RoleSpec{Name: "narrow", Use: all, Grant: all, Limits: lineLimits(0, 2, 0)})
	for agent, want := range map[identity.AgentID]int{
		root: 0, boss: 5, f.spawn(boss, free.ID): 5, f.spawn(boss, wide.ID): 5, f.spawn(root, wide.ID): 5, f.spawn(f.spawn(boss, narrow.ID), free.ID): 2, f.spawn(root, free.ID): 0,
	} {
		if n := f.HiresOf(agent); n != want {
			t.Errorf("agent %s may spawn %d, want %d", agent, n, want)
		}
	}
}

// A task that begins in a role has the shorter of its time and that of the role and its creators.
func TestLineLimits_Time(t *testing.T) {
	f := newFixture(t)
	f.role(operator, org.RoleSpec{Name: "brief", Use: of(), Limits: lineLimits(0, 0, 60)})
	for asked, want := range map[time.Duration]time.Duration{0: time.Minute, time.Hour: time.Minute, time.Second: time.Second} {
		task := f.storedTask(f.task(org.TaskSpec{Role: "brief", Timeout: asked}))
		if task.Timeout != want || !task.Deadline.Equal(task.CreatedAt.Add(want)) {
			t.Errorf("timeout %s: %s until %s, want %s", asked, task.Timeout, task.Deadline, want)
		}
	}
}

// The limits of a caller's role, and of the role that bounds its tasks, hold for its tasks as for
// agents below one of these roles, also after a restart. Tasks of others have none of them.
func TestLineLimits_OfCaller(t *testing.T) {
	f := newFixture(t)
	all := of(toolgroups.OrgManagement, toolgroups.Command)
	free := f.role(operator, org.RoleSpec{Name: "free", Use: all, Grant: all})
	bound := f.role(operator, org.RoleSpec{Name: "bound", Use: all, Grant: all, Limits: lineLimits(2, 4, 60)})
	f.role(operator, org.RoleSpec{Name: "wide", Use: all, Grant: all, Limits: lineLimits(9, 9, 90)})
	guest := f.role(operator, org.RoleSpec{Name: "guest", Use: all, Grant: all, TasksAs: ptr("bound")})
	for name, c := range map[string]struct {
		spec org.TaskSpec
		want org.LineLimits // Depth is that of the agents below the first one
	}{
		"the role":             {org.TaskSpec{Caller: identity.ByCaller("ann", bound.ID)}, org.LineLimits{Depth: 1, Hires: 4, Seconds: 60}},
		"the role of tasks.as": {org.TaskSpec{Caller: identity.ByCaller("bob", guest.ID)}, org.LineLimits{Depth: 1, Hires: 4, Seconds: 60}},
		"the first agent":      {org.TaskSpec{Caller: identity.ByCaller("ann", bound.ID), Role: "wide"}, org.LineLimits{Depth: 1, Hires: 4, Seconds: 60}},
		"another caller":       {org.TaskSpec{Caller: identity.ByCaller("eve", free.ID)}, org.LineLimits{Depth: 3}},
	} {
		top := f.task(c.spec)
		f.reopen()
		if n := f.HiresOf(top); n != c.want.Hires {
			t.Errorf("%s: the first agent may spawn %d, want %d", name, n, c.want.Hires)
		}
		if seconds := int(f.storedTask(top).Timeout / time.Second); seconds != c.want.Seconds {
			t.Errorf("%s: the task has %d seconds, want %d", name, seconds, c.want.Seconds)
		}
		below, levels := top, 0
		for levels < 3 {
			child, err := f.trySpawn(below, free.ID)
			if err != nil {
				break
			}
			below = child
			levels++
		}
		if levels != c.want.Depth {
			t.Errorf("%s: %d levels below the first agent, want %d", name, levels, c.want.Depth)
		}
	}
}

// A limit that is no count is rejected.
func TestLineLimits_Invalid(t *testing.T) {
	f := newFixture(t)
	tooMany := math.MaxInt32
	tooMany++ // negative where int has 32 bits
	for _, bad := range []org.AgentLimits{lineLimits(-1, 0, 0), lineLimits(0, -1, 0), lineLimits(0, 0, -1), lineLimits(tooMany, 0, 0)} {
		if _, err := f.create(operator, org.RoleSpec{Name: "bad", Use: of(), Limits: bad}); errcode.CodeOf(err) != errcode.InvalidRole {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
