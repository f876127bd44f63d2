// Package resource serves the resources that a configuration declares: texts, files, and the files
// below directories. Each is read by a tool, so the gate decides about each read, and the record has
// it. The tool's Catalog lets clients of MCP list and read it as a resource.
//
//	m, err := resource.New(declared)
//	err = loader.LoadModule(ctx, m)
//
// Files are read when they are asked for, within their directory. Neither a link nor a path of the
// caller leads out of it. The package decides no permissions.
package resource

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// ModuleName is the name of the module that has all declared resources.
const ModuleName = "toolbox-resources"

// Group is the id of its group, which has the tools of all resources.
const Group toolgroups.GroupID = "toolbox/resources"

// Module implements modules.Module with one tool for each resource and template. It is immutable.
type Module struct{ tools []tool.Tool }

// New returns the module of declared resources. It reads no file. Errors: InvalidConfig.
func New(declared []toolboxfile.Resource) (*Module, error) {
	m := new(Module)
	for _, r := range declared {
		made, err := newTool(r)
		if err != nil {
			return nil, errcode.Wrap(errcode.InvalidConfig, err, "resource %q: %v", r.Name, err)
		}
		m.tools = append(m.tools, made)
	}
	return m, nil
}

// Name implements modules.Module.
func (m *Module) Name() string { return ModuleName }

// ToolGroups implements modules.Module: one group with all tools.
func (m *Module) ToolGroups() []toolgroups.Group {
	g := toolgroups.Group{ID: Group, Description: "Declared resources", Tools: m.tools, APIs: map[string]string{}}
	for _, t := range m.tools {
		g.APIs[t.Definition().Name] = t.Definition().Name
	}
	return []toolgroups.Group{g}
}

// The arguments of the tools. A resource has none.
type (
	noArgs   struct{}
	pathArgs struct {
		Path string `json:"path"`
	}
)

const (
	noInput   = `{"type": "object", "properties": {}, "additionalProperties": false}`
	pathInput = `{"type": "object", "properties": {"path": {"type": "string", "description": "The path in the place of {path} in the URI.", "minLength": 1, "maxLength": 4096}}, "required": ["path"], "additionalProperties": false}`
)

// newTool returns the tool that reads a resource or the files of a template.
func newTool(r toolboxfile.Resource) (tool.Tool, error) {
	o := &tool.Options{Effect: tool.ReadOnly, Flags: tool.FlagsOf(tool.Untrusted, tool.Private), Listing: tool.Listing{Title: r.Title}}
	if r.URITemplate != "" {
		o.Input, o.Catalog = json.RawMessage(pathInput), templateCatalog{resource: r}
		read := func(_ context.Context, in pathArgs) (tool.Result, error) { return readBelow(r, in.Path) }
		return tool.New(r.ToolName(), description(r, r.URITemplate), read, o)
	}
	o.Input, o.Catalog = json.RawMessage(noInput), catalog{resource: r}
	return tool.New(r.ToolName(), description(r, r.URI), func(context.Context, noArgs) (tool.Result, error) { return read(r) }, o)
}

// description returns what models are told about the tool.
func description(r toolboxfile.Resource, uri string) string {
	if r.Description == "" {
		return fmt.Sprintf("Read %s.", uri)
	}
	return fmt.Sprintf("Read %s: %s", uri, r.Description)
}

// read returns the text of a resource.
func read(r toolboxfile.Resource) (tool.Result, error) {
	if r.Type == toolboxfile.ResourceText {
		return tool.Result{Text: r.Text}, nil
	}
	return readFile(r.Dir, r.Path, r.MaxSize)
}
