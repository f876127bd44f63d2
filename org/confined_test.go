package org_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// market is a house with the servers magpie and uniswap, and a toolset of the
// operator's over both.
func market(t *testing.T) *house {
	h := open(t)
	h.register(toolgroups.Server("magpie"), "magpie", "tvl", "liquidity")
	h.register(toolgroups.Server("uniswap"), "uniswap", "swap")
	if _, err := h.groups.Register(toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"tvl", "swap"}}); err != nil {
		t.Fatal(err)
	}
	return h
}

func ptr[T any](v T) *T { return &v }

// gated says whether an agent answers from tools alone.
func (h *house) gated(id identity.AgentID) bool {
	slot, _ := h.Resolve(identity.ByAgent(id))
	return slot.View().ToolGated()
}

func (h *house) wantGated(want bool, ids ...identity.AgentID) {
	h.t.Helper()
	for _, id := range ids {
		if got := h.gated(id); got != want {
			h.t.Errorf("agent %s is gated: %v, want %v", id, got, want)
		}
	}
}

// A role of a server has what its groups hold of that server's, whoever
// references it, now and later, and after a restart.
func TestARoleOfAServerHasItsToolsOnly(t *testing.T) {
	tests := []struct {
		name string
		use  *toolgroups.Set
		may  []string
	}{
		{"all groups", of("*"), []string{"liquidity", "tvl"}},
		{"a toolset of the operator's", of("kit"), []string{"tvl"}},
		{"groups of both", of("uniswap", "magpie"), []string{"liquidity", "tvl"}},
		{"another server's groups", of("uniswap", "workspace", "org_management"), nil},
		{"none", of(), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := market(t)
			role := h.role(operator, org.RoleSpec{Use: tt.use, Server: ptr("magpie")})
			agent := h.spawn(h.task(org.TaskSpec{}), role.ID)
			h.wantMay(agent, tt.may...)
			h.reopen()
			h.wantMay(agent, tt.may...)
			if err := h.groups.Unregister(toolgroups.Server("magpie"), "magpie"); err != nil {
				t.Fatal(err)
			}
			h.wantMay(agent)
			h.register("mcp:thief", "magpie", "tvl", "liquidity")
			h.wantMay(agent)
		})
	}
}

// What a confined agent makes is confined with it: a role it makes, an agent of
// the operator's role that it spawns, and theirs in turn.
func TestAConfinedRoleMakesNothingStronger(t *testing.T) {
	h := market(t)
	root := h.task(org.TaskSpec{})
	boss := h.role(operator, org.RoleSpec{Name: "boss", Use: of("*"), Server: ptr("magpie"), ToolGated: ptr(true)})
	free := h.role(operator, org.RoleSpec{Name: "free", Use: of("*")})
	agent := h.spawn(root, boss.ID)
	made := h.role(identity.ByAgent(agent), org.RoleSpec{Name: "made"})
	if made.Server != "" || made.ToolGated {
		t.Errorf("the role that was made says it itself: %+v", made)
	}
	below, hired, elsewhere := h.spawn(agent, made.ID), h.spawn(agent, free.ID), h.spawn(root, made.ID)
	deeper := h.spawn(hired, free.ID)
	all := []identity.AgentID{agent, below, hired, elsewhere, deeper}
	for _, id := range all {
		h.wantMay(id, "liquidity", "tvl")
	}
	h.wantGated(true, all...)
	h.wantGated(false, root, h.spawn(root, free.ID))

	h.update(boss.ID, org.RoleSpec{Server: ptr("uniswap")})
	for _, id := range all {
		h.wantMay(id, "swap")
	}
	h.update(boss.ID, org.RoleSpec{ToolGated: ptr(false)})
	h.wantGated(false, all...)

	other := h.role(operator, org.RoleSpec{Use: of("*"), Server: ptr("magpie")})
	h.wantMay(h.spawn(agent, other.ID)) // of two servers at once there is nothing
}

