package app

import (
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// ruleNotes returns a note for each tool and tool group that the rules of a role name, about
// approvals or arguments, and that does not exist. It may come later. If its name is misspelled,
// the rule protects nothing.
func (a *App) ruleNotes() (notes []string) {
	if a.current == nil {
		return nil
	}
	s := a.groups.CurrentSnapshot()
	for _, r := range a.current.Roles {
		add := func(field, kind, name string, known []string) {
			hint := textutil.SuggestName(name, known)
			if hint != "" {
				hint = " (" + hint + ")"
			}
			notes = append(notes, fmt.Sprintf("%s: role %s: %s: there is no %s %s%s; until it exists, the rule does nothing", r.Pos, r.Name, field, kind, textutil.Truncate(name, 128), hint))
		}
		tools, groups := r.Bind.ToolNames(), []string{}
		fields := len(tools) // those of bind come first
		for _, rule := range r.Approval {
			tools, groups = append(tools, rule.Tools...), append(groups, rule.Groups...)
		}
		for i, name := range tools {
			if _, ok := s.LookupTool(name); !ok {
				add(map[bool]string{true: "bind", false: "approval"}[i < fields], "tool", name, toolNames(s))
			}
		}
		for _, id := range groups {
			if _, ok := s.LookupGroup(toolgroups.GroupID(id)); !ok {
				add("approval", "tool group", id, groupNames(s))
			}
		}
	}
	return slices.Compact(notes)
}

func groupNames(s *toolgroups.Snapshot) (names []string) {
	for _, id := range s.GroupIDs() {
		names = append(names, string(id))
	}
	return names
}

func toolNames(s *toolgroups.Snapshot) (names []string) {
	for _, id := range s.GroupIDs() {
		names = append(names, s.DirectTools(id)...)
	}
	return names
}
