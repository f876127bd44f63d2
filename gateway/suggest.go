package gateway

import (
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

// Errors and denials for unknown names suggest the most similar name, to the operator only. Looking
// for it takes time for each known name.

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

// suggestibleNames lists the names of the tools that an error may suggest to the sender: all to
// the operator, none to others.
func (v visibility) suggestibleNames() (names []string) {
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
