package toolboxfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// StateLabels are the labels of tools that other documents declare, for ListWarnings.
type StateLabels struct {
	What   string // what the tools are, such as "mcpServer fs"
	Labels Labels
	Pos    yamldoc.Pos
}

// ListWarnings returns warnings, sorted. Some are about states that tools need and no tool
// leads to. Others are about states that a tool leads to and in which no tool can be
// called. The rest are about prompts and resources that no group lists. servers are the
// labels of the tools of servers and modules.
func (d *Declarations) ListWarnings(servers ...StateLabels) (list []string) {
	list = append(d.unlistedPrompts(), d.unlistedResources()...)
	for _, t := range d.Tools {
		if t.Type != ToolGraphUpdate { // it cannot be called
			servers = append(servers, StateLabels{"tool " + t.Name, Labels{State: &t.NextState, States: t.InStates}, t.Pos})
		}
	}
	for _, l := range d.Labels {
		servers = append(servers, StateLabels{"tool " + l.String(), l.Labels, l.Pos})
	}
	tools := make([]tool.Definition, len(servers))
	for i, l := range servers {
		if tools[i].States = l.Labels.States; l.Labels.State != nil {
			tools[i].State = *l.Labels.State
		}
	}
	for _, p := range toolgroups.FindStateProblems(tools) {
		l := servers[p.Tool]
		list = append(list, strings.TrimPrefix(l.Pos.String()+": ", ": ")+l.What+" "+p.Text)
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

// ListAnchored returns a warning for some parameters with allowedValues. Toolbox would match these
// anywhere in a value. Here they are expressions for whole values because of ProfileCompat.
func (d *Declarations) ListAnchored() (list []string) {
	for _, t := range d.Tools {
		if t.Parameters == nil {
			continue
		}
		for _, name := range t.Parameters.AnchoredNames() {
			list = append(list, fmt.Sprintf("%s: tool %s, parameter %s: allowedValues match whole values only, not a part of a value as in Toolbox", t.Pos, yamldoc.QuoteText(t.Name), yamldoc.QuoteText(name)))
		}
	}
	return list
}
