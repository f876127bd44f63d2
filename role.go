package rolecall

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// RoleSpec specifies a role to create.
type RoleSpec struct {
	Name        string
	Description string          // what its agents do, in one line
	Prompt      string          // instructions for its agents
	ToolGroups  []GroupID       // that its agents may use; nil is none
	Grant       []GroupID       // that its agents may grant to roles they create; nil is none
	Model       string          // a name of Options.Models; "" is Options.Model. Only Organization sets it
	Result      json.RawMessage // JSON schema of its agents' results; nil is any. Only Organization sets it
}

// Role is a role that was created.
type Role struct {
	ID   RoleID `json:"id"`
	Name string `json:"name"`
}

// CreateRole creates a role on behalf of the operator. A task may have agents of this role if
// its limits allow the role. If the operator has created a role with the same specification,
// CreateRole returns that role. Errors: RoleExists if the role of this name has another one, InvalidRole, GroupNotFound.
func (o *Organization) CreateRole(ctx context.Context, s RoleSpec) (Role, error) {
	if err := ctx.Err(); err != nil {
		return Role{}, err
	}
	role, err := o.rt.CreateRole(ctx, tool.Call{By: byProgram}, s.spec())
	return Role{role.ID, role.Name}, err
}

// EnsureRole creates a role on behalf of the operator. If the operator has created a role of this
// name, EnsureRole changes that role to s. Programs call it at each start. When it returns, agents
// at work, callers and their tasks have the new permissions. A suspended role stays suspended.
//
// Errors: those of CreateRole. RoleExists means that an agent has created the role. Conflict means
// that a configuration has created it. Such roles stay as they are.
func (o *Organization) EnsureRole(ctx context.Context, s RoleSpec) (Role, error) {
	made, err := o.CreateRole(ctx, s)
	if errcode.CodeOf(err) != errcode.RoleExists {
		return made, err
	}
	old, ok := o.rt.Org().RoleByName(s.Name)
	if !ok || old.CreatedBy != org.CreatorOperator && old.CreatedBy != org.CreatorConfig {
		return Role{}, err
	}
	spec := s.spec()
	spec.Defaults = s.unsetFields()
	role, _, err := o.rt.UpdateRole(byProgram, old.ID, spec, org.Apply)
	if err != nil {
		return Role{}, err
	}
	return Role{role.ID, role.Name}, nil
}

// byProgram is the operator as which a program changes roles.
var byProgram = Operator("program")

// spec returns the specification for the runtime.
func (s RoleSpec) spec() org.RoleSpec {
	use, grant := toolgroups.SetOf(s.ToolGroups...), toolgroups.SetOf(s.Grant...)
	spec := org.RoleSpec{Name: s.Name, Description: s.Description, Prompt: s.Prompt, Model: s.Model, Use: &use, Grant: &grant}
	if s.Result != nil {
		spec.Result = &org.ResultSpec{Schema: s.Result}
	}
	return spec
}

// unsetFields lists the fields that s leaves out, in the order of RoleSpec. An update would keep
// these fields.
func (s RoleSpec) unsetFields() (fields []org.RoleField) {
	for _, f := range []struct {
		field   org.RoleField
		missing bool
	}{
		{org.DescriptionField, s.Description == ""},
		{org.PromptField, s.Prompt == ""},
		{org.ModelField, s.Model == ""},
		{org.ResultField, s.Result == nil},
	} {
		if f.missing {
			fields = append(fields, f.field)
		}
	}
	return fields
}

// Subject is an agent, or a role by its name. Exactly one field is set.
type Subject struct {
	Agent AgentID
	Role  string
}

// Access is the answer to whether a tool may be called.
type Access struct {
	Allowed bool
	Reason  string
}

// Tools lists the names of the tools that an agent may call now. For a role it lists what
// agents of the role may call if nothing else limits them. Errors: RoleNotFound,
// AgentNotFound, InvalidArguments.
func (o *Organization) Tools(s Subject) ([]string, error) {
	subject, err := o.subject(s)
	if err != nil {
		return nil, err
	}
	return append([]string{}, subject.ToolNames()...), nil
}

// Can reports whether an agent, or an agent of a role, may call a tool now. Errors: as Tools.
func (o *Organization) Can(s Subject, tool string) (Access, error) {
	subject, err := o.subject(s)
	if err != nil {
		return Access{}, err
	}
	d := subject.AuthorizeTool(tool)
	return Access{d.Allowed(), d.Reason()}, nil
}

// checkTaskRole rejects a role of a task if it has a field that create_role has no argument for.
func (s RoleSpec) checkTaskRole() error {
	if s.Model != "" || s.Result != nil {
		return errcode.New(errcode.InvalidArguments, "create role %q in a task: only Organization.CreateRole sets Model and Result", s.Name)
	}
	return nil
}
