package gateway

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// checkAccessAsCaller answers the question of a caller, which may ask only
// about its own role. Other roles, agents, tools and groups are reported as if
// they did not exist.
func (a *api) checkAccessAsCaller(r *http.Request, v visibility, q wire.Question) (any, error) {
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
	var query accessQuery
	if q.Caller == "" {
		query = a.callerRoleQuery(v.caller, q.State, q.Groups)
	} else {
		self := auth.SenderOf(r)
		names := []string{string(self.User), string(self.User) + "@" + v.role.Name, string(self.User) + "@" + string(v.role.ID)}
		if !slices.Contains(names, q.Caller) {
			return a.denyOrFail(q.Tool, errcode.New(errcode.Unauthenticated, "there is no caller %q", q.Caller))
		}
		query = a.callerQuery(self, q.State, q.Groups)
	}
	if q.Tool == "" {
		return query.verdicts(v), nil
	}
	h, ok := v.tool(q.Tool)
	if !ok && query.subject.AuthorizeTool(q.Tool).Suspended() != "" { // whether the tool exists or not
		verdict := query.verdict(q.Tool)
		verdict.Group = ""
		return verdict, nil
	}
	if !ok {
		return wire.Verdict{
			Code: errcode.UnknownTool, Reason: gate.Decision{Tool: q.Tool}.Reason(), Tool: q.Tool,
			Epoch: a.org().CurrentEpoch(), Rule: "no tool group has a tool of this name",
		}, nil
	}
	verdict := a.verdictWithArgs(r.Context(), query, q)
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
	if query := a.callerRoleQuery(v.caller, q.State, q.Groups); query.allows(q.Who) {
		out.Roles = append(out.Roles, query.holder(v.role, q.Who))
	}
	return out
}

// callerQuery returns a query for an external caller in its own workflow state.
func (a *api) callerQuery(p identity.Principal, state string, groups *toolgroups.GroupSet) accessQuery {
	view, own, _ := a.org().CallerView(p)
	role, _ := a.org().RoleByID(p.Role)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups, caller: true,
		subject: a.rt.Gate().PreviewSubject(view, cmp.Or(state, own)),
		limits:  func(h *toolgroups.ToolHandle) []org.PermissionLimit { return a.org().LimitsOnCaller(p, h) },
	}
}

// findCaller returns the external caller that a reference names. A reference is user@role
// with the id or the name of a role, or the name of a token. The name of a user is a
// reference too if the user is known in one role only. The error has the code
// Unauthenticated for an unknown one.
func (a *api) findCaller(ref string) (identity.Principal, error) {
	if at := strings.LastIndex(ref, "@"); at > 0 {
		if role, err := a.org().FindRole(ref[at+1:]); err == nil {
			p := identity.ByCaller(identity.UserName(ref[:at]), role.ID)
			return p, org.CheckCaller(p)
		}
	}
	list := a.org().KnownCallers(identity.UserName(ref))
	var users []string
	operator := false
	for _, p := range a.tokenHolders() {
		users = append(users, string(p.User))
		switch {
		case string(p.User) != ref || slices.Contains(list, p):
		case p.Kind == identity.Operator:
			operator = true
		default:
			list = append(list, p)
		}
	}
	switch {
	case len(list) == 1:
		return list[0], nil
	case len(list) == 0 && operator:
		return identity.Principal{}, errcode.New(errcode.Unauthenticated, "the token %q is an operator's, which acts in no role", ref)
	case len(list) == 0:
		return identity.Principal{}, errcode.New(errcode.Unauthenticated, "%s", withSuggestion(fmt.Sprintf("there is no caller %q", ref), ref, users))
	}
	return identity.Principal{}, errcode.New(errcode.Conflict, "caller %q has called in several roles; name one: %s", ref, strings.Join(a.callerNames(list), ", "))
}

// maxCallerNames limits the callers that an error names.
const maxCallerNames = 20

// callerNames lists callers as user@role.
func (a *api) callerNames(list []identity.Principal) (names []string) {
	for _, p := range list[:min(len(list), maxCallerNames)] {
		names = append(names, string(p.User)+"@"+a.roleName(p.Role))
	}
	return names
}
