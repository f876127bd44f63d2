package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Organization is the one document about all: what root is told, and what
// roles get that name nothing of their own.
type Organization struct {
	Name              string
	RootPrompt        string
	Model             string // of root, and of roles that name none; "" is the runtime's own
	DefaultToolGroups Groups // of roles without toolGroups; not Set means all
	Limits            Limits
	Pos               Pos
}

// Limits bounds what an agent may do in one go. A zero limit is not set.
type Limits struct {
	Rounds int // of tool calls in one turn
}

func readOrganization(it item) {
	org := Organization{Name: it.name, Pos: it.pos}
	it.fields(
		field{"rootPrompt", text(&org.RootPrompt)},
		field{"model", refer("model", &org.Model)},
		field{"defaultToolGroups", groups(&org.DefaultToolGroups)},
		field{"limits", limitFields(&org.Limits)},
		later("profile"),
		later("budget"),
	)
	to := &it.doc.config.Organization
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("a second organization; the first is at %s", to.Pos), "a configuration has one")
		return
	}
	*to = org
}

func limitFields(to *Limits) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.wrong("a mapping", "")
			return
		}
		v.fields([]field{{"rounds", count(&to.Rounds)}})
	}
}

func count(to *int) func(value) {
	return func(v value) {
		if n, ok := v.count(); ok {
			*to = n
		}
	}
}
