package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Organization is the document of kind organization: the prompt of root, defaults
// for roles, and limits. A configuration has at most one.
//
//	kind: organization
//	name: lab
//	rootPrompt: You run a laboratory.
//	model: claude
//	limits: {rounds: 50}
//	budget: {tokens: 2000000}
type Organization struct {
	Name              string
	RootPrompt        string
	Model             string // of root and of roles without a model; "" is the runtime's default
	DefaultToolGroups Groups // of roles without toolGroups; not Given means all
	Limits            OrganizationLimits
	Budget            Budget
	Pos               Pos
}

// Budget limits what the models of one task may use. A zero field is not set.
type Budget struct {
	Tokens int64
	Cost   int64 // in billionths of the currency unit of prices
}

// OrganizationLimits limits the turns of agents and the size of what they store. A
// zero field is not set.
type OrganizationLimits struct {
	Limits
	WorkspaceBytes int64 // of all files in one workspace
	WorkspaceFiles int64 // files and folders in one workspace
	ArtifactBytes  int64 // of one artifact's content
}

// The largest limits that a document may set.
const (
	maxWorkspaceBytes = 1 << 50
	maxWorkspaceFiles = 10_000_000
	maxArtifactBytes  = 256 << 20 // an artifact is held in memory
	maxBudget         = 1 << 50   // tokens
)

// Limits limits one turn of an agent. A zero field is not set.
type Limits struct {
	Rounds int // rounds of tool calls in one turn
}

// readOrganization reads the document of kind organization.
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
		it.fail(fmt.Sprintf("duplicate organization; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = org
}

// limitsField reads the limits of a role.
func limitsField(to *Limits) func(value) {
	return mappingField(field{"rounds", countField(&to.Rounds)})
}

// organizationLimitsField reads the limits of the organization.
func organizationLimitsField(to *OrganizationLimits) func(value) {
	return mappingField(
		field{"rounds", countField(&to.Rounds)},
		field{"workspaceBytes", boundedInt(&to.WorkspaceBytes, maxWorkspaceBytes)},
		field{"workspaceFiles", boundedInt(&to.WorkspaceFiles, maxWorkspaceFiles)},
		field{"artifactBytes", boundedInt(&to.ArtifactBytes, maxArtifactBytes)},
	)
}

// mappingField reads a mapping with the fields known.
func mappingField(known ...field) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping", "")
			return
		}
		v.fields(known)
	}
}

// boundedInt reads a whole number from 1 to most.
func boundedInt(to *int64, most int64) func(value) {
	return func(v value) {
		if n, ok := v.integer(1, most, fmt.Sprintf("a whole number from 1 to %d", most)); ok {
			*to = n
		}
	}
}

// countField reads a whole number from 1.
func countField(to *int) func(value) {
	return func(v value) {
		if n, ok := v.positiveInt(); ok {
			*to = n
		}
	}
}
