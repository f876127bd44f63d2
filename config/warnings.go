package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/toolgroups"
)

// Notes says what is no mistake and may be one, sorted: states of declared
// tools that no tool leads to, states that are led to where no tool can be
// called, and prompts that nobody can be given.
func (c *Config) Notes() (list []string) {
	list = c.unlistedPrompts()
	led, served := map[string]*DeclaredTool{}, map[string]*DeclaredTool{} // the first tool of each
	always := false                                                       // a tool can be called in every state
	for i := range c.Tools {
		t := &c.Tools[i]
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
			list = append(list, stateNote(served[state], state, "can be called in the state %s, to which no tool leads: a task has to begin in it"))
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

func stateNote(t *DeclaredTool, state, format string) string {
	return strings.TrimPrefix(t.Pos.String()+": ", ": ") + "tool " + t.Name + " " + fmt.Sprintf(format, quote(state))
}

// unlistedPrompts says which prompts no group lists.
func (c *Config) unlistedPrompts() (list []string) {
	listed := map[string]bool{}
	for _, t := range c.Toolsets {
		for _, name := range t.Prompts {
			listed[name] = true
		}
	}
	for _, p := range c.Prompts {
		if !listed[p.Name] {
			list = append(list, p.Pos.String()+": prompt "+quote(p.Name)+" is in no group, so nobody is offered it: list it under prompts of a document of kind group")
		}
	}
	return list
}
