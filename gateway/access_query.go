package gateway

import (
	"context"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// checkAccess answers POST /api/v1/can. An unknown role, agent or tool is a
// denial, not an error.
func (a *api) checkAccess(r *http.Request) (any, error) {
	q, err := decode[wire.Question](r)
	if err != nil {
		return nil, err
	}
	return a.answerQuestion(r, a.visibilityFor(r), q)
}

// answerQuestion answers a question of the sender of a request, who sees v.
func (a *api) answerQuestion(r *http.Request, v visibility, q wire.Question) (any, error) {
	if err := checkQuestion(q, v.all); err != nil {
		return nil, err
	}
	if err := v.checkState(q.State); err != nil {
		return nil, err
	}
	if !v.all {
		return a.checkAccessAsCaller(r, v, q)
	}
	if q.Who != "" {
		return a.findHolders(v, q), nil
	}
	if q.Diff != nil {
		return a.diffTools(q)
	}
	err := v.checkGroups(q.Groups)
	var query accessQuery
	if err == nil {
		query, err = a.queryFor(r, q)
	}
	if err != nil {
		return a.denyOrFail(q.Tool, err)
	}
	if q.Tool == "" {
		return query.verdicts(v), nil
	}
	verdict := a.verdictWithArgs(r.Context(), query, q)
	if verdict.Waits {
		verdict.Approval = a.rt.Gate().ApprovalRules(r.Context(), query.subject, q.Tool, q.Args)
	}
	if verdict.Code == errcode.UnknownTool {
		verdict.Reason = withSuggestion(verdict.Reason, q.Tool, v.suggestibleNames())
	}
	if q.Why {
		verdict.Limits = query.limitsOn(q.Tool)
	}
	return verdict, nil
}

// checkQuestion rejects an incomplete or ambiguous question. A sender that is not the
// operator has a role, so that it need not name one.
func checkQuestion(q wire.Question, operator bool) error {
	var named []string
	for _, f := range []struct{ name, value string }{{"role", q.Role}, {"agent", q.Agent}, {"caller", q.Caller}, {"who", q.Who}} {
		if f.value != "" {
			named = append(named, f.name)
		}
	}
	if err := org.CheckNamedGroups("answer a question", q.Groups); err != nil {
		return err
	}
	switch {
	case len(named) != 1 && (len(named) > 0 || operator):
		return errcode.New(errcode.InvalidArguments, "the body needs one of role, agent, caller and who; it has %s", orNone(named))
	case q.Why && !operator:
		return errcode.New(errcode.InsufficientPermissions, "only the operator may ask for the limits of a call").With("field", "why")
	case q.Diff != nil && !operator:
		return errcode.New(errcode.InsufficientPermissions, "only the operator may ask what a role gained and lost").With("field", "diff")
	case q.Diff != nil && (q.Args != nil || q.Role == "" || q.Tool != "" || q.State != "" || q.Groups != nil || q.Why):
		return errcode.New(errcode.InvalidArguments, "the body has diff, which needs role and nothing else").With("field", "diff")
	case q.Args != nil && q.Tool == "":
		return errcode.New(errcode.InvalidArguments, "the body has args, which needs tool").With("field", "args")
	case q.Args != nil && strictjson.CheckObject(q.Args, nil) != nil:
		return errcode.New(errcode.InvalidArguments, "the args of the body are not a JSON object with each key once").With("field", "args")
	case q.Why && q.Tool == "":
		return errcode.New(errcode.InvalidArguments, "the body has why, which needs tool").With("field", "why")
	case q.Who != "" && q.Tool != "":
		return errcode.New(errcode.InvalidArguments, "the body needs either tool or who, and has both")
	}
	return nil
}

// diffTools answers which tools a role gained and lost since an epoch.
func (a *api) diffTools(q wire.Question) (any, error) {
	id, err := a.roleID(q.Role)
	if err != nil {
		return nil, err
	}
	return a.org().DiffTools(id, *q.Diff)
}

// denyOrFail returns the denial of a tool for an unknown role, agent or group. Without a
// tool, and for internal errors, it returns the error.
func (a *api) denyOrFail(tool string, err error) (any, error) {
	if tool == "" || errcode.CodeOf(err) == errcode.Internal {
		return nil, err
	}
	return a.denyUnknown(tool, err), nil
}

// denyUnknown returns the denial for an unknown role, agent or group.
func (a *api) denyUnknown(tool string, err error) wire.Verdict {
	rule := "only roles, agents and callers that exist may call"
	if errcode.CodeOf(err) == errcode.GroupNotFound {
		rule = groupsAskedFor
	}
	return wire.Verdict{
		Code: errcode.CodeOf(err), Tool: tool, Epoch: a.org().CurrentEpoch(),
		Reason: "tool " + tool + " is not available: " + errcode.Message(err), Rule: rule,
	}
}

// accessQuery answers questions about one role or agent.
type accessQuery struct {
	snapshot *toolgroups.Snapshot
	subject  *gate.Subject
	role     org.Role             // the role checked; its Name is empty for root
	groups   *toolgroups.GroupSet // Question.Groups
	caller   bool                 // the subject is an external caller

	limits func(*toolgroups.ToolHandle) []org.PermissionLimit // returns the limits on a tool
}

// queryFor returns the query for the role or agent that q names.
func (a *api) queryFor(r *http.Request, q wire.Question) (accessQuery, error) {
	if q.Role != "" {
		id, err := a.roleID(q.Role)
		return a.roleQuery(id, q.State, q.Groups), err
	}
	if q.Caller != "" {
		p, err := a.findCaller(q.Caller)
		return a.callerQuery(p, q.State, q.Groups), err
	}
	agent, err := a.findAgent(r.Context(), q.Agent)
	if err == nil && agent.Status != org.Active {
		err = errcode.New(errcode.AgentNotFound, "agent %q is terminated", q.Agent)
	}
	return a.agentQuery(agent, q.State, q.Groups), err
}

// roleQuery returns a query for an agent of a role directly below a root.
func (a *api) roleQuery(id identity.RoleID, state string, groups *toolgroups.GroupSet) accessQuery {
	return a.callerRoleQuery(identity.ByCaller("", id), state, groups)
}

// callerRoleQuery is roleQuery for the role of a caller, within the limit of the caller.
func (a *api) callerRoleQuery(p identity.Principal, state string, groups *toolgroups.GroupSet) accessQuery {
	narrow := toolgroups.AllGroups()
	if groups != nil {
		narrow = *groups
	}
	role, _ := a.org().RoleByID(p.Role)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups,
		subject: a.rt.Gate().PreviewSubject(a.org().CallerRoleView(p, narrow), state),
		limits:  func(h *toolgroups.ToolHandle) []org.PermissionLimit { return a.org().LimitsOnCallerRole(p, narrow, h) },
	}
}

