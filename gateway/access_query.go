package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Question asks what the gate would say: may this Role, or this Agent, call
// this Tool? Or it asks Who may call a tool. A role is judged as the runtime
// would judge its agents directly below a root, in State; an agent where it
// stands, in its own state unless State is set. Groups narrows to those
// groups, as a task does; absent is no narrowing, and [] is nothing. Of a caller
// neither Role nor Agent asks for its own role.
type Question struct {
	Role   string          `json:"role,omitempty"`  // id or exact name
	Agent  string          `json:"agent,omitempty"` // id or role name
	Tool   string          `json:"tool,omitempty"`
	State  string          `json:"state,omitempty"`
	Groups *toolgroups.Set `json:"group,omitempty"`
	Who    string          `json:"who,omitempty"` // a tool
}

// Verdict is the gate's answer with what decided.
type Verdict struct {
	Allowed bool               `json:"allowed"`
	Code    errcode.Code       `json:"code,omitempty"`
	Reason  string             `json:"reason"` // holds the tool's name
	Tool    string             `json:"tool"`
	Group   toolgroups.GroupID `json:"group,omitempty"` // that owns the tool
	Epoch   uint64             `json:"epoch"`
	Rule    string             `json:"rule"` // the words of what decided
}

// Holders are those that may call a tool. Code and Reason are set when there
// is no such tool.
type Holders struct {
	Tool   string        `json:"tool"`
	Roles  []RoleHolder  `json:"roles"`  // sorted by name, root first
	Agents []AgentHolder `json:"agents"` // sorted by age
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

// can answers a question. Whoever and whatever is not known is a denial.
func (a *api) can(r *http.Request) (any, error) {
	q, err := decode[Question](r)
	if err != nil {
		return nil, err
	}
	sight := a.sight(r)
	if err := q.check(!sight.all); err != nil {
		return nil, err
	}
	if !sight.all {
		return a.canCaller(sight, q), nil
	}
	if q.Who != "" {
		return a.who(q), nil
	}
	j, err := a.judgeOf(r, q)
	if err != nil && errcode.Of(err) == errcode.Internal {
		return nil, err
	}
	if err != nil {
		return a.unknown(q.Tool, err), nil
	}
	return j.verdict(q.Tool), nil
}

// check refuses a question that is none. own says that who asks has a role, for
// when none is named.
func (q Question) check(own bool) error {
	var given []string
	for _, f := range []struct{ name, value string }{{"role", q.Role}, {"agent", q.Agent}, {"who", q.Who}} {
		if f.value != "" {
			given = append(given, f.name)
		}
	}
	switch {
	case len(given) != 1 && (len(given) > 0 || !own):
		return errcode.New(errcode.InvalidArguments, "the body needs one of role, agent and who; it has %s", orNone(given))
	case (q.Who != "") == (q.Tool != ""):
		return errcode.New(errcode.InvalidArguments, "the body needs either tool or who")
	}
	return nil
}

// unknown denies because somebody is not known.
func (a *api) unknown(tool string, err error) Verdict {
	return Verdict{
		Code: errcode.Of(err), Tool: tool, Epoch: a.org().Epoch(),
		Reason: "tool " + tool + " is not available: " + errcode.Message(err), Rule: "only roles and agents that exist may call",
	}
}

// accessQuery answers for one role or agent.
type accessQuery struct {
	snapshot *toolgroups.Snapshot
	seat     *gate.Subject
	role     org.Role // whose rights these are; without a name for root
	groups   *toolgroups.Set
	deniedBy func(*toolgroups.Handle) string // the rule that keeps a tool away
}

func (a *api) judgeOf(r *http.Request, q Question) (accessQuery, error) {
	if q.Role != "" {
		id, err := a.roleID(q.Role)
		return a.roleJudge(id, q.State, q.Groups), err
	}
	agent, err := a.findAgent(r.Context(), q.Agent)
	if err == nil && agent.Status != org.Active {
		err = errcode.New(errcode.AgentNotFound, "agent %q is terminated", q.Agent)
	}
	return a.agentJudge(agent, q.State, q.Groups), err
}

func (a *api) roleJudge(id identity.RoleID, state string, groups *toolgroups.Set) accessQuery {
	narrow := toolgroups.All()
	if groups != nil {
		narrow = *groups
	}
	role, _ := a.org().Role(id)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups,
		seat:     a.rt.Gate().Preview(a.org().RoleView(id, narrow), state),
		deniedBy: func(h *toolgroups.Handle) string { return a.org().WhyRole(id, narrow, h) },
	}
}

