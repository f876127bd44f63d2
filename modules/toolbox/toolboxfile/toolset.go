package toolboxfile

import (
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// readToolset reads a toolset. In the v1 form it may be a bare list of tools.
func readToolset(it item) {
	it.DeclareItem()
	it.checkShortName("toolset")
	t := Toolset{Name: it.Name, Pos: it.Pos}
	tools := it.memberList("tool", &t.Tools)
	switch {
	case it.IsEntry && it.IsNull():
	case it.IsEntry && it.Node.Kind == yaml.SequenceNode:
		tools(it.Value)
	case it.IsEntry && it.Node.Kind != yaml.MappingNode:
		it.AddTypeError("a list of tools", "for example [search, book]")
	default:
		it.ReadFields(yamldoc.Fields{
			"description": yamldoc.TextField(&t.Description), "tools": tools, "hours": hoursField(&t.Hours),
			"children": it.relatedGroups(&t.Children, toolgroups.MaxChildren, checkChild),
			"fallback": it.relatedGroups(&t.Fallback, toolgroups.MaxFallbacks, checkFallback),
		})
	}
	it.r.to.Toolsets = append(it.r.to.Toolsets, t)
}

// readGroup reads a group of Toolbox as a toolset. A group without a name describes
// the group of all tools.
func readGroup(it item) {
	t := Toolset{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"description":       yamldoc.TextField(&t.Description),
		"ttlMs":             func(v yamldoc.Value) { v.ReadInteger(0, math.MaxInt64) },
		"cacheScope":        yamldoc.OneOfField(new(string), "public", "private"),
		"tools":             it.memberList("tool", &t.Tools),
		"prompts":           it.memberList("prompt", &t.Prompts),
		"resources":         it.memberList(kindResource, &t.Resources),
		"resourceTemplates": it.memberList(kindTemplate, &t.ResourceTemplates),
	})
	if _, named := it.FindField("name"); named {
		it.DeclareItem()
		it.checkShortName("group")
	} else {
		it.declareDefaultGroup()
	}
	it.r.to.Toolsets = append(it.r.to.Toolsets, t)
}

// memberList reads the members of a kind of a toolset. Like Toolbox it accepts a
// field without a value.
func (it item) memberList(kind string, to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch {
		case v.IsNull():
		case kind == "tool":
			it.ReferenceListOr(kind, to, it.foreignMember)(v)
		default:
			it.ReferenceList(kind, to)(v)
		}
	}
}

// foreignMember reports whether an entry of a toolset is a tool of a server or module,
// SERVER/TOOL, and reads it.
func (it item) foreignMember(v yamldoc.Value) bool {
	if !v.IsScalar() || !strings.Contains(v.Node.Value, "/") {
		return false
	}
	it.toolIDField(new(ToolID), serverKinds...)(v)
	return true
}

// declareDefaultGroup registers the group without a name. It rejects a second one,
// and members: all tools are in it.
func (it item) declareDefaultGroup() {
	if first, ok := it.Set.DeclareName("group of all", "", it.Pos); !ok {
		it.MissingField("name").AddError(fmt.Sprintf("is missing, as in the group at %s", first), "only one group without a name can describe the group of all tools; name this one")
		return
	}
	for _, name := range []string{"tools", "prompts", "resources", "resourceTemplates"} {
		if at, ok := it.FindField(name); ok {
			at.AddError("is not allowed in a group without a name, which describes the group of all tools", "name the group, or leave its members out")
		}
	}
}

// checkShortName rejects a name that is not valid as a tool's name and in a URL.
func (it item) checkShortName(kind string) {
	if it.Name == "" || tool.CheckName(it.Name) == nil {
		return
	}
	it.NameAt.AddError(yamldoc.QuoteText(it.Name)+" is not a valid name of a "+kind, "1 to 128 ASCII letters, digits, '_', '.' or '-'")
}
