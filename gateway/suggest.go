package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Errors and denials for unknown names suggest the most similar one, to the operator only:
// looking for it takes time for each known name.

// withSuggestion adds the name of known that is most similar to an unknown name to a text.
func withSuggestion(text, name string, known []string) string {
	return textutil.AddHint(text, textutil.SuggestName(name, known))
}

// findRole returns the active role with this id or name.
func (a *api) findRole(ref string) (org.Role, error) {
	role, err := a.org().FindRole(ref)
	if errcode.CodeOf(err) != errcode.RoleNotFound {
		return role, err
	}
	return role, errcode.New(errcode.RoleNotFound, "%s", textutil.AddHint(errcode.Message(err), a.org().SuggestRole(ref)))
}

// agentRoles lists the names of the roles that active agents have.
func (a *api) agentRoles() (names []string) {
	for _, agent := range a.org().ListAgents("") {
		names = append(names, a.roleName(agent.Role))
	}
	return names
}

// names lists the names of the tools that are suggested to the sender.
func (v visibility) names() (names []string) {
	if !v.all {
		return nil
	}
	for _, h := range v.tools() {
		names = append(names, h.Definition.Name)
	}
	return names
}

// groupNotFound returns the error for a group that does not exist or is not visible.
func (v visibility) groupNotFound(id string) error {
	var known []string
	if v.all {
		for _, g := range v.snapshot.GroupIDs() {
			known = append(known, string(g))
		}
	}
	return errcode.New(errcode.GroupNotFound, "%s", withSuggestion(fmt.Sprintf("there is no tool group %q", id), id, known))
}

// maxKnownStates limits the states that an error lists.
const maxKnownStates = 20

// checkState returns the error for a workflow state that no visible tool names, neither as
// one in which it is offered nor as the one that it leads to. "" is no state.
func (v visibility) checkState(state string) error {
	known := map[string]bool{toolgroups.Undefined: true}
	for _, h := range v.tools() {
		for _, name := range append(slices.Clone(h.Definition.States), h.Definition.State) {
			known[name] = name != "" && name != "*"
		}
	}
	if state == "" || known[state] {
		return nil
	}
	maps.DeleteFunc(known, func(_ string, names bool) bool { return !names })
	list := slices.Sorted(maps.Keys(known))
	text := withSuggestion(fmt.Sprintf("no tool names the workflow state %q", state), state, list)
	if more := len(list) - maxKnownStates; more > 0 {
		list = append(list[:maxKnownStates], fmt.Sprintf("%d more", more))
	}
	return errcode.New(errcode.InvalidArguments, "%s", textutil.AddHint(text, "known: "+strings.Join(list, ", "))).With("field", "state")
}

// checkGroups returns the error for the first of the groups that does not exist. A nil set
// has none.
func (v visibility) checkGroups(set *toolgroups.GroupSet) error {
	if set == nil || set.IsAll() {
		return nil
	}
	for _, id := range set.GroupIDs() {
		if _, ok := v.group(id); !ok && v.snapshot.KnownOwner(id) == "" {
			return v.groupNotFound(string(id))
		}
	}
	return nil
}
