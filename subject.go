package rolecall

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// subject returns what the gate decides about.
func (o *Organization) subject(s Subject) (*gate.Subject, error) {
	switch {
	case (s.Agent == "") == (s.Role == ""):
		return nil, errcode.New(errcode.InvalidArguments, "set exactly one of Subject.Agent and Subject.Role")
	case s.Agent != "":
		if _, ok := o.rt.Org().AgentByID(s.Agent); !ok {
			return nil, errcode.New(errcode.AgentNotFound, "agent %q not found", s.Agent)
		}
		return o.rt.Gate().Subject(identity.ByAgent(s.Agent)), nil
	}
	role, ok := o.rt.Org().RoleByName(s.Role)
	if !ok {
		return nil, errcode.New(errcode.RoleNotFound, "role %q not found", s.Role)
	}
	return o.rt.Gate().PreviewSubject(o.rt.Org().RoleView(role.ID, toolgroups.AllGroups()), ""), nil
}
