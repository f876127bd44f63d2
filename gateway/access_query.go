package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Question asks whether the gate would allow a call. Either Role or Agent,
// together with Tool, asks whether that role or agent may call the tool. Who
// asks which roles and agents may call a tool.
//
// A role is checked as an agent of it directly below a root would be, in State.
// An agent is checked in its place and in its own workflow state, unless State
// is set. Groups restricts the check to these groups, as a task can; nil does
// not restrict, and an empty set allows nothing. A caller that names neither
// Role nor Agent asks about its own role.
type Question struct {
	Role   string          `json:"role,omitempty"`  // id or exact name
	Agent  string          `json:"agent,omitempty"` // id or role name
	Tool   string          `json:"tool,omitempty"`
	State  string          `json:"state,omitempty"`
	Groups *toolgroups.Set `json:"group,omitempty"`
	Who    string          `json:"who,omitempty"` // a tool's name
}

// Verdict is the gate's decision with its reason.
type Verdict struct {
	Allowed bool               `json:"allowed"`
	Code    errcode.Code       `json:"code,omitempty"`
	Reason  string             `json:"reason"` // contains the tool's name
	Tool    string             `json:"tool"`
	Group   toolgroups.GroupID `json:"group,omitempty"` // the group that owns the tool
	Epoch   uint64             `json:"epoch"`
	Rule    string             `json:"rule"` // describes the rule that decided
}

// Holders lists the roles and agents that may call a tool. Code and Reason are
// set if the tool does not exist.
type Holders struct {
	Tool   string        `json:"tool"`
	Roles  []RoleHolder  `json:"roles"`  // sorted by name, root first
	Agents []AgentHolder `json:"agents"` // sorted by creation time
	Epoch  uint64        `json:"epoch"`
	Code   errcode.Code  `json:"code,omitempty"`
	Reason string        `json:"reason,omitempty"`
}

// RoleHolder is a role that may call a tool.
type RoleHolder struct {
	ID   identity.RoleID `json:"id"`
	Name string          `json:"name"`
}

// AgentHolder is an agent that may call a tool.
type AgentHolder struct {
	ID   identity.AgentID `json:"id"`
	Role string           `json:"role"` // the role's name
	Task identity.TaskID  `json:"task"`
}

// checkAccess answers POST /api/v1/can. An unknown role, agent or tool is a
// denial, not an error.
func (a *api) checkAccess(r *http.Request) (any, error) {
	q, err := decode[Question](r)
	if err != nil {
		return nil, err
	}
	v := a.visibilityFor(r)
	if err := q.check(!v.all); err != nil {
		return nil, err
	}
	if !v.all {
		return a.checkAccessAsCaller(v, q), nil
	}
	if q.Who != "" {
		return a.findHolders(q), nil
	}
	query, err := a.queryFor(r, q)
	if err != nil && errcode.Of(err) == errcode.Internal {
		return nil, err
	}
	if err != nil {
		return a.denyUnknown(q.Tool, err), nil
	}
	return query.verdict(q.Tool), nil
}

// check rejects an incomplete or ambiguous question. hasRole means that the
// sender has a role, so that it need not name one.
func (q Question) check(hasRole bool) error {
	var named []string
	for _, f := range []struct{ name, value string }{{"role", q.Role}, {"agent", q.Agent}, {"who", q.Who}} {
		if f.value != "" {
			named = append(named, f.name)
		}
	}
	switch {
	case len(named) != 1 && (len(named) > 0 || !hasRole):
		return errcode.New(errcode.InvalidArguments, "the body needs one of role, agent and who; it has %s", orNone(named))
	case (q.Who != "") == (q.Tool != ""):
		return errcode.New(errcode.InvalidArguments, "the body needs either tool or who")
	}
	return nil
}

// denyUnknown returns the denial for an unknown role or agent.
func (a *api) denyUnknown(tool string, err error) Verdict {
	return Verdict{
		Code: errcode.Of(err), Tool: tool, Epoch: a.org().Epoch(),
		Reason: "tool " + tool + " is not available: " + errcode.Message(err), Rule: "only roles and agents that exist may call",
	}
}

// accessQuery answers questions about one role or agent.
type accessQuery struct {
	snapshot *toolgroups.Snapshot
	subject  *gate.Subject
	role     org.Role                        // the role checked; its Name is empty for root
	groups   *toolgroups.Set                 // Question.Groups
	deniedBy func(*toolgroups.Handle) string // returns the rule that denies a tool, "" if none
}

// queryFor returns the query for the role or agent that q names.
func (a *api) queryFor(r *http.Request, q Question) (accessQuery, error) {
	if q.Role != "" {
		id, err := a.roleID(q.Role)
		return a.roleQuery(id, q.State, q.Groups), err
	}
	agent, err := a.findAgent(r.Context(), q.Agent)
	if err == nil && agent.Status != org.Active {
		err = errcode.New(errcode.AgentNotFound, "agent %q is terminated", q.Agent)
	}
	return a.agentQuery(agent, q.State, q.Groups), err
}

