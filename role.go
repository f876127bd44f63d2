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
	Grant       []GroupID       // that its agents may give to roles they create; nil is none
	Model       string          // a name of Options.Models; "" is Options.Model. Only of Organization.CreateRole
	Result      json.RawMessage // JSON schema of its agents' results; nil is any. Only of Organization.CreateRole
}

// Role is a role that was created.
type Role struct {
	ID   RoleID `json:"id"`
	Name string `json:"name"`
}

// CreateRole creates a role on behalf of the operator. Agents of all tasks whose limits
// allow it may be of this role. Errors: RoleExists, InvalidRole, GroupNotFound.
func (o *Organization) CreateRole(ctx context.Context, s RoleSpec) (Role, error) {
	if err := ctx.Err(); err != nil {
		return Role{}, err
	}
	use, grant := toolgroups.SetOf(s.ToolGroups...), toolgroups.SetOf(s.Grant...)
	spec := org.RoleSpec{Name: s.Name, Description: s.Description, Prompt: s.Prompt, Model: s.Model, Use: &use, Grant: &grant}
	if s.Result != nil {
		spec.Result = &org.ResultSpec{Schema: s.Result}
	}
	role, err := o.rt.CreateRole(ctx, tool.Call{By: Operator("program")}, spec)
	return Role{role.ID, role.Name}, err
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

// Tools lists the names of the tools that an agent may call now, or that agents of a role
// may call if nothing else limits them. Errors: RoleNotFound, AgentNotFound, InvalidArguments.
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

// checkOfTask rejects what create_role has no argument for.
func (s RoleSpec) checkOfTask() error {
	if s.Model != "" || s.Result != nil {
		return errcode.New(errcode.InvalidArguments, "create role %q in a task: only Organization.CreateRole sets Model and Result", s.Name)
	}
	return nil
}
