package grouptest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// GroupSpec is a group as a Registry knows it.
type GroupSpec struct {
	ID    toolgroups.GroupID
	Owner toolgroups.GroupOwner
	Text  string
	Tools []ToolSpec
	Refs  []string

	Children []toolgroups.GroupID

	bound map[string]toolgroups.GroupOwner // owners of refs when the group was registered
}

// ToolSpec is a tool as a Registry knows it.
type ToolSpec struct {
	Name   string
	States []string // nil allows every state
	Moves  string   // the state after a successful call
	Effect tool.Effect

	Definition *tool.Definition // of a tool under test; nil is one that accepts any object
}

// String describes the group for messages, without the definitions of its tools.
func (g GroupSpec) String() string {
	text := fmt.Sprintf("group %q of %s", g.ID, g.Owner)
	for i, t := range g.Tools {
		text += []string{" with ", ", "}[min(i, 1)] + t.Name
	}
	for i, name := range g.Refs {
		text += []string{" that refers to ", ", "}[min(i, 1)] + name
	}
	for i, id := range g.Children {
		text += []string{" with the child ", ", "}[min(i, 1)] + string(id)
	}
	return text
}

// Has reports whether a tool is one of the group's own.
func (g GroupSpec) Has(name string) bool {
	return slices.ContainsFunc(g.Tools, func(t ToolSpec) bool { return t.Name == name })
}

// Group returns the group to register with a Manager.
func (g GroupSpec) Group(r RunCounts) toolgroups.Group {
	out := toolgroups.Group{ID: g.ID, Description: g.Text, Refs: g.Refs, Children: g.Children}
	for _, t := range g.Tools {
		out.Tools = append(out.Tools, countingTool{t.definition(), r[t.Name]})
	}
	return out
}

func (t ToolSpec) definition() tool.Definition {
	if t.Definition != nil {
		return *t.Definition
	}
	return tool.Definition{
		Name: t.Name, Description: "counts", Input: json.RawMessage(`{"type":"object"}`), State: t.Moves, States: t.States, Effect: t.Effect,
	}
}

// RunCounts counts the runs of handlers by tool name.
type RunCounts map[string]*atomic.Int64

// NewRunCounts returns the counts of tools with these names.
func NewRunCounts(names ...string) RunCounts {
	r := RunCounts{}
	for _, name := range names {
		r[name] = new(atomic.Int64)
	}
	return r
}

// Of returns how often a tool has run; 0 for one that is not counted.
func (r RunCounts) Of(name string) int64 {
	if n, ok := r[name]; ok {
		return n.Load()
	}
	return 0
}

// countingTool is a tool that counts its runs.
type countingTool struct {
	definition tool.Definition
	runs       *atomic.Int64
}

func (t countingTool) Definition() tool.Definition { return t.definition }

func (t countingTool) Call(context.Context, tool.Call) (tool.Result, error) {
	if t.runs != nil {
		t.runs.Add(1)
	}
	return tool.Result{Text: "done"}, nil
}
