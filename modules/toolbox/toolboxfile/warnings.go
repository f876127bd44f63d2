package toolboxfile

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ListWarnings returns warnings, sorted: about states that declared tools need and no
// tool leads to, states that a tool leads to and no tool can be called in, and
// prompts that no group lists.
func (d *Declarations) ListWarnings() (list []string) {
	list = d.unlistedPrompts()
	tools := make([]tool.Definition, len(d.Tools))
	for i, t := range d.Tools {
		tools[i].State = t.State
		if len(t.States) > 0 {
			tools[i].States = t.States
		}
	}
	for _, p := range toolgroups.FindStateProblems(tools) {
		t := d.Tools[p.Tool]
		list = append(list, strings.TrimPrefix(t.Pos.String()+": ", ": ")+"tool "+t.Name+" "+p.Text)
	}
	slices.Sort(list)
	return list
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
