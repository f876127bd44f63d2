package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/org/hosts"
)

// Role is what agents of a kind are told and may use.
type Role struct {
	Name       string
	Prompt     string
	Model      string // "" is the organization's
	ToolGroups Groups // not Set means the organization's default
	Grant      Groups // what its agents may put into roles they make
	Limits     Limits
	Hosts      *hosts.Rule // what its agents' requests may reach; nil adds no bound
	Pattern    string      // react, plan, or "" for react
	ToolGated  bool        // its agents answer from their tools alone
	Server     string      // a module; its agents are confined to the tools it brings; "" is no bound
	ServerPos  Pos         // whether there is such a module the caller knows
	Pos        Pos
}

func readRole(it docItem) {
	role := Role{Name: it.name, Pos: it.pos}
	it.declare()
	// Root is known by a flag, never by name; the name would mislead people.
	if strings.EqualFold(it.name, "root") {
		it.nameAt.fail("root's role is made by the runtime", "its prompt is the organization's rootPrompt")
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
		it.missing("toolGated").fail("leaves the role no way to answer: its toolGroups are empty", "name the groups whose tools give its answers")
	}
	if pattern, ok := it.child("pattern"); ok && role.Pattern == "plan" {
		it.doc.deferCheck(func(used models) { pattern.checkPlanPattern(role, used) })
	}
	it.doc.config.Roles = append(it.doc.config.Roles, role)
}

// serverField reads which module a role is confined to.
func serverField(role *Role) func(value) {
	return func(v value) {
		if name, ok := v.nonEmpty(); ok {
			role.Server, role.ServerPos = name, v.pos
		}
	}
}

// oneOfField reads one of some words.
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
