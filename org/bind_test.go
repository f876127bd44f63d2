package org_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// bind parses the bounds of a role.
func bind(t testing.TB, text string) bounds.Bind {
	t.Helper()
	b, err := org.ParseBind("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newBoundFixture returns a fixture with the group bank: the tools pay and note. The schema of
// note is closed.
func newBoundFixture(t testing.TB) *fixture {
	f := newFixture(t)
	var tools []tool.Tool
	for _, d := range [][2]string{
		{"pay", `{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"}}}`},
		{"note", `{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`},
	} {
		made, err := tool.New(d[0], "", noop, &tool.Options{Input: json.RawMessage(d[1])})
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, made)
	}
	if _, err := grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "bank", Tools: tools}); err != nil {
		t.Fatal(err)
	}
	return f
}

// banker returns a role that uses and grants bank with bounds.
func (f *fixture) banker(by identity.Principal, text string) org.Role {
	f.t.Helper()
	spec := org.RoleSpec{Use: setOf("bank", "org_management"), Grant: setOf("bank", "org_management")}
	if text != "" {
		spec.Bind = bind(f.t, text)
	}
	return f.role(by, spec)
}

func setOf(ids ...toolgroups.GroupID) *toolgroups.GroupSet {
	set := toolgroups.SetOf(ids...)
	return &set
}

// within reports whether p may call a tool with arguments.
func (f *fixture) within(p identity.Principal, name, args string) bool {
	ref, state := f.ResolveView(p)
	h := handle(f.groups, name)
	e := ref.CurrentView().ForState(state).EvaluateTool(h)
	return e.Rule == toolgroups.Granted && !slices.ContainsFunc(e.ToolChecks(h), func(c *bounds.Check) bool { return c.CheckArguments([]byte(args), nil) != nil })
}

// wantPays checks which amounts an agent may pay, of 5, 50, 500 and 5000.
func (f *fixture) wantPays(id identity.AgentID, want string) {
	f.t.Helper()
	var got []string
	for _, amount := range []string{"5", "50", "500", "5000"} {
		if f.within(identity.ByAgent(id), "pay", `{"amount": `+amount+`, "to": "a"}`) {
			got = append(got, amount)
		}
	}
	if text := strings.Join(got, " "); text != want {
		f.t.Errorf("%s pays %q, want %q", id, text, want)
	}
}

// The bounds of a role, of the roles that created it and of the parents hold together, at every
// moment and after a restart.
func TestBind_HoldsAlongTheLine(t *testing.T) {
	f := newBoundFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.banker(operator, `{"pay": {"/amount": {"max": 1000}}}`)
	free := f.banker(operator, ``)
	lead := f.spawn(root, boss.ID)
	made := f.banker(identity.ByAgent(lead), `{"pay": {"/amount": {"max": 100}}}`)
	plain := f.banker(identity.ByAgent(lead), ``)
	below, narrow, wide := f.spawn(lead, free.ID), f.spawn(root, made.ID), f.spawn(root, plain.ID)
	f.wantPays(f.spawn(root, free.ID), "5 50 500 5000")
	f.wantPays(lead, "5 50 500")
	f.wantPays(below, "5 50 500")
	f.wantPays(narrow, "5 50")
	f.wantPays(wide, "5 50 500")
	f.update(boss.ID, org.RoleSpec{Bind: bind(t, `{"pay": {"/amount": {"max": 10}}}`)})
	for _, id := range []identity.AgentID{lead, below, narrow, wide} {
		f.wantPays(id, "5")
	}
	f.reopen()
	for _, id := range []identity.AgentID{lead, below, narrow, wide} {
		f.wantPays(id, "5")
	}
	f.update(boss.ID, org.RoleSpec{Bind: bounds.Bind{}})
	f.wantPays(narrow, "5 50")
	f.wantPays(wide, "5 50 500 5000")
	f.update(made.ID, org.RoleSpec{Defaults: []org.RoleField{org.BindField}})
	f.wantPays(narrow, "5 50 500 5000")
}

// A task is within the bounds that its caller has now, and within those that it had when the
// task started.
func TestBind_LimitsTheTasksOfCallers(t *testing.T) {
	f := newBoundFixture(t)
	role := f.banker(operator, `{"pay": {"/amount": {"max": 100}}}`)
	free := f.banker(operator, ``)
	caller := identity.ByCaller("ann", role.ID)
	root := f.task(org.TaskSpec{Caller: caller})
	agent := f.spawn(root, free.ID)
	f.wantPays(agent, "5 50")
	if !f.within(caller, "pay", `{"amount": 5}`) || f.within(caller, "pay", `{"amount": 500}`) {
		t.Error("the caller itself is not bounded")
	}
	f.update(role.ID, org.RoleSpec{Bind: bind(t, `{"pay": {"/amount": {"max": 1000}}}`)})
	f.wantPays(agent, "5 50")
	f.update(role.ID, org.RoleSpec{Bind: bind(t, `{"pay": {"/amount": {"max": 10}}}`)})
	f.wantPays(agent, "5")
	f.reopen()
	f.wantPays(agent, "5")
}