// The role of a task's caller confines and gates what works for it, but root,
// who is never gated.
func TestACallersServerBoundsItsTasks(t *testing.T) {
	h := market(t)
	guest := h.role(operator, org.RoleSpec{Use: of("*"), Server: ptr("magpie"), ToolGated: ptr(true)})
	free := h.role(operator, org.RoleSpec{Name: "free", Use: of("*")})
	root := h.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID)})
	hired, bound := h.spawn(root, free.ID), h.task(org.TaskSpec{Caller: identity.ByCaller("ann", guest.ID), Role: "free"})
	for _, id := range []identity.AgentID{hired, bound} {
		h.wantMay(id, "liquidity", "tvl")
	}
	h.wantGated(true, hired, bound)
	h.wantGated(false, root)
	// what a task was given it keeps, and no more: the caller's role is freed
	h.update(guest.ID, org.RoleSpec{Server: ptr("")})
	h.wantMay(hired, "liquidity", "tvl")
	h.update(guest.ID, org.RoleSpec{Server: ptr("uniswap")})
	h.wantMay(hired)
	h.reopen()
	h.wantMay(hired)
}

// Who was gated stays so when a role goes that bounds it; whether one was that
// is lost nobody knows, so it is.
func TestAGateOutlivesTheRole(t *testing.T) {
	setUp := func(gated string) (h *house, chief, boss, made org.Role, all []identity.AgentID) {
		h = market(t)
		root := h.task(org.TaskSpec{})
		chief = h.role(operator, org.RoleSpec{Name: "chief", Use: of("*"), ToolGated: ptr(gated == "chief")})
		a := h.spawn(root, chief.ID)
		boss = h.role(identity.ByAgent(a), org.RoleSpec{Name: "boss"})
		b := h.spawn(a, boss.ID)
		made = h.role(identity.ByAgent(b), org.RoleSpec{Name: "made"})
		return h, chief, boss, made, []identity.AgentID{a, b, h.spawn(b, made.ID), h.spawn(root, made.ID)}
	}
	t.Run("any role on the way may be deleted", func(t *testing.T) {
		for i := range 3 {
			h, chief, boss, made, all := setUp("chief")
			id := []identity.RoleID{chief.ID, boss.ID, made.ID}[i]
			if _, changes, err := h.DeleteRole(operator, id, false); err != nil {
				t.Fatal(err)
			} else {
				h.store.put(changes)
			}
			h.wantGated(true, all...)
			h.reopen()
			h.wantGated(true, all...)
		}
	})
	t.Run("a role that is deleted gates nobody it did not", func(t *testing.T) {
		h, _, boss, _, all := setUp("")
		if _, _, err := h.DeleteRole(operator, boss.ID, false); err != nil {
			t.Fatal(err)
		}
		h.wantGated(false, all...)
		h.wantMay(all[2])
	})
	t.Run("a role that is lost gates all it bounds", func(t *testing.T) {
		h, _, boss, _, all := setUp("")
		h.store.damaged = append(h.store.damaged, string(boss.ID))
		h.reopen()
		h.wantGated(false, all[0])
		h.wantGated(true, all[1:]...)
	})
}

