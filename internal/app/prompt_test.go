package app

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups"
)

// prompts lists the prompts that a caller in a role can get, with their texts.
func (f *fixture) prompts(name string) string {
	f.t.Helper()
	role, ok := f.Runtime.Org().RoleByName(name)
	if !ok {
		return "no role " + name
	}
	return f.promptTexts(f.Runtime.Gate().Subject(identity.ByCaller("ann", role.ID)).ListPrompts(""))
}

func (f *fixture) promptTexts(prompts []toolgroups.Prompt) string {
	f.t.Helper()
	var list []string
	for _, p := range prompts {
		messages, err := p.Messages(nil)
		if err != nil || len(messages) != 1 {
			f.t.Fatalf("%s: %v, %v", p.Name(), messages, err)
		}
		list = append(list, p.Name()+"="+messages[0].Text)
	}
	return strings.Join(list, " ")
}

const (
	promptedReader = "{kind: role, name: reader, toolGroups: [g]}"
	promptedOther  = "{kind: role, name: other, toolGroups: [console]}"
	promptP        = "{kind: prompt, name: p, messages: [{content: P}]}"
	promptQ        = "{kind: prompt, name: q, messages: [{content: Q}]}"
	groupG         = "{kind: group, name: g, prompts: [p]}"
)

// A change adds and removes prompts, and only roles that have the group get them.
func TestReconfigure_ReplacesPrompts(t *testing.T) {
	f := newFixture(t)
	if err := f.ApplyConfig(t.Context(), f.read(promptedReader, promptedOther, promptP, promptQ, groupG), nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		docs          []string
		reader, other string
	}{
		{[]string{promptedReader, promptedOther, promptP, promptQ, groupG}, "p=P", ""},
		{[]string{promptedReader, promptedOther, strings.Replace(promptP, "content: P", "content: New", 1), groupG}, "p=New", ""},
		{[]string{promptedReader, promptedOther, promptP, promptQ, strings.Replace(groupG, "p]", "q, p]", 1)}, "p=P q=Q", ""},
		{[]string{promptedReader, strings.Replace(promptedOther, "console", "g", 1), promptP, promptQ, strings.Replace(groupG, "p]", "q]", 1)}, "q=Q", "q=Q"},
		{[]string{promptedReader, promptedOther, promptP, promptQ, "{kind: group, name: g}"}, "", ""},
		{[]string{promptedReader, promptedOther, promptP, groupG}, "p=P", ""},
		{[]string{"{kind: role, name: reader, toolGroups: []}", promptedOther, promptP, groupG}, "", ""},
		{[]string{"{kind: role, name: reader, toolGroups: all}", promptedOther, promptP, groupG}, "p=P", ""},
		{[]string{"{kind: role, name: reader, toolGroups: all}", promptedOther, promptP}, "", ""},
	} {
		if _, err := f.reconfigure(t.Context(), f.read(step.docs...)); err != nil {
			t.Fatalf("%v: %v", step.docs, err)
		}
		if reader, other := f.prompts("reader"), f.prompts("other"); reader != step.reader || other != step.other {
			t.Errorf("with %v reader has %q and other %q, want %q and %q", step.docs, reader, other, step.reader, step.other)
		}
	}
}

// A prompt that could not be read is in no toolset.
func TestToolsetsOf_SkipsInvalidPrompts(t *testing.T) {
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(groupG + "\n---\n{kind: prompt, name: p, messages: [{content: '{{.a}}'}]}")}}, nil)
	if err == nil {
		t.Fatal("the configuration was not rejected")
	}
	if got := toolsetsOf(cfg)["g"].Prompts; len(got) != 0 {
		t.Errorf("the group has %d prompts", len(got))
	}
}