// A record whose bounds cannot be read denies the tool, or all tools.
func TestBind_UnreadableRecordDenies(t *testing.T) {
	for text, want := range map[string][]string{
		`{"pay": {"/amount": {"newer": 1}}}`: {"create_role", "note", "spawn_agent"}, `{"pay": 7}`: {"create_role", "note", "spawn_agent"}, `[1]`: {}, `"x"`: {}, `7`: {}, `true`: {},
		`{"pay": {"/amount": {"max": 1}}, "pay": {"/amount": {"max": 9}}}`: {},
	} {
		f := newBoundFixture(t)
		role := f.banker(operator, ``)
		agent := f.spawn(f.task(org.TaskSpec{}), role.ID)
		record := f.store.records["role "+string(role.ID)]
		f.store.set("role", string(role.ID), strings.TrimSuffix(string(record), "}")+`,"bind":`+text+"}")
		f.reopen()
		f.wantTools(agent, want...)
		f.update(role.ID, org.RoleSpec{Prompt: "another"})
		f.reopen()
		f.wantTools(agent, want...)
	}
}

// A tool whose bounds surely let nothing through is neither shown nor callable. One that may
// let something through is shown, with the fixed values in its schema.
func TestBind_VisibleTools(t *testing.T) {
	f := newBoundFixture(t)
	root := f.task(org.TaskSpec{})
	boss := f.banker(operator, `{"pay": {"/to": {"any": [{"equal": "a"}, {"equal": "b"}]}}}`)
	lead := f.spawn(root, boss.ID)
	other := f.banker(operator, `{"pay": {"/to": {"equal": "c"}}}`)
	f.wantTools(f.spawn(lead, other.ID), "create_role", "note", "spawn_agent")
	f.wantTools(lead, "create_role", "note", "pay", "spawn_agent")
	one := f.spawn(lead, f.banker(operator, `{"pay": {"/to": {"glob": "b*"}, "/amount": {"max": 7}}}`).ID)
	ref, state := f.ResolveView(identity.ByAgent(one))
	if text := string(ref.CurrentView().ForState(state).ToolJSON()); !strings.Contains(text, `"maximum":7`) || !strings.Contains(text, `"const":"b"`) {
		t.Errorf("the model reads %s", text)
	}
}

// Each case is a bind of a role that an agent with a bound creates.
func TestBind_CreateRoleRejects(t *testing.T) {
	f := newBoundFixture(t)
	lead := f.spawn(f.task(org.TaskSpec{}), f.banker(operator, `{"pay": {"/amount": {"max": 100}}}`).ID)
	for _, c := range []struct {
		text, want string
		code       errcode.Code
	}{
		{`{"pay": {"/amount": {"max": 1000}}}`, "narrower", errcode.InsufficientPermissions},
		{`{"nothing": {"/amount": {"max": 10}}}`, `"nothing"`, errcode.InvalidRole},
		{`{"search": {"/amount": {"max": 10}}}`, `"search"`, errcode.InvalidRole}, // not the agent's
		{`{"note": {"/texts": {"equal": "x"}}}`, "/texts", errcode.InvalidRole},
	} {
		_, err := f.create(identity.ByAgent(lead), org.RoleSpec{Use: setOf("bank"), Bind: bind(t, c.text)})
		wantCode(t, err, c.code, c.want)
	}
	if _, err := f.create(operator, org.RoleSpec{Use: setOf("bank"), Bind: bind(t, `{"nothing": {"/a": {"max": 1}}}`)}); errcode.CodeOf(err) != errcode.InvalidRole {
		t.Errorf("got %v", err)
	}
	kept := f.role(operator, org.RoleSpec{Use: setOf("bank"), Bind: bind(t, `{"nothing": {"/a": {"max": 1}}}`), AllowUnknown: true})
	f.update(kept.ID, org.RoleSpec{Prompt: "the bounds are kept"})
}

// A bound on a tool that comes later holds when it comes.
func TestBind_ToolThatComesLater(t *testing.T) {
	f := newBoundFixture(t)
	role := f.configured("clerk", org.RoleSpec{Name: "clerk", Use: setOf("bank"), Bind: bind(t, `{"late": {"/x": {"max": 1}}}`)})
	if got := f.UnknownBoundTools()["clerk"]; !slices.Equal(got, []string{"late"}) {
		t.Errorf("unknown: %v", got)
	}
	made, err := tool.New("late", "", noop, &tool.Options{Input: json.RawMessage(`{"type":"object"}`)})
	if err == nil {
		_, err = grouptest.RegisterGroup(f.groups, toolgroups.Config, toolgroups.Group{ID: "bank", Tools: []tool.Tool{made}})
	}
	if err != nil {
		t.Fatal(err)
	}
	caller := identity.ByCaller("ann", role.ID)
	if !f.within(caller, "late", `{"x": 1}`) || f.within(caller, "late", `{"x": 2}`) || len(f.UnknownBoundTools()) != 0 {
		t.Error("the bound does not hold")
	}
}