// tasksQuery returns a query for an agent with all that the tasks of callers in a role may
// use.
func (a *api) tasksQuery(role org.Role, state string, groups *toolgroups.GroupSet) accessQuery {
	return accessQuery{snapshot: a.snapshot(), role: role, groups: groups, subject: a.rt.Gate().PreviewSubject(a.org().TaskView(role.ID), state)}
}

// agentQuery returns a query for an existing agent.
func (a *api) agentQuery(agent org.Agent, state string, groups *toolgroups.GroupSet) accessQuery {
	subject := a.rt.Gate().Subject(identity.ByAgent(agent.ID))
	if state != "" {
		subject.State = state
	}
	role, _ := a.org().RoleByID(agent.Role)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups, subject: subject,
		limits: func(h *toolgroups.ToolHandle) []org.PermissionLimit { return a.org().LimitsOnAgent(agent.ID, h) },
	}
}

// allows reports whether the gate allows the tool within the requested groups.
func (q accessQuery) allows(tool string) bool {
	return q.subject.AuthorizeTool(tool).Allowed() && q.inGroups(tool)
}

// approvalRules returns the rules that let calls of a tool wait for people, whatever the
// arguments; none if the tool is denied.
func (q accessQuery) approvalRules(tool string) approval.Rules {
	if !q.inGroups(tool) {
		return nil
	}
	return q.subject.AuthorizeTool(tool).ApprovalRules()
}

