package org

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// RoleField is a field of a role that an update can set to its default, as Role names it in
// JSON. A field within limits follows "limits.".
type RoleField string

// The fields that have a default.
const (
	DescriptionField RoleField = "description"
	PromptField      RoleField = "rolePrompt"
	ModelField       RoleField = "llmServiceId"
	UseField         RoleField = "toolGroups"
	GrantField       RoleField = "grant"
	LimitsField      RoleField = "limits"
	RoundsField      RoleField = "limits.rounds"
	BudgetField      RoleField = "limits.budget"
	DepthField       RoleField = "limits.depth"
	HiresField       RoleField = "limits.hires"
	SecondsField     RoleField = "limits.seconds"
	HostsField       RoleField = "hosts"
	PatternField     RoleField = "pattern"
	ToolGatedField   RoleField = "toolGated"
	ServerField      RoleField = "server"
	TasksField       RoleField = "tasks"
	ResultField      RoleField = "result"
	AgentField       RoleField = "agent"
	StatesField      RoleField = "states"
	BindField        RoleField = "bind"
)

// setDefault sets a field of a complete specification to the value that a role gets which
// is created without it. old is the role that the specification changes.
func (o *Org) setDefault(spec *RoleSpec, field RoleField, old *Role) error {
	switch field {
	case DescriptionField:
		spec.Description = ""
	case PromptField:
		spec.Prompt = ""
	case ModelField:
		spec.Model = ""
	case UseField:
		use := o.defaultUse(ceiling(o.lookupRole, old))
		spec.Use = &use
	case GrantField:
		spec.Grant = nil
	case LimitsField:
		spec.Limits = AgentLimits{}
	case HostsField:
		spec.Hosts = nil
	case PatternField:
		spec.Pattern = ""
	case ToolGatedField:
		spec.ToolGated = nil
	case ServerField:
		spec.Server = nil
	case TasksField: // see revise
	case ResultField:
		spec.Result = nil
	case AgentField:
		spec.Agent = nil
	case StatesField:
		spec.States = nil
	case BindField:
		spec.Bind = nil
	default:
		if !spec.Limits.remove(field) {
			return errcode.New(errcode.InvalidRole, "role %q: the field %q has no default", spec.Name, field)
		}
	}
	return nil
}

// remove removes one limit. It reports false if the field is not a limit.
func (l *AgentLimits) remove(field RoleField) bool {
	switch field {
	case RoundsField:
		l.Rounds = 0
	case BudgetField:
		l.Budget = ModelAllowance{}
	case DepthField:
		l.Depth = 0
	case HiresField:
		l.Hires = 0
	case SecondsField:
		l.Seconds = 0
	default:
		return false
	}
	return true
}

// defaultUse returns the Use of a role that is created without one, within limits.
func (o *Org) defaultUse(limits []constraint) toolgroups.GroupSet {
	return o.groupsWithin(o.defaultGroups, limits)
}
