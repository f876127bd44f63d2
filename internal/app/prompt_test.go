package app

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// prompts lists what somebody in a role is offered, with the texts.
func (w *workshop) prompts(name string) string {
	w.t.Helper()
	role, ok := w.Runtime.Org().RoleNamed(name)
	if !ok {
		return "there is no " + name
	}
	return w.told(w.Runtime.Gate().Subject(identity.ByCaller("ann", role.ID)).Prompts(""))
}

func (w *workshop) told(prompts []*toolgroups.Prompt) string {
	w.t.Helper()
	var list []string
	for _, p := range prompts {
		messages, err := p.Messages(nil)
		if err != nil || len(messages) != 1 {
			w.t.Fatalf("%s: %v, %v", p.Name, messages, err)
		}
		list = append(list, p.Name+"="+messages[0].Text)
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

// A reload puts prompts in force and takes them away, and gives them to nobody
// but those whose role has the group.
func TestPromptsAreOfTheConfigurationInForce(t *testing.T) {
	w := openWorkshop(t)
	if err := w.Configure(t.Context(), w.read(promptedReader, promptedOther, promptP, promptQ, groupG), nil); err != nil {
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
		if _, err := w.reconfigure(t.Context(), w.read(step.docs...)); err != nil {
			t.Fatalf("%v: %v", step.docs, err)
		}
		if reader, other := w.prompts("reader"), w.prompts("other"); reader != step.reader || other != step.other {
			t.Errorf("with %v reader has %q and other %q, want %q and %q", step.docs, reader, other, step.reader, step.other)
		}
	}
}

// Between two configurations a group has the prompts that both give it: who gets
// the group meanwhile is shown no more.
func TestPromptsOfAChangeUnderWay(t *testing.T) {
	w := openWorkshop(t)
	first := w.read(promptedReader, promptP, promptQ, "{kind: group, name: g, prompts: [p, q]}")
	if err := w.Configure(t.Context(), first, nil); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		groupG + "\n---\n" + promptP: "p=P",
		"{kind: group, name: g, prompts: [p, q]}\n---\n" + promptQ + "\n---\n" + // p is another
			strings.Replace(promptP, "content: P", "content: New", 1): "q=Q",
		"{kind: group, name: g, prompts: [r]}\n---\n{kind: prompt, name: r}": "",
		"{kind: toolset, name: other}":                                       "",
	} {
		if err := w.restrictToolsets(toolsetsOf(w.read(text))); err != nil {
			t.Fatal(err)
		}
		if got := w.prompts("reader"); got != want {
			t.Errorf("on the way to %s: %q, want %q", text, got, want)
		}
		if err := w.expandToolsets(toolsetsOf(first)); err != nil {
			t.Fatal(err)
		}
		if got := w.prompts("reader"); got != "p=P q=Q" {
			t.Errorf("back again: %q", got)
		}
	}
}

// A configuration with faults gives nobody a prompt that could not be read.
func TestPromptsThatAreWrongAreNobodys(t *testing.T) {
	cfg, err := config.Read([]config.File{{Path: "org.yaml", Data: []byte(groupG + "\n---\n{kind: prompt, name: p, messages: [{content: '{{.a}}'}]}")}}, nil)
	if err == nil {
		t.Fatal("it was not refused")
	}
	if got := toolsetsOf(cfg)["g"].Prompts; len(got) != 0 {
		t.Errorf("the group has %d prompts", len(got))
	}
}
