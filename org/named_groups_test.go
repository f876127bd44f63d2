package org_test

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// A role that names very many groups is rejected before its groups are looked at, whoever makes or
// changes it: an agent would hold the organization with it.
func TestRole_RejectsVeryManyGroups(t *testing.T) {
	f := newFixture(t)
	root := f.task(org.TaskSpec{Text: "x", Caller: operator})
	known := f.role(operator, org.RoleSpec{Name: "known", Prompt: "p", Use: new(toolgroups.SetOf())})
	var names []string
	for i := range 100_000 {
		names = append(names, fmt.Sprint("g", i))
	}
	many := new(toolgroups.SetOfNames(names...))
	for _, by := range []identity.Principal{operator, identity.ByAgent(root)} {
		for _, spec := range []org.RoleSpec{{Use: many}, {Use: new(toolgroups.SetOf()), Grant: many}, {Agent: &org.AskSettings{DefaultGroups: many}}} {
			spec.Name, spec.Prompt = "big", "p"
			if _, err := f.create(by, spec); errcode.CodeOf(err) != errcode.InvalidRole {
				t.Errorf("%v created: %.200v", by, err)
			}
			if _, _, _, err := f.UpdateRole(by, known.ID, spec, true); errcode.CodeOf(err) != errcode.InvalidRole {
				t.Errorf("%v changed: %.200v", by, err)
			}
		}
	}
	if _, err := org.PrepareTask(org.TaskSpec{Text: "x", Caller: operator, Groups: many}); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("a task: %.200v", err)
	}
	fits := new(toolgroups.SetOfNames(names[:org.MaxNamedGroups]...))
	if _, err := org.PrepareTask(org.TaskSpec{Text: "x", Caller: operator, Groups: fits}); err != nil {
		t.Errorf("a task with %d groups: %.200v", org.MaxNamedGroups, err)
	}
}
