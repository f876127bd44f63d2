package gateway

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/gateway/wire"
)

// checkAccessAsCaller answers the question of a caller, which may ask only
// about its own role. Other roles, agents, tools and groups are reported as if
// they did not exist.
func (a *api) checkAccessAsCaller(v visibility, q wire.Question) (any, error) {
	q.Groups = v.filter(q.Groups)
	if q.Who != "" {
		return a.findHoldersAsCaller(v, q), nil
	}
	if q.Agent != "" {
		return a.denyOrFail(q.Tool, errcode.New(errcode.AgentNotFound, "there is no agent %q", q.Agent))
	}
	if v.role.ID == "" || q.Role != "" && q.Role != string(v.role.ID) && q.Role != v.role.Name {
		return a.denyOrFail(q.Tool, errcode.New(errcode.RoleNotFound, "there is no role %q", q.Role))
	}
	query := a.roleQuery(v.role.ID, q.State, q.Groups)
	if q.Tool == "" {
		return query.verdicts(v), nil
	}
	h, ok := v.tool(q.Tool)
	if !ok {
		return wire.Verdict{
			Code: errcode.UnknownTool, Reason: gate.Decision{Tool: q.Tool}.Reason(), Tool: q.Tool,
			Epoch: a.org().CurrentEpoch(), Rule: "no tool group has a tool of this name",
		}, nil
	}
	verdict := query.verdict(q.Tool)
	if !verdict.Allowed { // the group that owns the tool may be another one
		verdict.Group = v.groupOf(h)
	}
	return verdict, nil
}

// findHoldersAsCaller lists only the caller's own role, if it may call the
// tool.
func (a *api) findHoldersAsCaller(v visibility, q wire.Question) wire.Holders {
	out := wire.Holders{Tool: q.Who, Roles: []wire.RoleHolder{}, Agents: []wire.AgentHolder{}, Tasks: []wire.TasksHolder{}, Epoch: a.org().CurrentEpoch()}
	if _, ok := v.tool(q.Who); !ok {
		out.Code, out.Reason = errcode.UnknownTool, gate.Decision{Tool: q.Who}.Reason()
		return out
	}
	if a.roleQuery(v.role.ID, q.State, q.Groups).allows(q.Who) {
		out.Roles = append(out.Roles, wire.RoleHolder{ID: v.role.ID, Name: v.role.Name})
	}
	return out
}
