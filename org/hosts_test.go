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

func allow(patterns ...string) *hosts.HostRule {
	return &hosts.HostRule{Allow: hosts.MustPatterns(patterns...)}
}

// reachable returns which of the hosts a.x, b.x, c.x and d.y p may reach, as letters.
func (f *fixture) reachable(p identity.Principal) string {
	f.t.Helper()
	var list []string
	for _, name := range []string{"a.x", "b.x", "c.x", "d.y"} {
		err := f.MayReach(p, hosts.Host{Name: name, Port: 443})
		if err != nil {
			wantCode(f.t, err, errcode.HostBlocked, name)
			continue
		}
		list = append(list, name[:1])
	}
	return strings.Join(list, "")
}

func (f *fixture) wantReach(id identity.AgentID, want string) {
	f.t.Helper()
	if got := f.reachable(identity.ByAgent(id)); got != want {
		f.t.Errorf("%s reaches %q, want %q", id, got, want)
	}
}

func TestMayReach_RoleWithoutHosts(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(identity.ByAgent(root), org.RoleSpec{})
	f.wantReach(f.spawn(root, role.ID), "abcd")
	if role.Hosts != nil {
		t.Errorf("got %v, want a record without hosts", role.Hosts)
	}
}

func TestMayReach_RoleHosts(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Hosts: &hosts.HostRule{Allow: hosts.MustPatterns("*.x"), Deny: hosts.MustPatterns("b.x")}})
	agent := f.spawn(root, role.ID)
	f.wantReach(agent, "ac")
	f.wantReach(f.spawn(root, f.role(operator, org.RoleSpec{Hosts: &hosts.HostRule{}}).ID), "")
	f.reopen()
	f.wantReach(agent, "ac")
}

func TestMayReach_Root(t *testing.T) {
	f := newFixture(t)
	f.wantReach(f.task(org.TaskSpec{}), "")
}

func TestMayReach_UnknownPrincipals(t *testing.T) {
	f := newFixture(t)
	for _, p := range []identity.Principal{{}, {Kind: 99}, {Kind: identity.Configuration}, identity.ByAgent("nobody"), identity.ByCaller("u", "no role")} {
		if got := f.reachable(p); got != "" {
			t.Errorf("%s reaches %q", p, got)
		}
	}
	if got := f.reachable(operator); got != "abcd" {
		t.Errorf("the operator reaches %q, want all", got)
	}
}

// A role may reach no more than its creators may reach now.
func TestMayReach_LimitedByCreators(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.role(operator, org.RoleSpec{Hosts: allow("*.x")})
	lead := f.role(identity.ByAgent(f.spawn(root, boss.ID)), org.RoleSpec{})
	made := f.role(identity.ByAgent(f.spawn(root, lead.ID)), org.RoleSpec{Hosts: allow("a.x", "d.y")})
	agent := f.spawn(root, made.ID) // below root, not below its creators
	f.wantReach(agent, "a")
	f.update(lead.ID, org.RoleSpec{Hosts: allow("b.x")})
	f.wantReach(agent, "")
	f.update(lead.ID, org.RoleSpec{Hosts: allow("*")})
	f.wantReach(agent, "a")
	f.update(boss.ID, org.RoleSpec{Hosts: allow("d.y")})
	f.wantReach(agent, "d")
	if _, _, err := f.DeleteRole(operator, lead.ID, false); err != nil {
		t.Fatal(err)
	}
	f.wantReach(agent, "")
}

func TestMayReach_LimitedByParents(t *testing.T) {
	f := newFixture(t)
	boss := f.role(operator, org.RoleSpec{Hosts: allow("a.x", "b.x")})
	free := f.role(operator, org.RoleSpec{})
	parent := f.spawn(f.task(org.TaskSpec{}), boss.ID)
	child := f.spawn(f.spawn(parent, free.ID), free.ID)
	f.wantReach(child, "ab")
	f.update(boss.ID, org.RoleSpec{Hosts: allow("b.x")})
	f.wantReach(child, "b")
	f.wantReach(f.spawn(f.task(org.TaskSpec{}), free.ID), "abcd")
}

func TestMayReach_LimitedByCaller(t *testing.T) {
	f := newFixture(t)
	guest := f.role(operator, org.RoleSpec{Hosts: allow("a.x", "b.x")})
	caller := identity.ByCaller("ann", guest.ID)
	free := f.role(operator, org.RoleSpec{})
	agent := f.spawn(f.task(org.TaskSpec{Caller: caller}), free.ID)
	other := f.spawn(f.task(org.TaskSpec{}), free.ID)
	for _, step := range []struct {
		rule *hosts.HostRule
		want string
	}{{allow("a.x", "b.x"), "ab"}, {allow("b.x"), "b"}, {allow("*"), "ab"}} { // the hosts at the start of the task limit it too
		f.update(guest.ID, org.RoleSpec{Hosts: step.rule})
		f.wantReach(agent, step.want)
		f.wantReach(other, "abcd")
	}
	f.reopen()
	f.wantReach(agent, "ab")
	if got := f.reachable(caller); got != "abcd" {
		t.Errorf("the caller reaches %q, want all", got)
	}
}

