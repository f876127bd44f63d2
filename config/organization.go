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
	Limits            OrganizationLimits
	Budget            Budget
	Pos               Pos
}

// Budget bounds what the models of one task may use up. A zero bound is not
// set.
type Budget struct {
	Tokens int64
	Cost   int64 // billionths of the currency of prices
}

// OrganizationLimits bounds what an agent may do in one go and what all may
// keep. A zero limit is not set.
type OrganizationLimits struct {
	Limits
	WorkspaceBytes int64 // of all files in one workspace
	WorkspaceFiles int64 // and folders
	ArtifactBytes  int64 // of one artifact's content
}

// The most that a configuration may allow.
const (
	maxWorkspaceBytes = 1 << 50
	maxWorkspaceFiles = 10_000_000
	maxArtifactBytes  = 256 << 20 // it is in memory whole
	maxBudget         = 1 << 50   // tokens
)

// Limits bounds what an agent may do in one go. A zero limit is not set.
type Limits struct {
	Rounds int // of tool calls in one turn
}

func readOrganization(it docItem) {
	org := Organization{Name: it.name, Pos: it.pos}
	it.fields(
		field{"rootPrompt", textField(&org.RootPrompt)},
		field{"model", referenceField("model", &org.Model)},
		field{"defaultToolGroups", groupsField(&org.DefaultToolGroups)},
		field{"limits", organizationLimitsField(&org.Limits)},
		field{"budget", mappingField(
			field{"tokens", boundedInt(&org.Budget.Tokens, maxBudget)},
			field{"cost", priceField(&org.Budget.Cost)},
		)},
		unavailable("profile"),
	)
	to := &it.doc.config.Organization
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("a second organization; the first is at %s", to.Pos), "a configuration has one")
		return
	}
	*to = org
}

func limitsField(to *Limits) func(value) {
	return mappingField(field{"rounds", countField(&to.Rounds)})
}

func organizationLimitsField(to *OrganizationLimits) func(value) {
	return mappingField(
		field{"rounds", countField(&to.Rounds)},
		field{"workspaceBytes", boundedInt(&to.WorkspaceBytes, maxWorkspaceBytes)},
		field{"workspaceFiles", boundedInt(&to.WorkspaceFiles, maxWorkspaceFiles)},
		field{"artifactBytes", boundedInt(&to.ArtifactBytes, maxArtifactBytes)},
	)
}

// mappingField reads a mapping of the fields known.
func mappingField(known ...field) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping", "")
			return
		}
		v.fields(known)
	}
}

func boundedInt(to *int64, most int64) func(value) {
	return func(v value) {
		if n, ok := v.integer(1, most, fmt.Sprintf("a whole number from 1 to %d", most)); ok {
			*to = n
		}
	}
}

func countField(to *int) func(value) {
	return func(v value) {
		if n, ok := v.positiveInt(); ok {
			*to = n
		}
	}
}
