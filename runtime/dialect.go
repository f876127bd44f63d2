package runtime

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/model"
)

// dialectPrefixes are the namespaces that language models were trained to write before the
// name of a tool. A separator follows: ".", "/" or ":".
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

// resolveToolName returns the name of the tool that a language model means by a name. That is the
// tool of exactly this name. If no tool has this name, it is the tool of the plain name, provided
// that the agent may call it.
func resolveToolName(s *gate.Subject, name string) string {
	plain := plainName(name)
	if plain == name || s.AuthorizeTool(name).Code() != errcode.UnknownTool || !s.AuthorizeTool(plain).Allowed() {
		return name
	}
	return plain
}

// resolveToolNames returns calls with the names of the tools that a language model means. The gate
// takes names as they are.
func resolveToolNames(s *gate.Subject, calls []model.Call) []model.Call {
	if !slices.ContainsFunc(calls, func(c model.Call) bool { return plainName(c.Name) != c.Name }) {
		return calls
	}
	calls = slices.Clone(calls)
	for i := range calls {
		calls[i].Name = resolveToolName(s, calls[i].Name)
		s = s.AfterCall(calls[i].Name)
	}
	return calls
}
