package gate

import (
	"strings"

	"github.com/rolecall/rolecall/identity"
)

// dialectPrefixes are the namespaces that models were trained to write before the name of a
// tool. A separator follows: ".", "/" or ":".
var dialectPrefixes = []string{"functions", "default_api", "tools"}

// plainName returns the name of a tool without spaces around it and without a namespace of
// dialectPrefixes.
func plainName(name string) string {
	name = strings.TrimSpace(name)
	for _, prefix := range dialectPrefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && strings.ContainsRune("./:", rune(rest[0])) {
			return strings.TrimSpace(rest[1:])
		}
	}
	return name
}

// authorizeCall decides about the tool that an agent means by a name. That is the tool of this
// name. If no tool has it, it is the tool of the plain name, provided that the agent may call
// it. The names of other callers are exact. The Decision has the name of the tool.
func (s *Subject) authorizeCall(name string) Decision {
	d := s.AuthorizeTool(name)
	if d.handle != nil || s.Principal.Kind != identity.Agent {
		return d
	}
	if plain := plainName(name); plain != name {
		if meant := s.AuthorizeTool(plain); meant.Allowed() {
			return meant
		}
	}
	return d
}

// ToolName returns the name of the tool that a call by this name would run. If it would be
// denied, ToolName returns name.
func (s *Subject) ToolName(name string) string { return s.authorizeCall(name).Tool }