// roleQuery returns a query for an agent of a role directly below a root.
func (a *api) roleQuery(id identity.RoleID, state string, groups *toolgroups.Set) accessQuery {
	narrow := toolgroups.All()
	if groups != nil {
		narrow = *groups
	}
	role, _ := a.org().Role(id)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups,
		subject:  a.rt.Gate().Preview(a.org().RoleView(id, narrow), state),
		deniedBy: func(h *toolgroups.Handle) string { return a.org().WhyRole(id, narrow, h) },
	}
}

// agentQuery returns a query for an existing agent.
func (a *api) agentQuery(agent org.Agent, state string, groups *toolgroups.Set) accessQuery {
	seat := a.rt.Gate().Subject(identity.ByAgent(agent.ID))
	if state != "" {
		seat.State = state
	}
	role, _ := a.org().Role(agent.Role)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups, subject: seat,
		deniedBy: func(h *toolgroups.Handle) string { return a.org().WhyAgent(agent.ID, h) },
	}
}

// allows reports whether the gate allows the tool within the requested groups.
func (q accessQuery) allows(tool string) bool {
	return q.subject.Authorize(tool).Allowed() && q.inGroups(tool)
}

// inGroups reports whether the requested groups include a tool. Root's own
// tools are never restricted, as in a task.
func (q accessQuery) inGroups(tool string) bool {
	if q.groups == nil || q.groups.IsAll() || q.role.Name == "" {
		return true
	}
	return q.snapshot.InGroups(tool, q.groups.IDs()...)
}

// verdict returns the decision on a tool.
func (q accessQuery) verdict(tool string) Verdict {
	d := q.subject.Authorize(tool)
	v := Verdict{
		Allowed: d.Allowed(), Code: d.Code(), Reason: d.Reason(), Tool: tool, Group: d.Group(), Epoch: d.Epoch(), Rule: q.rule(d),
	}
	if v.Allowed && !q.inGroups(tool) {
		v.Allowed, v.Code, v.Rule = false, errcode.ToolNotAvailable, "the groups asked for"
		v.Reason = "tool " + tool + " is not available in the groups asked for"
	}
	return v
}

// rule describes the rule behind a decision.
func (q accessQuery) rule(d gate.Decision) string {
	h, ok := q.snapshot.Lookup(d.Tool)
	switch {
	case !ok:
		return "no tool group has a tool of this name"
	case d.Allowed():
		return q.grantedBy(h)
	}
	if rule := q.deniedBy(h); rule != "" {
		return rule
	}
	return "its group offers it in the states " + orNone(h.Definition.States)
}

// grantedBy names the group that contains an allowed tool, and the role that
// uses the group.
func (q accessQuery) grantedBy(h *toolgroups.Handle) string {
	switch {
	case q.role.Name == "":
		return "root uses org_management alone"
	case q.role.Use.IsAll():
		return "group " + string(h.Group) + ", through role " + q.role.Name + ", which uses every group"
	}
	for _, id := range q.role.Use.IDs() {
		if q.snapshot.Reaches(toolgroups.BoundSet{Set: toolgroups.Of(id), Owners: q.role.GroupOwners}, h) {
			return "group " + string(id) + ", through role " + q.role.Name
		}
	}
	return "the toolGroups of role " + q.role.Name
}

// findHolders lists the roles and agents that may call a tool: exactly those
// for which checkAccess allows it.
func (a *api) findHolders(q Question) Holders {
	out := Holders{Tool: q.Who, Roles: []RoleHolder{}, Agents: []AgentHolder{}, Epoch: a.org().Epoch()}
	if _, ok := a.snapshot().Lookup(q.Who); !ok {
		out.Code, out.Reason = errcode.UnknownTool, gate.Decision{Tool: q.Who}.Reason()
		return out
	}
	if a.roleQuery(org.RootRole, q.State, q.Groups).allows(q.Who) {
		out.Roles = append(out.Roles, RoleHolder{org.RootRole, org.RootRole})
	}
	for _, role := range a.org().Roles() {
		if a.roleQuery(role.ID, q.State, q.Groups).allows(q.Who) {
			out.Roles = append(out.Roles, RoleHolder{role.ID, role.Name})
		}
	}
	for _, agent := range a.org().Agents("") {
		if a.agentQuery(agent, q.State, q.Groups).allows(q.Who) {
			out.Agents = append(out.Agents, AgentHolder{agent.ID, a.roleName(agent.Role), agent.Task})
		}
	}
	return out
}
