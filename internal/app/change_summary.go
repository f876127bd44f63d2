package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Limits of what is said about a change.
const (
	maxChanges = 50 // roles and groups
	maxNames   = 20 // of tools, for each of them
)

// takeChanges returns by name what the last change of the configuration added and removed, once.
func (a *App) takeChanges() []string {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	list := a.changeTexts
	a.changeTexts = nil
	return list
}

// describeChanges returns by name what recorded changes of roles and groups add and remove.
// before is the registry before the change.
func describeChanges(before *toolgroups.Snapshot, events []journal.Event) []string {
	var list []string
	for _, e := range events {
		switch b := e.Body.(type) {
		case journal.RoleChanged:
			list = append(list, "role "+e.Role+" is "+b.Change+describeSuspension(b)+describeRole(b))
			for _, text := range describeTasks(b) {
				if !slices.Contains(list, text) { // both roles may have changed
					list = append(list, text)
				}
			}
		case journal.GroupRegistered:
			list = append(list, describeGroup(before, b)...)
		case journal.GroupOpened:
			list = append(list, "group "+b.Group+" is open by its hours")
		case journal.GroupClosed:
			list = append(list, "group "+b.Group+" is closed by its hours")
		case journal.GroupUnregistered:
			info, _ := before.LookupGroup(toolgroups.GroupID(b.Group))
			list = append(list, "group "+b.Group+" is removed"+describeTools(nil, info.Tools))
		}
	}
	if more := len(list) - maxChanges; more > 0 {
		list = append(list[:maxChanges], fmt.Sprintf("%d more changes of roles and groups", more))
	}
	return list
}

// describeSuspension says that a new role is suspended, "" if it is not.
func describeSuspension(b journal.RoleChanged) string {
	var role org.Role
	if b.Change != "created" || json.Unmarshal(b.Record, &role) != nil || !role.Suspended() {
		return ""
	}
	return " and suspended, because a role of this name was suspended;"
}

// describeRole returns what a changed role gains and loses.
func describeRole(b journal.RoleChanged) string {
	var diff org.PermissionDiff
	if json.Unmarshal(b.Diff, &diff) != nil { // a new role has none
		return ""
	}
	at := slices.IndexFunc(diff.Roles, func(r org.RoleDiff) bool { return r.ID == b.RoleID })
	if at < 0 {
		return ""
	}
	return describeTools(diff.Roles[at].Gains, diff.Roles[at].Loses)
}

// describeTasks returns what the tasks of callers gain and lose by a changed role.
func describeTasks(b journal.RoleChanged) (list []string) {
	var diff org.PermissionDiff
	if json.Unmarshal(b.Diff, &diff) != nil {
		return nil
	}
	for _, d := range diff.Tasks {
		what := "the bound of the tasks of role " + d.Role
		if d.As != "" {
			what += ", as " + d.As + ","
		}
		list = append(list, what+" is changed"+describeTools(d.Gains, d.Loses))
	}
	return list
}

// describeGroup returns what a registered group gains and loses, nil if its tools have the
// same names as before.
func describeGroup(before *toolgroups.Snapshot, b journal.GroupRegistered) []string {
	old, known := before.LookupGroup(toolgroups.GroupID(b.Group))
	if !known {
		return []string{"group " + b.Group + " is added" + describeTools(b.Tools, nil)}
	}
	if text := describeTools(without(b.Tools, old.Tools), without(old.Tools, b.Tools)); text != "" {
		return []string{"group " + b.Group + " is changed" + text}
	}
	return nil
}

// without returns the names of a list that another does not have.
func without(list, other []string) []string {
	known := map[string]bool{}
	for _, name := range other {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return known[name] })
}

// describeTools returns the end of a sentence about the tools that are gained and lost.
func describeTools(gains, loses []string) (text string) {
	if len(gains) > 0 {
		text += " and gains " + someNames(gains)
	}
	if len(loses) > 0 {
		text += " and loses " + someNames(loses)
	}
	return text
}

// someNames joins the first names of a list, and counts the others.
func someNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
