package gateway

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
)

// canCaller answers a question of a caller, who may ask about its own role, and
// need not name it. To it nobody else exists, nor a tool or a group that its role has not.
func (a *api) canCaller(s visibility, q Question) any {
	q.Groups = s.filter(q.Groups)
	if q.Who != "" {
		return a.whoCaller(s, q)
	}
	if q.Agent != "" {
		return a.unknown(q.Tool, errcode.New(errcode.AgentNotFound, "there is no agent %q", q.Agent))
	}
	if q.Role == "" {
		q.Role = string(s.role.ID)
	}
	id, err := a.roleID(q.Role)
	if err != nil || id != s.role.ID {
		return a.unknown(q.Tool, errcode.New(errcode.RoleNotFound, "there is no role %q", q.Role))
	}
	h, ok := s.tool(q.Tool)
	if !ok {
		return Verdict{
			Code: errcode.UnknownTool, Reason: gate.Decision{Tool: q.Tool}.Reason(), Tool: q.Tool,
			Epoch: a.org().Epoch(), Rule: "no tool group has a tool of this name",
		}
	}
	v := a.roleJudge(id, q.State, q.Groups).verdict(q.Tool)
	v.Group = s.groupOf(h)
	return v
}

// whoCaller lists of those who may call a tool the caller's own role.
func (a *api) whoCaller(s visibility, q Question) Holders {
	out := Holders{Tool: q.Who, Roles: []RoleHolder{}, Agents: []AgentHolder{}, Epoch: a.org().Epoch()}
	if _, ok := s.tool(q.Who); !ok {
		out.Code, out.Reason = errcode.UnknownTool, gate.Decision{Tool: q.Who}.Reason()
		return out
	}
	if a.roleJudge(s.role.ID, q.State, q.Groups).allows(q.Who) {
		out.Roles = append(out.Roles, RoleHolder{s.role.ID, s.role.Name})
	}
	return out
}
