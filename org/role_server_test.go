package org_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// newServerFixture returns a fixture with the servers magpie and uniswap, and with a
// toolset of the configuration that has tools of both.
func newServerFixture(t *testing.T) *fixture {
	f := newFixture(t)
	f.register(toolgroups.ServerOwner("magpie"), "magpie", "tvl", "liquidity")
	f.register(toolgroups.ServerOwner("uniswap"), "uniswap", "swap")
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"tvl", "swap"}}); err != nil {
		t.Fatal(err)
	}
	return f
}

func ptr[T any](v T) *T { return &v }

// toolGated reports whether an agent is tool-gated.
func (f *fixture) toolGated(id identity.AgentID) bool {
	ref, _ := f.ResolveView(identity.ByAgent(id))
	return ref.CurrentView().Gating() != toolgroups.NotGated
}

func (f *fixture) wantToolGated(want bool, ids ...identity.AgentID) {
	f.t.Helper()
	for _, id := range ids {
		if got := f.toolGated(id); got != want {
			f.t.Errorf("agent %s is tool-gated: %v, want %v", id, got, want)
		}
	}
}

// A role with a server has the tools of that server that are in its groups, through
// whatever group, also after a restart. Tools of a new owner are not among them.
func TestRole_ServerRestrictsTools(t *testing.T) {
	tests := []struct {
		name string
		use  *toolgroups.GroupSet
		may  []string
	}{
		{"all groups", of("*"), []string{"liquidity", "tvl"}},
		{"toolset of the configuration", of("kit"), []string{"tvl"}},
		{"groups of both servers", of("uniswap", "magpie"), []string{"liquidity", "tvl"}},
		{"groups of other owners", of("uniswap", "workspace", "org_management"), nil},
		{"no groups", of(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newServerFixture(t)
			role := f.role(operator, org.RoleSpec{Use: tt.use, Server: ptr("magpie")})
			agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
			f.wantTools(agent, tt.may...)
			f.reopen()
			f.wantTools(agent, tt.may...)
			if err := grouptest.UnregisterGroup(f.groups, toolgroups.ServerOwner("magpie"), "magpie"); err != nil {
				t.Fatal(err)
			}
			f.wantTools(agent)
			f.register("mcp:thief", "magpie", "tvl", "liquidity")
			f.wantTools(agent)
		})
	}
}

// The restrictions of a role also apply to the roles that its agents create, to the agents
// that they spawn, and to the descendants of those.
func TestRole_ServerRestrictsDescendants(t *testing.T) {
	f := newServerFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("*"), Server: ptr("magpie"), ToolGated: ptr(toolgroups.Gated)})
	free := f.role(operator, org.RoleSpec{Name: "free", Use: of("*")})
	agent := f.spawn(root, boss.ID)
	made := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "made"})
	if made.Server != "" || made.ToolGated != toolgroups.NotGated {
		t.Errorf("the restrictions are stored in the created role: %+v", made)
	}
	below, hired, elsewhere := f.spawn(agent, made.ID), f.spawn(agent, free.ID), f.spawn(root, made.ID)
	deeper := f.spawn(hired, free.ID)
	all := []identity.AgentID{agent, below, hired, elsewhere, deeper}
	for _, id := range all {
		f.wantTools(id, "liquidity", "tvl")
	}
	f.wantToolGated(true, all...)
	f.wantToolGated(false, root, f.spawn(root, free.ID))

	f.update(boss.ID, org.RoleSpec{Server: ptr("uniswap")})
	for _, id := range all {
		f.wantTools(id, "swap")
	}
	f.update(boss.ID, org.RoleSpec{ToolGated: ptr(toolgroups.NotGated)})
	f.wantToolGated(false, all...)

	other := f.role(operator, org.RoleSpec{Use: of("*"), Server: ptr("magpie")})
	f.wantTools(f.spawn(agent, other.ID)) // no tool belongs to two servers
}