func (a *api) agentJudge(agent org.Agent, state string, groups *toolgroups.Set) accessQuery {
	seat := a.rt.Gate().Subject(identity.ByAgent(agent.ID))
	if state != "" {
		seat.State = state
	}
	role, _ := a.org().Role(agent.Role)
	return accessQuery{
		snapshot: a.snapshot(), role: role, groups: groups, seat: seat,
		deniedBy: func(h *toolgroups.Handle) string { return a.org().WhyAgent(agent.ID, h) },
	}
}

// allows says whether the gate would let the tool through, narrowed.
func (j accessQuery) allows(tool string) bool {
	return j.seat.Authorize(tool).Allowed() && j.reaches(tool)
}

// reaches says whether the groups asked for hold a tool. Root's own use is
// never narrowed, no more than a task narrows it.
func (j accessQuery) reaches(tool string) bool {
	if j.groups == nil || j.groups.IsAll() || j.role.Name == "" {
		return true
	}
	return j.snapshot.InGroups(tool, j.groups.IDs()...)
}

func (j accessQuery) verdict(tool string) Verdict {
	d := j.seat.Authorize(tool)
	v := Verdict{
		Allowed: d.Allowed(), Code: d.Code(), Reason: d.Reason(), Tool: tool, Group: d.Group(), Epoch: d.Epoch(), Rule: j.rule(d),
	}
	if v.Allowed && !j.reaches(tool) {
		v.Allowed, v.Code, v.Rule = false, errcode.ToolNotAvailable, "the groups asked for"
		v.Reason = "tool " + tool + " is not available in the groups asked for"
	}
	return v
}

// rule words what decided.
func (j accessQuery) rule(d gate.Decision) string {
	h, ok := j.snapshot.Lookup(d.Tool)
	switch {
	case !ok:
		return "no tool group has a tool of this name"
	case d.Allowed():
		return j.grantedBy(h)
	}
	if rule := j.deniedBy(h); rule != "" {
		return rule
	}
	return "its group offers it in the states " + orNone(h.Definition.States)
}

// grantedBy names the group that lets a tool through, and the role that has it.
func (j accessQuery) grantedBy(h *toolgroups.Handle) string {
	switch {
	case j.role.Name == "":
		return "root uses org_management alone"
	case j.role.Use.IsAll():
		return "group " + string(h.Group) + ", through role " + j.role.Name + ", which uses every group"
	}
	for _, id := range j.role.Use.IDs() {
		if j.snapshot.Reaches(toolgroups.BoundSet{Set: toolgroups.Of(id), Owners: j.role.GroupOwners}, h) {
			return "group " + string(id) + ", through role " + j.role.Name
		}
	}
	return "the toolGroups of role " + j.role.Name
}

// who lists those that may call a tool: exactly those that can would allow.
func (a *api) who(q Question) Holders {
	out := Holders{Tool: q.Who, Roles: []RoleHolder{}, Agents: []AgentHolder{}, Epoch: a.org().Epoch()}
	if _, ok := a.snapshot().Lookup(q.Who); !ok {
		out.Code, out.Reason = errcode.UnknownTool, gate.Decision{Tool: q.Who}.Reason()
		return out
	}
	if a.roleJudge(org.RootRole, q.State, q.Groups).allows(q.Who) {
		out.Roles = append(out.Roles, RoleHolder{org.RootRole, org.RootRole})
	}
	for _, role := range a.org().Roles() {
		if a.roleJudge(role.ID, q.State, q.Groups).allows(q.Who) {
			out.Roles = append(out.Roles, RoleHolder{role.ID, role.Name})
		}
	}
	for _, agent := range a.org().Agents("") {
		if a.agentJudge(agent, q.State, q.Groups).allows(q.Who) {
			out.Agents = append(out.Agents, AgentHolder{agent.ID, a.roleName(agent.Role), agent.Task})
		}
	}
	return out
}