func TestMayReach_ErrorListsAllowedHosts(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{})
	agent := f.spawn(root, f.role(operator, org.RoleSpec{Hosts: allow("*.x")}).ID)
	err := f.MayReach(identity.ByAgent(agent), hosts.Host{Name: "evil.example", Port: 8443})
	wantCode(t, err, errcode.HostBlocked, "evil.example:8443")
	details, _ := json.Marshal(err.(*errcode.Error).Details)
	if got, want := string(details), `{"allowed":["*.x"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestMayReach_MalformedRecordDenies(t *testing.T) {
	for name, field := range map[string]string{
		"malformed pattern":  `"hosts":{"allow":["http://a.x"]}`,
		"string for a list":  `"hosts":{"allow":"*"}`,
		"string for a rule":  `"hosts":"*"`,
		"rule without allow": `"hosts":{}`,
		"null for allow":     `"hosts":{"allow":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			role := f.role(operator, org.RoleSpec{})
			agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
			record := string(f.store.records["role "+string(role.ID)])
			f.store.set("role", string(role.ID), strings.TrimSuffix(record, "}")+","+field+"}")
			f.reopen()
			f.wantReach(agent, "")
		})
	}
}

func TestRole_HostsField(t *testing.T) {
	f := newFixture(t)
	byConfig := identity.Principal{Kind: identity.Configuration}
	spec := org.RoleSpec{Name: "scout", Use: of(), Grant: of(), Hosts: allow("*.x")}
	role := f.role(byConfig, spec)
	if !role.MatchesSpec(spec) || role.MatchesSpec(org.RoleSpec{Name: "scout", Use: of(), Grant: of()}) {
		t.Error("Matches does not compare hosts")
	}
	if again := f.role(byConfig, spec); again.ID != role.ID {
		t.Errorf("the same specification created %s in addition to %s", again.ID, role.ID)
	}
	spec.Hosts.Allow[0].Name = "*"
	if got, _ := f.RoleByID(role.ID); got.Hosts.Allow[0].Name != "*.x" {
		t.Error("the role shares the list of the specification")
	}
	_, err := f.create(byConfig, org.RoleSpec{Name: "scout", Use: of(), Grant: of()})
	wantCode(t, err, errcode.RoleExists)

	update := func(by identity.Principal, id identity.RoleID, spec org.RoleSpec) *hosts.HostRule {
		next, _, changes, err := f.UpdateRole(by, id, spec, false)
		if err != nil {
			t.Fatal(err)
		}
		f.store.put(changes)
		return next.Hosts
	}
	if got := update(byConfig, role.ID, org.RoleSpec{Prompt: "p", Use: of(), Grant: of()}); got != nil {
		t.Errorf("a configuration without hosts left %v", got)
	}
	own := f.role(operator, org.RoleSpec{Hosts: allow("a.x")})
	if got := update(operator, own.ID, org.RoleSpec{Prompt: "p"}); got == nil || !got.Equal(*allow("a.x")) {
		t.Errorf("an update without hosts left %v", got)
	}
	any := hosts.AnyHost()
	if got := update(operator, own.ID, org.RoleSpec{Hosts: &any}); got != nil {
		t.Errorf("an update to any left %v", got)
	}
}

func TestUpdateRole_DiffReportsHosts(t *testing.T) {
	f := newFixture(t)
	f.register(toolgroups.Builtin, toolgroups.Network, "http_request")
	root := f.task(org.TaskSpec{})
	role := f.role(operator, org.RoleSpec{Name: "scout", Use: of("network", "org_management"), Grant: of("network", "docs")})
	scout := f.spawn(root, role.ID)
	below := f.spawn(scout, f.role(operator, org.RoleSpec{Name: "child", Use: of("network"), Hosts: allow("a.x")}).ID)
	f.spawn(scout, f.role(operator, org.RoleSpec{Name: "reader", Use: of("docs")}).ID)
	entry := func(id identity.AgentID, name string, rules ...hosts.HostRule) org.AgentDiff {
		return org.AgentDiff{Agent: id, Role: name, AccessChange: org.AccessChange{Gains: []string{}, Loses: []string{}, Hosts: rules}}
	}
	for _, step := range []struct {
		name string
		rule *hosts.HostRule
		want []org.AgentDiff
	}{
		{"narrowed", allow("*.x"), []org.AgentDiff{entry(scout, "scout", *allow("*.x")), entry(below, "child", *allow("*.x"), *allow("a.x"))}},
		{"unchanged", allow("*.x"), []org.AgentDiff{}},
		{"widened", allow("*"), []org.AgentDiff{entry(scout, "scout", hosts.AnyHost()), entry(below, "child", *allow("a.x"))}},
	} {
		_, planned, _, err := f.UpdateRole(operator, role.ID, org.RoleSpec{Hosts: step.rule}, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(planned.Agents, step.want); diff != "" {
			t.Errorf("%s, dry run, got before want:\n%s", step.name, diff)
		}
		if diff := cmp.Diff(f.update(role.ID, org.RoleSpec{Hosts: step.rule}).Agents, step.want); diff != "" {
			t.Errorf("%s, got before want:\n%s", step.name, diff)
		}
	}
}
