package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups/approval"
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
	Grant             Groups // what root may put into roles it creates; not Given means all
	Limits            OrganizationLimits
	Budget            Budget
	Retention         Retention       `json:",omitzero"`
	Approval          []approval.Rule `json:",omitempty"` // which calls of all agents and callers wait for people
	Workspace         WorkspaceField  `json:",omitzero"`  // of callers whose token and role have none
	Pos               yamldoc.Pos
}

// Retention is how long files are kept that no task needs any more. A zero field keeps them
// for ever.
type Retention struct {
	Recordings     time.Duration // recordings of models, from the end of their task
	RecordingBytes int64         // all recordings together; the oldest of ended tasks go first
	Workspaces     time.Duration // private workspaces of tasks that are done, from their end
}

// Budget limits what the agents of one task may use. A zero field is not set.
type Budget struct {
	Tokens int64 // NoLimit for any number
	Cost   int64 // in billionths of the currency unit of prices
	Calls  int64 `json:",omitzero"` // of tools
	WarnAt int   `json:",omitzero"` // percent of a limit after which a warning is recorded; NoLimit for none
}

// OrganizationLimits limits the turns of agents and the size of what they store. A
// zero field is not set.
type OrganizationLimits struct {
	Limits
	WorkspaceBytes int64 // of all files in one workspace
	WorkspaceFiles int64 // files and folders in one workspace
	ArtifactBytes  int64 // of one artifact's content
	DiskReserve    int64 // free space of the disk below which no work begins

	RecordedPerTask   int64 // bytes recorded for one task
	RecordedPerCaller int64 // bytes recorded for one external caller and its tasks
	Recorded          int64 // bytes recorded in the organization

	Connections           int64 // open TCP connections of the server
	ConnectionsPerAddress int64 // connections of one address

	Roles  int // that the agents of one task create
	Agents int // of one task, not terminated
	Depth  int // agents above an agent
	Calls  int // tool calls of one answer
	Mail   int // messages that wait for one agent
	Turns  int // turns of the agents of one task

	Hires    int // agents that one agent spawns
	Requests int // requests to language models in one task
}

// The largest limits that a document may set.
const (
	maxWorkspaceBytes = 1 << 50
	maxWorkspaceFiles = 10_000_000
	maxArtifactBytes  = 256 << 20 // an artifact is held in memory
	maxDiskReserve    = 1 << 50
	maxRecorded       = 1 << 60
	maxBudget         = 1 << 50 // tokens, or calls
	maxConnections    = 16_384  // each new connection looks at all of them
	maxRetention      = 10 * 366 * 24 * time.Hour
)

// Limits limits an agent. A zero field is not set.
type Limits struct {
	Rounds int         // rounds of tool calls in one turn
	Budget AgentBudget `json:",omitzero"` // only of a role, like the rest

	Depth   int `json:",omitempty"` // levels of agents below one of its agents
	Hires   int `json:",omitempty"` // agents that one agent spawns
	Seconds int `json:",omitempty"` // that a task takes that begins in the role
}

// AgentBudget limits what an agent and those below it use. A zero field is not set.
type AgentBudget struct {
	Tokens   int64
	Cost     int64 // in billionths of the currency unit of prices
	Requests int64 // to language models
	Calls    int64 // of tools
}

