package app

import (
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// The subject of an agent's calls is the caller on record of its task, whatever the call says.
func TestSubjectOf_IsWhoStartedTheTask(t *testing.T) {
	const doc = `
{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: script, file: agents.js}
---
{kind: role, name: staff, toolGroups: [org_management]}
`
	f := newFixture(t)
	cfg, err := config.ReadFiles([]yamldoc.File{
		{Path: "org.yaml", Data: []byte(doc)},
		{Path: "agents.js", Data: []byte(`role("root", function* () { yield receive(); })`), Named: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.ApplyConfig(t.Context(), cfg, nil); err != nil {
		t.Fatal(err)
	}
	role, _ := f.Runtime.Org().RoleByName("staff")
	ann := identity.ByCaller("ann@home", role.ID)
	agentOf := func(caller identity.Principal) identity.Principal {
		id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "wait", Caller: caller, Open: true}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		task, _ := f.Runtime.Org().TaskByID(id)
		return identity.ByAgent(task.Top)
	}
	within := ann
	within.Within = "net"
	for name, tt := range map[string]struct {
		by   identity.Principal
		want mcpauth.Subject
	}{
		"caller":                {ann, mcpauth.Subject(ann.String())},
		"caller in a network":   {within, mcpauth.Subject(ann.String())},
		"agent of the caller":   {agentOf(ann), mcpauth.Subject(ann.String())},
		"operator":              {identity.ByOperator("op"), mcpauth.Operator},
		"agent of the operator": {agentOf(identity.ByOperator("op")), mcpauth.Operator},
		"unknown agent":         {identity.ByAgent("none"), ""},
		"zero":                  {identity.Principal{}, ""},
		"monitor":               {identity.ByMonitor("m"), ""},
		"caller without a role": {identity.ByCaller("ann", ""), ""},
		"caller without a name": {identity.ByCaller("", role.ID), ""},
		"role that has an at":   {identity.ByCaller("ann", "a@b"), ""},
	} {
		got, ok := f.subjectOf(tool.Call{By: tt.by, Owner: "user:eve@" + string(role.ID), Args: []byte(`{"subject":"operator"}`)})
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %q, %t, want %q", name, got, ok, tt.want)
		}
	}
}
