package app

import (
	"fmt"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// ruleNotes returns a note for each tool, tool group and argument that bounds and approval rules
// name and that does not exist. It may come later. If its name is misspelled, the rule protects
// nothing.
func (a *App) ruleNotes() (notes []string) {
	for _, u := range a.Runtime.Org().UnknownNames() {
		notes = append(notes, a.rolePosition(u.Role)+a.unknownNameText(u))
	}
	return notes
}

// rolePosition returns where a role of the current configuration stands, as a prefix; "" for
// another one.
func (a *App) rolePosition(name string) string {
	if a.current != nil {
		for _, r := range a.current.Roles {
			if r.Name == name {
				return fmt.Sprintf("%s: ", r.Pos)
			}
		}
	}
	return ""
}

// unknownNameText says what an unknown name means for its rule, with a similar name that exists.
func (a *App) unknownNameText(u org.UnknownName) string {
	where := "role " + u.Role
	if u.Role == org.RootRole {
		where = "organization"
	}
	s := a.groups.CurrentSnapshot()
	switch u.Field {
	case "bind":
		return fmt.Sprintf("%s: bind: there is no tool %s; until it exists, the rule does nothing", where, withSimilar(u.Name, toolNames(s)))
	case "unless":
		return fmt.Sprintf("%s: approval: unless names an argument that the tool lacks: %s; all calls of the tool wait", where, textutil.Truncate(u.Name, 256))
	case "groups":
		return fmt.Sprintf("%s: approval: there is no tool group %s; until it exists, the rule does nothing", where, withSimilar(u.Name, groupNames(s)))
	}
	return fmt.Sprintf("%s: approval: there is no tool %s; until it exists, the rule does nothing", where, withSimilar(u.Name, toolNames(s)))
}

// withSimilar returns a name, with a similar existing name.
func withSimilar(name string, known []string) string {
	text := textutil.Truncate(name, 128)
	if hint := textutil.SuggestName(name, known); hint != "" {
		text += " (" + hint + ")"
	}
	return text
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

// reportUnknownNames logs what ruleNotes says and did not say after the change before. The first
// configuration of a process is not logged: its notes are shown.
func (a *App) reportUnknownNames() {
	first, now := a.reportedUnknown == nil, map[org.UnknownName]bool{}
	for _, u := range a.Runtime.Org().UnknownNames() {
		now[u] = true
		if !first && !a.reportedUnknown[u] {
			a.options.Warn.Warn(a.unknownNameText(u))
		}
	}
	a.reportedUnknown = now
}
