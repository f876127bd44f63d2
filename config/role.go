package config

import (
	"strings"

	"github.com/rolecall/rolecall/hosts"
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
	Pos        Pos
}

func readRole(it item) {
	role := Role{Name: it.name, Pos: it.pos}
	it.declare()
	// Root is known by a flag, never by name; the name would mislead people.
	if strings.EqualFold(it.name, "root") {
		it.nameAt.fail("root's role is made by the runtime", "its prompt is the organization's rootPrompt")
	}
	it.fields(
		field{"prompt", text(&role.Prompt)},
		field{"model", refer("model", &role.Model)},
		field{"toolGroups", groups(&role.ToolGroups)},
		field{"grant", groups(&role.Grant)},
		field{"limits", limitFields(&role.Limits)},
		field{"hosts", hostRule(&role.Hosts)},
		later("toolGated"),
		later("server"),
		later("approval"),
		later("pattern"),
	)
	it.doc.config.Roles = append(it.doc.config.Roles, role)
}
