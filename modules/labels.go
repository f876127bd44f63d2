package modules

import (
	"slices"

	"github.com/rolecall/rolecall/tool"
)

// Label is what the operator says about a tool of a module. A nil field, and zero Flags, say nothing.
type Label struct {
	Effect *tool.Effect
	Flags  tool.Flags
	State  *string  // workflow state after a call; "" does not change it
	States []string // workflow states in which the tool can be called; empty means none
}

// Labels are the labels of the tools of one module. The zero Labels change nothing.
type Labels struct {
	All   Label            // of tools that have no label and no state of their own
	Tools map[string]Label // by the name of the tool, or by its name at its server
}

// Apply returns the definition of a tool with its labels. api is the tool's name at its
// server. A label of the tool replaces the value of the module. All replaces the effect and
// the flags. It replaces the state and the states only where the module sets none.
func (l Labels) Apply(api string, d tool.Definition) tool.Definition {
	own, ok := l.Tools[api]
	if !ok {
		own = l.Tools[d.Name]
	}
	switch {
	case own.Effect != nil:
		d.Effect = *own.Effect
	case l.All.Effect != nil:
		d.Effect = *l.All.Effect
	}
	for _, flags := range []tool.Flags{l.All.Flags, own.Flags} {
		if flags.Known() {
			d.Flags = flags
		}
	}
	switch {
	case own.State != nil:
		d.State = *own.State
	case d.State == "" && l.All.State != nil:
		d.State = *l.All.State
	}
	switch {
	case own.States != nil:
		d.States = slices.Clone(own.States)
	case d.States == nil && l.All.States != nil:
		d.States = slices.Clone(l.All.States)
	}
	return d
}