// The role of a task's caller restricts the agents of the task and makes them tool-gated.
// Root is never tool-gated.
func TestTask_CallerServerRestricts(t *testing.T) {
	f := newServerFixture(t)
	guest := f.role(operator, org.RoleSpec{Use: of("*"), Server: ptr("magpie"), ToolGated: ptr(toolgroups.Gated)})
	free := f.role(operator, org.RoleSpec{Name: "free", Use: of("*")})
	root := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID)})
	hired, bound := f.spawn(root, free.ID), f.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: "free"})
	for _, id := range []identity.AgentID{hired, bound} {
		f.wantTools(id, "liquidity", "tvl")
	}
	f.wantToolGated(true, hired, bound)
	f.wantToolGated(false, root)
	// The task keeps the ceiling that it started with when the caller's role gains tools.
	f.update(guest.ID, org.RoleSpec{Server: ptr("")})
	f.wantTools(hired, "liquidity", "tvl")
	f.update(guest.ID, org.RoleSpec{Server: ptr("uniswap")})
	f.wantTools(hired)
	f.reopen()
	f.wantTools(hired)
}

// gatingIf returns Gated if gated is set.
func gatingIf(gated bool) toolgroups.Gating {
	if gated {
		return toolgroups.Gated
	}
	return toolgroups.NotGated
}

// Agents stay tool-gated when the role that makes them so is deleted. A role whose record
// is lost may have been tool-gated, so the agents that it limits are.
func TestRole_ToolGatedSurvivesDeletion(t *testing.T) {
	setUp := func(gated string) (f *fixture, chief, boss, made org.Role, all []identity.AgentID) {
		f = newServerFixture(t)
		root := f.task(org.TaskSpec{})
		chief = f.role(operator, org.RoleSpec{Name: "chief", Use: of("*"), ToolGated: ptr(gatingIf(gated == "chief"))})
		a := f.spawn(root, chief.ID)
		boss = f.role(identity.ByAgent(a), org.RoleSpec{Name: "boss"})
		b := f.spawn(a, boss.ID)
		made = f.role(identity.ByAgent(b), org.RoleSpec{Name: "made"})
		return f, chief, boss, made, []identity.AgentID{a, b, f.spawn(b, made.ID), f.spawn(root, made.ID)}
	}
	t.Run("any of the roles deleted", func(t *testing.T) {
		for i := range 3 {
			f, chief, boss, made, all := setUp("chief")
			id := []identity.RoleID{chief.ID, boss.ID, made.ID}[i]
			if _, changes, err := f.DeleteRole(operator, id, false); err != nil {
				t.Fatal(err)
			} else {
				f.store.put(changes)
			}
			f.wantToolGated(true, all...)
			f.reopen()
			f.wantToolGated(true, all...)
		}
	})
	t.Run("role that was not tool-gated deleted", func(t *testing.T) {
		f, _, boss, _, all := setUp("")
		if _, _, err := f.DeleteRole(operator, boss.ID, false); err != nil {
			t.Fatal(err)
		}
		f.wantToolGated(false, all...)
		f.wantTools(all[2])
	})
	t.Run("record lost", func(t *testing.T) {
		f, _, boss, _, all := setUp("")
		f.store.damaged = append(f.store.damaged, string(boss.ID))
		f.reopen()
		f.wantToolGated(false, all[0])
		f.wantToolGated(true, all[1:]...)
	})
}

