package toolgroups_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestFindStateProblems(t *testing.T) {
	type problems = []toolgroups.StateProblem
	leads := func(state string, states ...string) tool.Definition {
		return tool.Definition{State: state, States: states}
	}
	for name, c := range map[string]struct {
		list []tool.Definition
		want problems
	}{
		"no states":   {[]tool.Definition{{}}, nil},
		"in order":    {[]tool.Definition{leads("open", toolgroups.UndefinedState), leads("", "open")}, nil},
		"every state": {[]tool.Definition{leads("open", "*")}, nil},
		"no tool leads to it": {[]tool.Definition{{}, leads("", "open", "late")}, problems{
			{1, `can be called in the state "late", which no tool leads to: a task must begin in it`},
			{1, `can be called in the state "open", which no tool leads to: a task must begin in it`}}},
		"no tool is in it": {[]tool.Definition{leads("open", toolgroups.UndefinedState)}, problems{
			{0, `leads to the state "open", in which no tool can be called`}}},
	} {
		if diff := cmp.Diff(c.want, toolgroups.FindStateProblems(c.list)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