// mayWait reports whether calls of a tool may wait for people.
func (q accessQuery) mayWait(tool string) bool { return len(q.approvalRules(tool)) > 0 }

// inGroups reports whether the requested groups include a tool. Root's own
// tools are never restricted, as in a task.
func (q accessQuery) inGroups(tool string) bool {
	if q.groups == nil || q.groups.IsAll() || q.role.Name == "" {
		return true
	}
	return q.snapshot.InGroups(tool, q.groups.GroupIDs()...)
}

// verdict returns the decision on a tool.
func (q accessQuery) verdict(tool string) wire.Verdict {
	d := q.subject.AuthorizeTool(tool)
	v := wire.Verdict{
		Allowed: d.Allowed(), Code: d.Code(), Reason: d.Reason(), Tool: tool, Group: d.Group(), Epoch: d.Epoch(), Rule: q.ruleText(d),
	}
	v.Waits = q.mayWait(tool)
	if q.caller {
		v.State = toolgroups.StateName(q.subject.State)
	}
	if v.Allowed && !q.inGroups(tool) {
		v.Allowed, v.Code, v.Rule = false, errcode.ToolNotAvailable, groupsAskedFor
		v.Reason = "tool " + tool + " is not available in the groups asked for"
	}
	if l := q.denyingLimit(d); l != nil && l.Caller != "" {
		v.Reason += ": the task is bounded by its caller " + string(l.Caller) + " in role " + l.CallerRole
	} else if l != nil && l.Closed != "" {
		v.Reason += ": " + l.Rule
	}
	return v
}

// verdictWithArgs returns the decision on the tool of a question, and on the arguments if it has
// some.
func (a *api) verdictWithArgs(ctx context.Context, query accessQuery, q wire.Question) wire.Verdict {
	v := query.verdict(q.Tool)
	if !v.Allowed || q.Args == nil {
		return v
	}
	if err := a.rt.Gate().CheckArguments(ctx, query.subject, q.Tool, q.Args); err != nil {
		v.Allowed, v.Waits, v.Code, v.Reason, v.Rule = false, false, errcode.CodeOf(err), errcode.Message(err), "a bound on the arguments of "+q.Tool
		return v
	}
	v.Waits = len(a.rt.Gate().ApprovalRules(ctx, query.subject, q.Tool, q.Args)) > 0
	return v
}

// verdicts returns the decisions on all tools that are visible.
func (q accessQuery) verdicts(v visibility) wire.Verdicts {
	out := wire.Verdicts{Verdicts: []wire.Verdict{}}
	for _, h := range v.tools() {
		verdict := q.verdict(h.Definition.Name)
		if !verdict.Allowed {
			verdict.Group = v.groupOf(h)
		}
		if v.all {
			verdict.Approval = q.approvalRules(verdict.Tool)
		}
		out.Verdicts = append(out.Verdicts, verdict)
	}
	return out
}

// ruleText describes the rule behind a decision.
func (q accessQuery) ruleText(d gate.Decision) string {
	h, ok := q.snapshot.LookupTool(d.Tool)
	switch {
	case d.Suspended() != "":
		return d.Suspended()
	case !ok:
		return "no tool group has a tool of this name"
	case d.Allowed():
		return q.grantText(d)
	}
	if other := h.OtherName(); other != "" && q.subject.AuthorizeTool(other).Allowed() {
		return "role " + q.role.Name + " has this tool under the name " + other
	}
	if l := q.denyingLimit(d); l != nil {
		return l.Rule
	}
	return "its group offers it in the states " + orNone(h.Definition.States)
}

// groupsAskedFor is the rule that denies a tool outside Question.Groups.
const groupsAskedFor = "the groups asked for"

// denyingLimit returns the first limit that denies a tool, nil if it is allowed, unknown or
// denied for another reason.
func (q accessQuery) denyingLimit(d gate.Decision) *org.PermissionLimit {
	h, ok := q.snapshot.LookupTool(d.Tool)
	if !ok || d.Allowed() {
		return nil
	}
	return org.DenyingLimit(q.limits(h))
}