// Server and ToolGated are stored. In an update by the operator nil keeps them, in one by
// the configuration nil clears them.
func TestRole_ServerAndToolGatedFields(t *testing.T) {
	config := identity.Principal{Kind: identity.Configuration}
	spec := org.RoleSpec{Name: "a", Use: of("magpie"), Grant: of(), ToolGated: ptr(toolgroups.Gated), Server: ptr("magpie")}
	want := func(t *testing.T, r org.Role, gated bool, server string) {
		t.Helper()
		if r.ToolGated != gatingIf(gated) || r.Server != server {
			t.Errorf("got gated %v, server %q; want %v, %q", r.ToolGated, r.Server, gated, server)
		}
	}
	t.Run("stored", func(t *testing.T) {
		f := newServerFixture(t)
		id := f.role(operator, spec).ID
		text := string(f.store.records["role "+string(id)])
		if !strings.Contains(text, `"toolGated":true`) || !strings.Contains(text, `"server":"magpie"`) {
			t.Errorf("got %s", text)
		}
		f.reopen()
		role, _ := f.RoleByID(id)
		want(t, role, true, "magpie")
		plain, _ := json.Marshal(f.role(operator, org.RoleSpec{}))
		if strings.Contains(string(plain), "toolGated") || strings.Contains(string(plain), "server") {
			t.Errorf("a role without them has %s", plain)
		}
	})
	t.Run("nil from the operator", func(t *testing.T) {
		f := newServerFixture(t)
		id := f.role(operator, spec).ID
		f.update(id, org.RoleSpec{Prompt: "p"})
		role, _ := f.RoleByID(id)
		want(t, role, true, "magpie")
		f.update(id, org.RoleSpec{ToolGated: ptr(toolgroups.NotGated), Server: ptr("")})
		role, _ = f.RoleByID(id)
		want(t, role, false, "")
	})
	t.Run("nil from the configuration", func(t *testing.T) {
		f := newServerFixture(t)
		old := f.role(config, spec)
		if !old.MatchesSpec(spec) {
			t.Errorf("%+v does not match its specification", old)
		}
		less := spec
		less.ToolGated, less.Server = nil, nil
		if old.MatchesSpec(less) {
			t.Error("it matches a specification without the fields")
		}
		next, _, _, err := f.UpdateRole(config, old.ID, less, false)
		if err != nil {
			t.Fatal(err)
		}
		want(t, next, false, "")
	})
	t.Run("roles of one name differ", func(t *testing.T) {
		f := newServerFixture(t)
		f.role(operator, spec)
		f.role(operator, spec)
		for _, other := range []org.RoleSpec{{ToolGated: ptr(toolgroups.Gated)}, {Server: ptr("magpie")}, {ToolGated: ptr(toolgroups.Gated), Server: ptr("uniswap")}} {
			other.Name, other.Use, other.Grant = spec.Name, spec.Use, spec.Grant
			_, err := f.create(operator, other)
			wantCode(t, err, errcode.RoleExists)
		}
	})
	t.Run("invalid server", func(t *testing.T) {
		f := newServerFixture(t)
		for _, name := range []string{"a/b", "*", "a b", strings.Repeat("x", 129)} {
			_, err := f.create(operator, org.RoleSpec{Server: ptr(name)})
			wantCode(t, err, errcode.InvalidRole, "server")
		}
	})
}

// WhyRole and WhyAgent name the server that denies a tool.
func TestWhyRole_NamesServer(t *testing.T) {
	f := newServerFixture(t)
	boss := f.role(operator, org.RoleSpec{Name: "boss", Use: of("*"), Server: ptr("magpie")})
	agent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	made := f.role(identity.ByAgent(agent), org.RoleSpec{Name: "made"})
	task := f.task(org.TaskSpec{Caller: identity.ByCaller("ann", boss.ID), Role: string(f.role(operator, org.RoleSpec{}).ID)})
	swap, _ := f.groups.CurrentSnapshot().LookupTool("swap")
	tvl, _ := f.groups.CurrentSnapshot().LookupTool("tvl")
	const words = "the server magpie of role boss"
	for _, tt := range []struct{ name, got, want string }{
		{"role", f.WhyRole(boss.ID, toolgroups.AllGroups(), swap), words},
		{"tool of its own server", f.WhyRole(boss.ID, toolgroups.AllGroups(), tvl), ""},
		{"created role", f.WhyRole(made.ID, toolgroups.AllGroups(), swap), words},
		{"agent", f.WhyAgent(agent, swap), words},
		{"task of a caller in the role", f.WhyAgent(task, swap), "the server of the task's caller (caller ann in role boss)"},
		{"tool of no group of the role", f.WhyRole(f.role(operator, org.RoleSpec{Name: "b", Use: of(), Server: ptr("magpie")}).ID, toolgroups.AllGroups(), tvl), "the toolGroups of role b"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}
