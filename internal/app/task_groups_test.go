package app

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// bringsGroups is a configuration that brings the group of a module, of a source and of a
// tool, and a toolset.
const bringsGroups = `
{kind: organization, name: o, model: m}
---
{kind: model, name: m, type: script, file: agents.js}
---
{kind: module, name: counter, type: textstats}
---
{kind: source, name: db, type: sqlite, database: ":memory:"}
---
{kind: tool, name: look, type: sqlite-sql, source: db, description: d, statement: SELECT 1, group: [looking]}
---
{kind: toolset, name: kit, tools: [look]}
`

// A task can be restricted to groups that its own configuration brings.
func TestStartTask_AcceptsGroupsOfItsConfiguration(t *testing.T) {
	f := newFixture(t)
	read := func() *config.Config {
		cfg, err := config.ReadFiles([]yamldoc.File{
			{Path: "org.yaml", Data: []byte(bringsGroups)},
			{Path: "agents.js", Data: []byte(`role("root", function* () { return "done"; })`), Named: true},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	start := func(cfg *config.Config, groups ...string) error {
		set := toolgroups.SetOfNames(groups...)
		_, err := f.StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: identity.ByOperator("op"), Groups: &set}, cfg)
		return err
	}
	err := start(read(), "Kit", "workspace")
	if errcode.CodeOf(err) != errcode.GroupNotFound || !strings.Contains(err.Error(), `there is no tool group "Kit"; did you mean "kit"?`) {
		t.Errorf("a name in other case: %v", err)
	}
	if f.groups.CurrentSnapshot().GroupOwner("kit") != "" || f.current != nil {
		t.Error("the configuration of the rejected task was applied")
	}
	for _, id := range []string{"textstats", "source/db", "looking", "kit", "workspace", "*"} {
		if err := newFixtureStart(t, read(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := start(read(), "kit"); err != nil {
		t.Fatal(err)
	}
	if err := start(nil, "kit"); err != nil {
		t.Errorf("under the active configuration: %v", err)
	}
	if err := start(nil, "looked"); errcode.CodeOf(err) != errcode.GroupNotFound {
		t.Errorf("an unknown group: %v", err)
	}
}

// newFixtureStart starts a task restricted to a group in an application of its own, which
// has no configuration yet.
func newFixtureStart(t *testing.T, cfg *config.Config, group string) error {
	set := toolgroups.SetOfNames(group)
	_, err := newFixture(t).StartTask(t.Context(), org.TaskSpec{Text: "t", Caller: identity.ByOperator("op"), Groups: &set}, cfg)
	return err
}
