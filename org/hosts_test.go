package org_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
)

func allow(patterns ...string) *hosts.Rule {
	return &hosts.Rule{Allow: hosts.MustPatterns(patterns...)}
}

// reaches says which of four hosts somebody may reach.
func (h *house) reaches(p identity.Principal) string {
	h.t.Helper()
	var list []string
	for _, name := range []string{"a.x", "b.x", "c.x", "d.y"} {
		err := h.MayReach(p, hosts.Host{Name: name, Port: 443})
		if err != nil {
			wantCode(h.t, err, errcode.HostBlocked, name)
			continue
		}
		list = append(list, name[:1])
	}
	return strings.Join(list, "")
}

func (h *house) wantReach(id identity.AgentID, want string) {
	h.t.Helper()
	if got := h.reaches(identity.ByAgent(id)); got != want {
		h.t.Errorf("%s reaches %q, want %q", id, got, want)
	}
}

func TestARoleWithoutHostsReachesAll(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(identity.ByAgent(root), org.RoleSpec{})
	h.wantReach(h.spawn(root, role.ID), "abcd")
	if role.Hosts != nil {
		t.Errorf("got %v, want a record without hosts", role.Hosts)
	}
}

func TestAgentsReachWhatTheirRoleAllows(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Hosts: &hosts.Rule{Allow: hosts.MustPatterns("*.x"), Deny: hosts.MustPatterns("b.x")}})
	agent := h.spawn(root, role.ID)
	h.wantReach(agent, "ac")
	h.wantReach(h.spawn(root, h.role(operator, org.RoleSpec{Hosts: &hosts.Rule{}}).ID), "")
	h.reopen()
	h.wantReach(agent, "ac")
}

func TestRootReachesNothing(t *testing.T) {
	h := open(t)
	h.wantReach(h.task(org.TaskSpec{}), "")
}

func TestNobodyReachesAnything(t *testing.T) {
	h := open(t)
	for _, p := range []identity.Principal{{}, {Kind: 99}, {Kind: identity.Configuration}, identity.ByAgent("nobody"), identity.ByCaller("u", "no role")} {
		if got := h.reaches(p); got != "" {
			t.Errorf("%s reaches %q", p, got)
		}
	}
	if got := h.reaches(operator); got != "abcd" {
		t.Errorf("the operator reaches %q, want all", got)
	}
}

// A role is never worth more than its makers are now.
func TestARoleReachesNoMoreThanItsMakers(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	boss := h.role(operator, org.RoleSpec{Hosts: allow("*.x")})
	lead := h.role(identity.ByAgent(h.spawn(root, boss.ID)), org.RoleSpec{})
	made := h.role(identity.ByAgent(h.spawn(root, lead.ID)), org.RoleSpec{Hosts: allow("a.x", "d.y")})
	agent := h.spawn(root, made.ID) // below root, not below its makers
	h.wantReach(agent, "a")
	h.update(lead.ID, org.RoleSpec{Hosts: allow("b.x")})
	h.wantReach(agent, "")
	h.update(lead.ID, org.RoleSpec{Hosts: allow("*")})
	h.wantReach(agent, "a")
	h.update(boss.ID, org.RoleSpec{Hosts: allow("d.y")})
	h.wantReach(agent, "d")
	if _, _, err := h.DeleteRole(operator, lead.ID, false); err != nil {
		t.Fatal(err)
	}
	h.wantReach(agent, "")
}

func TestAnAgentReachesNoMoreThanItsParents(t *testing.T) {
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Hosts: allow("a.x", "b.x")})
	free := h.role(operator, org.RoleSpec{})
	parent := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	child := h.spawn(h.spawn(parent, free.ID), free.ID)
	h.wantReach(child, "ab")
	h.update(boss.ID, org.RoleSpec{Hosts: allow("b.x")})
	h.wantReach(child, "b")
	h.wantReach(h.spawn(h.task(org.TaskSpec{}), free.ID), "abcd")
}

func TestATaskReachesNoMoreThanItsCaller(t *testing.T) {
	h := open(t)
	guest := h.role(operator, org.RoleSpec{Hosts: allow("a.x", "b.x")})
	caller := identity.ByCaller("ann", guest.ID)
	free := h.role(operator, org.RoleSpec{})
	agent := h.spawn(h.task(org.TaskSpec{Caller: caller}), free.ID)
	other := h.spawn(h.task(org.TaskSpec{}), free.ID)
	for _, step := range []struct {
		rule *hosts.Rule
		want string
	}{{allow("a.x", "b.x"), "ab"}, {allow("b.x"), "b"}, {allow("*"), "ab"}} { // what the task began with bounds it too
		h.update(guest.ID, org.RoleSpec{Hosts: step.rule})
		h.wantReach(agent, step.want)
		h.wantReach(other, "abcd")
	}
	h.reopen()
	h.wantReach(agent, "ab")
	if got := h.reaches(caller); got != "abcd" {
		t.Errorf("the caller reaches %q, want all", got)
	}
}

// An agent that starts a task, if one ever may, gives it no more than it has.
func TestATaskOfAnAgentReachesNoMoreThanTheAgent(t *testing.T) {
	h := open(t)
	boss := h.role(operator, org.RoleSpec{Hosts: allow("a.x")})
	starter := h.spawn(h.task(org.TaskSpec{}), boss.ID)
	free := h.role(operator, org.RoleSpec{})
	agent := h.spawn(h.task(org.TaskSpec{Caller: identity.ByAgent(starter)}), free.ID)
	h.wantReach(agent, "a")
	h.reopen()
	h.wantReach(agent, "a")
}

