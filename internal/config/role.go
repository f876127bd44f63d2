package config

import (
	"encoding/json"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// Role is a document of kind role: the prompt, model and permissions of its agents.
//
//	kind: role
//	name: analyst
//	description: Reads logs and reports figures.
//	prompt: You analyze logs.
//	toolGroups: [workspace]
//	limits: {rounds: 20}
type Role struct {
	Name        string
	Description string // one line: what its agents are for
	Prompt      string
	Model       string // "" is the organization's model
	ToolGroups  Groups // not Given means the organization's default
	Grant       Groups // groups that its agents may put into roles they create
	Limits      Limits
	Hosts       *hosts.HostRule   // hosts that its agents' requests may reach; nil adds no restriction
	Pattern     string            // react, plan, or "" for react
	ToolGated   toolgroups.Gating // unless NotGated, its agents answer only from the results of their tools
	Server      string            // restricts its agents to the tools of this module; "" is no restriction
	ServerPos   yamldoc.Pos       // the caller checks that there is such a module
	TasksAs     string            // a role of this configuration that bounds the tasks of its callers in its place; "" for none
	Result      json.RawMessage   // JSON schema that the results of its agents must fit; nil for any result
	Agent       *AskSettings      `json:",omitempty"` // lets its callers ask its agents; nil does not
	States      []string          `json:",omitempty"` // workflow states in which requests of its callers may begin
	Approval    []approval.Rule   `json:",omitempty"` // which calls of its agents and callers, and of agents below, wait for people
	Workspace   WorkspaceField    `json:",omitzero"`  // of callers in this role whose token has none
	Bind        bounds.Bind       `json:",omitempty"` // bounds the arguments of tools; nil adds no bound
	Pos         yamldoc.Pos
}

// AskSettings lets callers in a role ask the role's agents. DefaultGroups narrows a request that
// names no groups.
type AskSettings struct {
	DefaultGroups Groups // not Given means the group default
}

// readRole reads a document of kind role.
func readRole(it item) {
	role := Role{Name: it.Name, Pos: it.Pos}
	it.DeclareItem()
	checkRoleName(it)
	it.ReadFields(yamldoc.Fields{
		"description": descriptionField(&role.Description),
		"prompt":      yamldoc.TextField(&role.Prompt),
		"model":       it.ReferenceField("model", &role.Model),
		"toolGroups":  groupsField(&role.ToolGroups),
		"grant":       groupsField(&role.Grant),
		"limits":      limitsField(&role.Limits),
		"hosts":       hostRuleField(&role.Hosts),
		"toolGated":   gatingField(&role.ToolGated),
		"server":      serverField(&role),
		"tasks":       it.roleTasksField(&role),
		"result":      resultField(&role.Result),
		"agent":       askSettingsField(&role.Agent),
		"states":      statesField(&role.States),
		"workspace":   it.workspaceField(&role.Workspace),
		"bind":        bindField(&role.Bind),
		"approval":    approvalField(&role.Approval),
		"pattern":     yamldoc.OneOfField(&role.Pattern, "react", "plan"),
	})
	if groups := role.ToolGroups; role.ToolGated != toolgroups.NotGated && groups.Given && !groups.All && len(groups.IDs) == 0 {
		it.MissingField("toolGated").AddError("leaves the role no way to answer: its toolGroups are empty", "name the groups whose tools it answers from")
	}
	if pattern, ok := it.FindField("pattern"); ok && role.Pattern == "plan" {
		it.r.deferCheck(func(models) { it.r.checkPlanPattern(pattern, role) })
	}
	it.r.config.Roles = append(it.r.config.Roles, role)
}

// checkRoleName rejects names that roles may not have. Other checks reject names that no
// document may have. The runtime recognizes root by a flag, not by its name. A role of
// that name would only mislead people.
func checkRoleName(it item) {
	if strings.EqualFold(it.Name, org.RootRole) {
		it.NameAt.AddError("root's role is created by the runtime", "its prompt is the organization's rootPrompt")
		return
	}
	if err := org.CheckRoleName(it.Name); err != nil && it.Name != "" && yamldoc.NameProblem(it.Name) == "" {
		it.NameAt.AddError(errcode.Message(err), "")
	}
}

// descriptionField reads a description. YAML's folded text ends in a line break, which is
// not part of it.
func descriptionField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadText()
		if !ok {
			return
		}
		*to = strings.TrimSpace(text)
		if err := org.CheckDescription(*to); err != nil {
			_, problem, _ := strings.Cut(errcode.Message(err), "the description ")
			v.AddError(problem, "")
		}
	}
}

// roleTasksField reads what bounds the tasks that callers in a role start.
func (it item) roleTasksField(role *Role) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		yamldoc.MappingField(yamldoc.Fields{"as": it.ReferenceField("role", &role.TasksAs)})(v)
		if _, ok := v.FindField("as"); v.IsMapping() && !ok {
			v.MissingField("as").AddError("is missing", "name the role that bounds the tasks of its callers")
		}
	}
}

// askSettingsField reads what lets callers ask the agents of a role.
func askSettingsField(to **AskSettings) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		*to = new(AskSettings)
		yamldoc.MappingField(yamldoc.Fields{"defaultGroups": groupsField(&(*to).DefaultGroups)})(v)
	}
}

// statesField reads the workflow states in which requests of callers may begin.
func statesField(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of workflow states", "for example [analysis]")
			return
		}
		for _, item := range v.ListItems() {
			state, ok := item.ReadText()
			if !ok {
				continue
			}
			if problem := org.StateProblem(state); problem != "" {
				item.AddError(problem, "")
				continue
			}
			*to = append(*to, state)
		}
	}
}

// gatingField reads whether the agents of a role answer from the results of their tools only:
// true, false or strict.
func gatingField(to *toolgroups.Gating) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		word, ok := v.Node.Value, v.Node.Tag == "!!bool" || v.Node.Value == toolgroups.StrictlyGated.String()
		if v.HasVariable() {
			if word, ok = v.ReadText(); !ok {
				return
			}
		}
		gating, err := toolgroups.ParseGating(word)
		if !ok || err != nil {
			v.AddTypeError("true, false or strict", "")
			return
		}
		*to = gating
	}
}

// serverField reads the module that a role is restricted to.
func serverField(role *Role) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if name, ok := v.ReadNonEmpty(); ok {
			role.Server, role.ServerPos = name, v.Pos
		}
	}
}

// resultField reads what the results of a role's agents must be.
func resultField(to *json.RawMessage) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		yamldoc.MappingField(yamldoc.Fields{"schema": schemaField(to)})(v)
		if !v.IsMapping() {
			return
		}
		if _, ok := v.FindField("schema"); !ok {
			v.MissingField("schema").AddError("is missing", "write the JSON schema of the result, such as {type: object}")
		}
	}
}

// schemaField reads the JSON schema of a result, which is written as YAML.
func schemaField(to *json.RawMessage) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		schema := v.ReadObject()
		if schema == nil {
			return
		}
		if problem := org.ResultProblem(schema); problem != "" {
			schemaError(v, problem)
			return
		}
		*to = schema
	}
}

// schemaError reports a problem of a schema, at the keyword if the problem begins with the
// path of one.
func schemaError(v yamldoc.Value, problem string) {
	if path, rest, ok := strings.Cut(problem, ": "); ok && !strings.Contains(path, " ") {
		v, problem = v.LocatePath(path), rest
	}
	v.AddError("is not valid in a JSON schema: "+problem, "")
}