// readOrganization reads the document of kind organization.
func readOrganization(it item) {
	org := Organization{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"rootPrompt":        yamldoc.TextField(&org.RootPrompt),
		"model":             it.ReferenceField("model", &org.Model),
		"defaultToolGroups": groupsField(&org.DefaultToolGroups),
		"grant":             groupsField(&org.Grant),
		"approval":          approvalField(&org.Approval),
		"limits":            organizationLimitsField(&org.Limits),
		"workspace":         it.workspaceField(&org.Workspace),
		"budget": yamldoc.MappingField(yamldoc.Fields{
			"tokens": tokensField(&org.Budget.Tokens),
			"cost":   priceField(&org.Budget.Cost),
			"calls":  yamldoc.Int64Field(&org.Budget.Calls, maxBudget),
			"warnAt": percentField(&org.Budget.WarnAt),
		}),
		"retention": yamldoc.MappingField(yamldoc.Fields{
			"recordings":     yamldoc.DurationField(&org.Retention.Recordings, maxRetention),
			"recordingBytes": yamldoc.Int64Field(&org.Retention.RecordingBytes, maxRecorded),
			"workspaces":     yamldoc.DurationField(&org.Retention.Workspaces, maxRetention),
		}),
		"profile": nil,
	})
	to := &it.r.config.Organization
	if to.Pos != (yamldoc.Pos{}) {
		it.AddError(fmt.Sprintf("duplicate organization; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = org
}

// NoLimit is the value of a limit that does not limit.
const NoLimit = -1

// tokensField reads a number of tokens, or none.
func tokensField(to *int64) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch text := v.Node.Value; {
		case text == "none":
			*to = NoLimit
		case text == "0" || strings.Trim(text, "0123456789") != "":
			v.AddTypeError(fmt.Sprintf("a whole number from 1 to %d, or none", int64(maxBudget)), "none sets no limit")
		default:
			yamldoc.Int64Field(to, maxBudget)(v)
		}
	}
}

// percentField reads a number of percent, or none.
func percentField(to *int) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		n, err := strconv.Atoi(v.Node.Value)
		switch {
		case v.Node.Value == "none":
			*to = NoLimit
		case err != nil || n < 1 || n > 100:
			v.AddTypeError("a whole number from 1 to 100, or none", "none records no warnings")
		default:
			*to = n
		}
	}
}

// limitsField reads the limits of a role.
func limitsField(to *Limits) func(yamldoc.Value) {
	return yamldoc.MappingField(yamldoc.Fields{
		"rounds":  yamldoc.CountField(&to.Rounds),
		"depth":   yamldoc.CountField(&to.Depth),
		"hires":   yamldoc.CountField(&to.Hires),
		"seconds": yamldoc.CountField(&to.Seconds),
		"budget": yamldoc.MappingField(yamldoc.Fields{
			"tokens":   yamldoc.Int64Field(&to.Budget.Tokens, maxBudget),
			"cost":     priceField(&to.Budget.Cost),
			"requests": yamldoc.Int64Field(&to.Budget.Requests, maxBudget),
			"calls":    yamldoc.Int64Field(&to.Budget.Calls, maxBudget),
		}),
	})
}

// organizationLimitsField reads the limits of the organization.
func organizationLimitsField(to *OrganizationLimits) func(yamldoc.Value) {
	return yamldoc.MappingField(yamldoc.Fields{
		"rounds":                yamldoc.CountField(&to.Rounds),
		"workspaceBytes":        yamldoc.Int64Field(&to.WorkspaceBytes, maxWorkspaceBytes),
		"workspaceFiles":        yamldoc.Int64Field(&to.WorkspaceFiles, maxWorkspaceFiles),
		"artifactBytes":         yamldoc.Int64Field(&to.ArtifactBytes, maxArtifactBytes),
		"connections":           yamldoc.Int64Field(&to.Connections, maxConnections),
		"connectionsPerAddress": yamldoc.Int64Field(&to.ConnectionsPerAddress, maxConnections),
		"roles":                 yamldoc.CountField(&to.Roles),
		"agents":                yamldoc.CountField(&to.Agents),
		"depth":                 yamldoc.CountField(&to.Depth),
		"calls":                 yamldoc.CountField(&to.Calls),
		"mail":                  yamldoc.CountField(&to.Mail),
		"turns":                 yamldoc.CountField(&to.Turns),
		"hires":                 yamldoc.CountField(&to.Hires),
		"requests":              yamldoc.CountField(&to.Requests),
		"diskReserve":           yamldoc.Int64Field(&to.DiskReserve, maxDiskReserve),
		"recordedPerTask":       yamldoc.Int64Field(&to.RecordedPerTask, maxRecorded),
		"recordedPerCaller":     yamldoc.Int64Field(&to.RecordedPerCaller, maxRecorded),
		"recorded":              yamldoc.Int64Field(&to.Recorded, maxRecorded),
	})
}
