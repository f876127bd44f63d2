package toolgroups

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// StateProblem is a workflow state that the tools of a list use in vain.
type StateProblem struct {
	Tool int    // index of the first tool that uses the state
	Text string // what is wrong, for a message after the tool's name
}

// FindStateProblems returns the states that tools need and no tool leads to. It also returns the
// states that a tool leads to and in which no tool can be called. Tasks begin in UndefinedState.
func FindStateProblems(list []tool.Definition) (problems []StateProblem) {
	led, served := map[string]int{}, map[string]int{} // the first tool that leads to a state, or can be called in it
	always := false                                   // a tool can be called in every state
	for i, d := range list {
		if _, ok := led[d.State]; !ok && d.State != "" {
			led[d.State] = i
		}
		always = always || d.States == nil || slices.Contains(d.States, "*")
		for _, state := range d.States {
			if _, ok := served[state]; !ok {
				served[state] = i
			}
		}
	}
	add := func(i int, state, format string) {
		problems = append(problems, StateProblem{i, fmt.Sprintf(format, strconv.Quote(textutil.TruncateWidth(state, 60)))})
	}
	for state, i := range served {
		if _, ok := led[state]; !ok && state != "*" && state != UndefinedState {
			add(i, state, "can be called in the state %s, which no tool leads to: a task must begin in it")
		}
	}
	for state, i := range led {
		if _, ok := served[state]; !ok && !always {
			add(i, state, "leads to the state %s, in which no tool can be called")
		}
	}
	slices.SortFunc(problems, func(a, b StateProblem) int { return cmp.Or(a.Tool-b.Tool, cmp.Compare(a.Text, b.Text)) })
	return problems
}
