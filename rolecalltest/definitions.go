package rolecalltest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// findFaults returns what is wrong with the definitions of loaded modules, a sentence each.
func findFaults(s *toolgroups.Snapshot, list []rolecall.Module) (faults []string) {
	var tools []tool.Definition
	for _, m := range list {
		l := loaded{snapshot: s, module: m}
		for _, info := range s.ListGroups() {
			if info.Owner == modules.OwnerOf(m.Name()) {
				info.Tools = s.DirectTools(info.ID) // a child's tools are its own
				l.groups = append(l.groups, info)
				tools = append(tools, l.definitions(info)...)
			}
		}
		faults = append(faults, l.faults()...)
	}
	for _, p := range toolgroups.FindStateProblems(tools) {
		faults = append(faults, fmt.Sprintf("tool %q %s", tools[p.Tool].Name, p.Text))
	}
	return faults
}

// loaded is a module and its groups as they were registered, sorted by id.
type loaded struct {
	snapshot *toolgroups.Snapshot
	module   rolecall.Module
	groups   []toolgroups.GroupInfo
}

// definitions returns the definitions of a group's own tools, as they were registered.
func (l loaded) definitions(info toolgroups.GroupInfo) (list []tool.Definition) {
	for _, name := range info.Tools {
		if h, _ := l.snapshot.LookupTool(name); h.Group == info.ID {
			list = append(list, h.Definition)
		}
	}
	return list
}

func (l loaded) faults() (faults []string) {
	if len(l.groups) == 0 {
		return []string{fmt.Sprintf("module %s has no tool groups, so it adds nothing", nameOf(l.module))}
	}
	for range 3 { // a change may show only later
		if fault := l.describeChange(l.currentGroups()); fault != "" {
			return []string{fmt.Sprintf("%s, although the module did not call Changed", fault)}
		}
	}
	for _, g := range l.currentGroups() {
		faults = append(faults, l.missingFaults(g)...)
	}
	return faults
}

// currentGroups returns the groups that the module has now, sorted by id.
func (l loaded) currentGroups() []toolgroups.Group {
	var groups []toolgroups.Group
	lazy, cached := l.module.(modules.LazyModule)
	if cached {
		groups, cached = lazy.CachedGroups()
	}
	if !cached {
		groups = l.module.ToolGroups()
	}
	groups = slices.Clone(groups)
	for i := range groups {
		groups[i].ID = cmp.Or(groups[i].ID, toolgroups.GroupID(l.module.Name()))
	}
	slices.SortFunc(groups, func(a, b toolgroups.Group) int { return cmp.Compare(a.ID, b.ID) })
	return groups
}

// describeChange says what groups have otherwise than those that were registered; "" is nothing.
func (l loaded) describeChange(groups []toolgroups.Group) string {
	var was, is []toolgroups.GroupID
	for _, info := range l.groups {
		was = append(was, info.ID)
	}
	for _, g := range groups {
		is = append(is, g.ID)
	}
	if !slices.Equal(was, is) {
		return fmt.Sprintf("module %s has the groups %v when it is loaded and %v later", nameOf(l.module), was, is)
	}
	for i, g := range groups {
		if change := l.describeGroupChange(l.groups[i], g); change != "" {
			return change
		}
	}
	return ""
}

// describeGroupChange says what a group has otherwise than info, as which it was registered.
func (l loaded) describeGroupChange(info toolgroups.GroupInfo, g toolgroups.Group) string {
	of := fmt.Sprintf("group %q of module %s", g.ID, nameOf(l.module))
	if g.Description != "" && g.Description != info.Description {
		return fmt.Sprintf("%s has the description %q when it is loaded and %q later", of, info.Description, g.Description)
	}
	var names []string
	var definitions []tool.Definition
	for _, t := range g.Tools {
		var d tool.Definition
		if t != nil {
			d = t.Definition()
		}
		names, definitions = append(names, d.Name), append(definitions, d)
	}
	for _, name := range g.Refs {
		if slices.Contains(info.Tools, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if !slices.Equal(names, info.Tools) {
		return fmt.Sprintf("%s has the tools %v when it is loaded and %v later", of, info.Tools, names)
	}
	for i, was := range l.definitions(info) {
		if !equalDefinition(was, definitions[i]) {
			return fmt.Sprintf("the definition of the tool %q of module %s differs from one call of Definition to the next", was.Name, nameOf(l.module))
		}
	}
	return ""
}

func equalDefinition(a, b tool.Definition) bool {
	a.Declared, b.Declared = nil, nil // may hold functions, which are never equal
	return reflect.DeepEqual(a, b)
}

// missingFaults says what a group lacks.
func (l loaded) missingFaults(g toolgroups.Group) (faults []string) {
	info, _ := l.snapshot.LookupGroup(g.ID)
	info.Tools = l.snapshot.DirectTools(g.ID)
	add := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, append(args, nameOf(l.module))...))
	}
	if info.Count == 0 && len(g.Prompts)+len(g.Children) == 0 {
		add("group %q of module %s has no tools and no prompts", g.ID)
	}
	if strings.TrimSpace(info.Description) == "" {
		add("group %q of module %s has an empty description", g.ID)
	}
	for _, name := range g.Refs {
		if !slices.Contains(info.Tools, name) {
			add("group %q refers to the tool %q, which is not a tool of module %s", g.ID, name)
		}
	}
	for _, d := range l.definitions(info) {
		if strings.TrimSpace(d.Description) == "" {
			add("tool %q of module %s has an empty description: models choose tools by it", d.Name)
		}
		if d.States != nil && len(d.States) == 0 {
			add("tool %q of module %s has empty States, so it can never be called: leave them nil to allow every state", d.Name)
		}
	}
	return faults
}