func TestABlockedHostSaysWhatIsAllowed(t *testing.T) {
	h := open(t)
	root := h.task(org.TaskSpec{})
	agent := h.spawn(root, h.role(operator, org.RoleSpec{Hosts: allow("*.x")}).ID)
	err := h.MayReach(identity.ByAgent(agent), hosts.Host{Name: "evil.example", Port: 8443})
	wantCode(t, err, errcode.HostBlocked, "evil.example:8443")
	details, _ := json.Marshal(err.(*errcode.Error).Details)
	if got, want := string(details), `{"allowed":["*.x"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAMalformedHostInARecordDenies(t *testing.T) {
	for name, field := range map[string]string{
		"a pattern nobody can read": `"hosts":{"allow":["http://a.x"]}`,
		"a list that is text":       `"hosts":{"allow":"*"}`,
		"a rule that is text":       `"hosts":"*"`,
		"a rule without allow":      `"hosts":{}`,
		"a rule that allows null":   `"hosts":{"allow":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			role := h.role(operator, org.RoleSpec{})
			agent := h.spawn(h.task(org.TaskSpec{}), role.ID)
			record := string(h.store.records["role "+string(role.ID)])
			h.store.set("role", string(role.ID), strings.TrimSuffix(record, "}")+","+field+"}")
			h.reopen()
			h.wantReach(agent, "")
		})
	}
}

func TestHostsBelongToWhatARoleIs(t *testing.T) {
	h := open(t)
	byConfig := identity.Principal{Kind: identity.Configuration}
	spec := org.RoleSpec{Name: "scout", Use: of(), Grant: of(), Hosts: allow("*.x")}
	role := h.role(byConfig, spec)
	if !role.Is(spec) || role.Is(org.RoleSpec{Name: "scout", Use: of(), Grant: of()}) {
		t.Error("Is does not look at hosts")
	}
	if again := h.role(byConfig, spec); again.ID != role.ID {
		t.Errorf("the same specification made %s beside %s", again.ID, role.ID)
	}
	spec.Hosts.Allow[0].Name = "*"
	if got, _ := h.Role(role.ID); got.Hosts.Allow[0].Name != "*.x" {
		t.Error("the role shares the specification's list")
	}
	_, err := h.create(byConfig, org.RoleSpec{Name: "scout", Use: of(), Grant: of()})
	wantCode(t, err, errcode.RoleExists)

	update := func(by identity.Principal, id identity.RoleID, spec org.RoleSpec) *hosts.Rule {
		next, _, changes, err := h.UpdateRole(by, id, spec, false)
		if err != nil {
			t.Fatal(err)
		}
		h.store.put(changes)
		return next.Hosts
	}
	if got := update(byConfig, role.ID, org.RoleSpec{Prompt: "p", Use: of(), Grant: of()}); got != nil {
		t.Errorf("a configuration without hosts left %v", got)
	}
	own := h.role(operator, org.RoleSpec{Hosts: allow("a.x")})
	if got := update(operator, own.ID, org.RoleSpec{Prompt: "p"}); got == nil || !got.Equal(*allow("a.x")) {
		t.Errorf("an update that says nothing of hosts left %v", got)
	}
	any := hosts.Any()
	if got := update(operator, own.ID, org.RoleSpec{Hosts: &any}); got != nil {
		t.Errorf("an update to any left %v", got)
	}
}

func TestAChangeOfHostsIsInTheDiffOfThoseWhoMakeRequests(t *testing.T) {
	h := open(t)
	h.register(toolgroups.Builtin, toolgroups.Network, "http_request")
	root := h.task(org.TaskSpec{})
	role := h.role(operator, org.RoleSpec{Name: "scout", Use: of("network", "org_management"), Grant: of("network", "docs")})
	scout := h.spawn(root, role.ID)
	below := h.spawn(scout, h.role(operator, org.RoleSpec{Name: "child", Use: of("network"), Hosts: allow("a.x")}).ID)
	h.spawn(scout, h.role(operator, org.RoleSpec{Name: "reader", Use: of("docs")}).ID)
	entry := func(id identity.AgentID, name string, rules ...hosts.Rule) org.AgentDiff {
		return org.AgentDiff{Agent: id, Role: name, Gains: []string{}, Loses: []string{}, Hosts: rules}
	}
	for _, step := range []struct {
		name string
		rule *hosts.Rule
		want org.Diff
	}{
		{"narrowed", allow("*.x"), org.Diff{entry(scout, "scout", *allow("*.x")), entry(below, "child", *allow("*.x"), *allow("a.x"))}},
		{"as it was", allow("*.x"), org.Diff{}},
		{"freed", allow("*"), org.Diff{entry(scout, "scout", hosts.Any()), entry(below, "child", *allow("a.x"))}},
	} {
		_, planned, _, err := h.UpdateRole(operator, role.ID, org.RoleSpec{Hosts: step.rule}, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(planned, step.want); diff != "" {
			t.Errorf("%s, dry, got before want:\n%s", step.name, diff)
		}
		if diff := cmp.Diff(h.update(role.ID, org.RoleSpec{Hosts: step.rule}), step.want); diff != "" {
			t.Errorf("%s, got before want:\n%s", step.name, diff)
		}
	}
}
