package toolboxfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups"
)

// ListWarnings returns warnings, sorted: about states that declared tools need and no
// tool leads to, states that a tool leads to and no tool can be called in, and
// prompts that no group lists.
func (d *Declarations) ListWarnings() (list []string) {
	list = d.unlistedPrompts()
	led, served := map[string]*DeclaredTool{}, map[string]*DeclaredTool{} // the first tool that leads to a state, or can be called in it
	always := false                                                       // a tool can be called in every state
	for i := range d.Tools {
		t := &d.Tools[i]
		if t.State != "" && led[t.State] == nil {
			led[t.State] = t
		}
		always = always || len(t.States) == 0 || slices.Contains(t.States, "*")
		for _, state := range t.States {
			if served[state] == nil {
				served[state] = t
			}
		}
	}
	for _, state := range slices.Sorted(maps.Keys(served)) {
		if state != "*" && state != toolgroups.Undefined && led[state] == nil { // tasks begin in Undefined
			list = append(list, stateNote(served[state], state, "can be called in the state %s, which no tool leads to: a task must begin in it"))
		}
	}
	for _, state := range slices.Sorted(maps.Keys(led)) {
		if served[state] == nil && !always {
			list = append(list, stateNote(led[state], state, "leads to the state %s, in which no tool can be called"))
		}
	}
	slices.Sort(list)
	return list
}

// stateNote returns a warning about a tool and a state.
func stateNote(t *DeclaredTool, state, format string) string {
	return strings.TrimPrefix(t.Pos.String()+": ", ": ") + "tool " + t.Name + " " + fmt.Sprintf(format, yamldoc.QuoteText(state))
}

// unlistedPrompts returns a warning for each prompt that no group lists.
func (d *Declarations) unlistedPrompts() (list []string) {
	listed := map[string]bool{}
	for _, t := range d.Toolsets {
		for _, name := range t.Prompts {
			listed[name] = true
		}
	}
	for _, p := range d.Prompts {
		if !listed[p.Name] {
			list = append(list, p.Pos.String()+": prompt "+yamldoc.QuoteText(p.Name)+" is in no group, so no client can get it: list it under prompts of a document of kind group")
		}
	}
	return list
}
