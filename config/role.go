package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/org/hosts"
)

// Role is a document of kind role: the prompt, model and permissions of its agents.
//
//	kind: role
//	name: analyst
//	prompt: You analyze logs.
//	toolGroups: [workspace]
//	limits: {rounds: 20}
type Role struct {
	Name       string
	Prompt     string
	Model      string // "" is the organization's model
	ToolGroups Groups // not Given means the organization's default
	Grant      Groups // groups that its agents may put into roles they create
	Limits     Limits
	Hosts      *hosts.Rule // hosts that its agents' requests may reach; nil adds no restriction
	Pattern    string      // react, plan, or "" for react
	ToolGated  bool        // its agents answer only from the results of their tools
	Server     string      // restricts its agents to the tools of this module; "" is no restriction
	ServerPos  Pos         // the caller checks that there is such a module
	Pos        Pos
}

// readRole reads a document of kind role.
func readRole(it docItem) {
	role := Role{Name: it.name, Pos: it.pos}
	it.declare()
	// The runtime recognizes root by a flag, not by its name. A role of that name
	// would only mislead people.
	if strings.EqualFold(it.name, "root") {
		it.nameAt.fail("root's role is created by the runtime", "its prompt is the organization's rootPrompt")
	}
	it.fields(
		field{"prompt", textField(&role.Prompt)},
		field{"model", referenceField("model", &role.Model)},
		field{"toolGroups", groupsField(&role.ToolGroups)},
		field{"grant", groupsField(&role.Grant)},
		field{"limits", limitsField(&role.Limits)},
		field{"hosts", hostRuleField(&role.Hosts)},
		field{"toolGated", boolField(&role.ToolGated)},
		field{"server", serverField(&role)},
		unavailable("approval"),
		field{"pattern", oneOfField(&role.Pattern, "react", "plan")},
	)
	if groups := role.ToolGroups; role.ToolGated && groups.Given && !groups.All && len(groups.IDs) == 0 {
		it.missing("toolGated").fail("leaves the role no way to answer: its toolGroups are empty", "name the groups whose tools it answers from")
	}
	if pattern, ok := it.child("pattern"); ok && role.Pattern == "plan" {
		it.doc.deferCheck(func(used models) { pattern.checkPlanPattern(role, used) })
	}
	it.doc.config.Roles = append(it.doc.config.Roles, role)
}

// serverField reads the module that a role is restricted to.
func serverField(role *Role) func(value) {
	return func(v value) {
		if name, ok := v.nonEmpty(); ok {
			role.Server, role.ServerPos = name, v.pos
		}
	}
}

// oneOfField reads a text that must be one of words.
func oneOfField(to *string, words ...string) func(value) {
	return func(v value) {
		word, ok := v.nonEmpty()
		switch {
		case !ok:
		case !slices.Contains(words, word):
			v.fail(quote(v.node.Value)+" is unknown", cmp.Or(Suggest(word, words), listHint("there are ", words)))
		default:
			*to = word
		}
	}
}
