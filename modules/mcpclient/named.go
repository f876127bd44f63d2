package mcpclient

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// isNamed reports whether a named tool has this name. The server cannot take it.
func (m *Module) isNamed(name string) bool {
	return slices.ContainsFunc(m.config.NamedTools, func(n NamedTool) bool { return n.Name == name })
}

// buildNamedTools returns the named tools, in order. A tool that has not changed stays the same
// value. It must be called with mu held.
func (m *Module) buildNamedTools(offered []tool.Tool) []tool.Tool {
	list := make([]tool.Tool, len(m.config.NamedTools))
	for i, n := range m.config.NamedTools {
		list[i] = m.buildNamedTool(n, offered)
		if i < len(m.named) && reflect.DeepEqual(m.named[i], list[i]) {
			list[i] = m.named[i]
		}
	}
	return list
}

// buildNamedTool returns a named tool. This is the offered tool under the new name, or a tool that is not
// available.
func (m *Module) buildNamedTool(n NamedTool, offered []tool.Tool) tool.Tool {
	for _, t := range offered {
		r, ok := t.(*remoteTool)
		if !ok || r.pin.Tool != n.Tool {
			continue
		}
		named := *r
		named.definition = n.define(r.definition)
		return &named
	}
	d := tool.Definition{Input: []byte(`{"type":"object"}`)}
	return &missingTool{module: m.config.Name, tool: n.Tool, definition: n.define(m.config.Labels.Apply(n.Tool, d))}
}

// define returns the definition of a named tool that calls a tool with the definition d.
func (n NamedTool) define(d tool.Definition) tool.Definition {
	d.Name, d.Description, d.Listing.Title = n.Name, n.Description, ""
	return modules.Labels{Tools: map[string]modules.Label{n.Name: n.Label}}.Apply(n.Name, d)
}

// missingTool is a named tool while no definition of the tool that it calls is accepted.
type missingTool struct {
	module, tool string
	definition   tool.Definition
}

// Definition implements tool.Tool.
func (t *missingTool) Definition() tool.Definition { return t.definition }

// Call implements tool.Tool. It reports that the tool is unavailable.
func (t *missingTool) Call(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{}, errcode.New(errcode.ToolUnavailable,
		"%s did not run: the MCP server %q has no tool %q that the operator has accepted; \"rolecall tool list --quarantined\" lists those that wait",
		cmp.Or(c.Name, t.definition.Name), t.module, t.tool)
}