// The operator's update leaves out what stays; the configuration leaves out
// what goes. Both are part of what a role is.
func TestTheFieldsOfAConfinedRole(t *testing.T) {
	config := identity.Principal{Kind: identity.Configuration}
	spec := org.RoleSpec{Name: "a", Use: of("magpie"), Grant: of(), ToolGated: ptr(true), Server: ptr("magpie")}
	want := func(t *testing.T, r org.Role, gated bool, server string) {
		t.Helper()
		if r.ToolGated != gated || r.Server != server {
			t.Errorf("got gated %v, server %q; want %v, %q", r.ToolGated, r.Server, gated, server)
		}
	}
	t.Run("are stored", func(t *testing.T) {
		h := market(t)
		id := h.role(operator, spec).ID
		text := string(h.store.records["role "+string(id)])
		if !strings.Contains(text, `"toolGated":true`) || !strings.Contains(text, `"server":"magpie"`) {
			t.Errorf("got %s", text)
		}
		h.reopen()
		role, _ := h.Role(id)
		want(t, role, true, "magpie")
		plain, _ := json.Marshal(h.role(operator, org.RoleSpec{}))
		if strings.Contains(string(plain), "toolGated") || strings.Contains(string(plain), "server") {
			t.Errorf("a role without them has %s", plain)
		}
	})
	t.Run("stay when the operator leaves them out", func(t *testing.T) {
		h := market(t)
		id := h.role(operator, spec).ID
		h.update(id, org.RoleSpec{Prompt: "p"})
		role, _ := h.Role(id)
		want(t, role, true, "magpie")
		h.update(id, org.RoleSpec{ToolGated: ptr(false), Server: ptr("")})
		role, _ = h.Role(id)
		want(t, role, false, "")
	})
	t.Run("go when the configuration leaves them out", func(t *testing.T) {
		h := market(t)
		old := h.role(config, spec)
		if !old.Is(spec) {
			t.Errorf("%+v is not what was asked for", old)
		}
		less := spec
		less.ToolGated, less.Server = nil, nil
		if old.Is(less) {
			t.Error("it is what asks for neither")
		}
		next, _, _, err := h.UpdateRole(config, old.ID, less, false)
		if err != nil {
			t.Fatal(err)
		}
		want(t, next, false, "")
	})
	t.Run("tell roles of one name apart", func(t *testing.T) {
		h := market(t)
		h.role(operator, spec)
		h.role(operator, spec)
		for _, other := range []org.RoleSpec{{ToolGated: ptr(true)}, {Server: ptr("magpie")}, {ToolGated: ptr(true), Server: ptr("uniswap")}} {
			other.Name, other.Use, other.Grant = spec.Name, spec.Use, spec.Grant
			_, err := h.create(operator, other)
			wantCode(t, err, errcode.RoleExists)
		}
	})
	t.Run("are refused for a name that cannot be", func(t *testing.T) {
		h := market(t)
		for _, name := range []string{"a/b", "*", "a b", strings.Repeat("x", 129)} {
			_, err := h.create(operator, org.RoleSpec{Server: ptr(name)})
			wantCode(t, err, errcode.InvalidRole, "server")
		}
	})
}

// The rule that keeps a tool away is named.
func TestTheRuleNamesTheServer(t *testing.T) {
	h := market(t)
	boss := h.role(operator, org.RoleSpec{Name: "boss", Use: of("*"), Server: ptr("magpie")})
	agent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	made := h.role(identity.ByAgent(agent), org.RoleSpec{Name: "made"})
	task := h.task(org.TaskSpec{Caller: identity.ByCaller("ann", boss.ID), Role: string(h.role(operator, org.RoleSpec{}).ID)})
	swap, _ := h.groups.Snapshot().Lookup("swap")
	tvl, _ := h.groups.Snapshot().Lookup("tvl")
	const words = "the server magpie of role boss"
	for _, tt := range []struct{ who, got, want string }{
		{"the role", h.WhyRole(boss.ID, toolgroups.All(), swap), words},
		{"its own server's tool", h.WhyRole(boss.ID, toolgroups.All(), tvl), ""},
		{"a role it made", h.WhyRole(made.ID, toolgroups.All(), swap), words},
		{"its agent", h.WhyAgent(agent, swap), words},
		{"a task of the role's", h.WhyAgent(task, swap), "the server of the task's caller"},
		{"what its groups do not hold", h.WhyRole(h.role(operator, org.RoleSpec{Name: "b", Use: of(), Server: ptr("magpie")}).ID, toolgroups.All(), tvl), "the toolGroups of role b"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.who, tt.got, tt.want)
		}
	}
}