// limitsOn lists the limits on a tool and marks the first that denies. It returns nil for
// an unknown tool.
func (q accessQuery) limitsOn(tool string) (list []wire.Limit) {
	h, ok := q.snapshot.LookupTool(tool)
	if !ok {
		return nil
	}
	limits := q.limits(h)
	isAskedFor := func(l org.PermissionLimit) bool { return l.Rule == groupsAskedFor }
	if q.groups != nil && !q.groups.IsAll() && q.role.Name != "" && !slices.ContainsFunc(limits, isAskedFor) {
		limits = append(limits, org.PermissionLimit{Kind: org.LimitTaskGroups, Rule: groupsAskedFor, Allows: q.inGroups(tool)})
	}
	if states := h.Definition.States; states != nil {
		state := toolgroups.StateName(q.subject.State)
		limits = append(limits, org.PermissionLimit{
			Kind: org.LimitState, Rule: "its group offers it in the states " + orNone(states) + "; the state is " + state,
			Allows: slices.Contains(states, "*") || slices.Contains(states, state),
		})
	}
	denying := org.DenyingLimit(limits)
	for i := range limits {
		list = append(list, wire.Limit{PermissionLimit: limits[i], Decides: &limits[i] == denying})
	}
	return list
}

// grantText names the group through which a tool is allowed, and the role that
// uses the group.
func (q accessQuery) grantText(d gate.Decision) string {
	switch {
	case q.role.Name == "":
		return "root uses org_management alone"
	case q.role.Use.IsAll():
		return "group " + string(d.Group()) + ", through role " + q.role.Name + ", which uses every group"
	}
	return "group " + string(d.Group()) + ", through role " + q.role.Name
}

// findHolders lists the roles and agents that may call a tool. These are
// exactly the roles and agents for which checkAccess allows it. It also lists
// the roles whose tasks.as lets the tasks of their callers call it.
func (a *api) findHolders(v visibility, q wire.Question) wire.Holders {
	out := wire.Holders{Tool: q.Who, Roles: []wire.RoleHolder{}, Agents: []wire.AgentHolder{}, Tasks: []wire.TasksHolder{}, Epoch: a.org().CurrentEpoch()}
	if _, ok := a.snapshot().LookupTool(q.Who); !ok {
		out.Code, out.Reason = errcode.UnknownTool, withSuggestion(gate.Decision{Tool: q.Who}.Reason(), q.Who, v.suggestibleNames())
		return out
	}
	if err := v.checkGroups(q.Groups); err != nil {
		out.Code, out.Reason = errcode.CodeOf(err), errcode.Message(err)
		return out
	}
	for _, role := range append([]org.Role{{ID: org.RootRole, Name: org.RootRole}}, a.org().ListRoles()...) {
		if query := a.roleQuery(role.ID, q.State, q.Groups); query.allows(q.Who) {
			out.Roles = append(out.Roles, query.holder(role, q.Who))
		}
		if as := role.Tasks.As; as != "" {
			if query := a.tasksQuery(role, q.State, q.Groups); query.allows(q.Who) {
				out.Tasks = append(out.Tasks, wire.TasksHolder{RoleHolder: query.holder(role, q.Who), As: a.roleName(as)})
			}
		}
	}
	for _, agent := range a.org().ListAgents("") {
		if query := a.agentQuery(agent, q.State, q.Groups); query.allows(q.Who) {
			out.Agents = append(out.Agents, wire.AgentHolder{ID: agent.ID, Name: agent.Name, Role: a.roleName(agent.Role), Task: agent.Task, Waits: query.mayWait(q.Who)})
		}
	}
	return out
}

// holder describes a role that may call a tool.
func (q accessQuery) holder(role org.Role, tool string) wire.RoleHolder {
	return wire.RoleHolder{ID: role.ID, Name: role.Name, Group: q.subject.AuthorizeTool(tool).Group(), Waits: q.mayWait(tool)}
}
