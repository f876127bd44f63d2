package property_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// invariants is a second naive model of the rules for use and grant
// (docs/security.md), independent of the oracle. It is built from committed
// records. It decides whether an agent may call a tool, and whether a change
// that an agent made was allowed.
type invariants struct {
	groups *naiveRegistry
	roles  map[identity.RoleID]*rolePermissions
	agents map[identity.AgentID]*agentRecord
	tasks  map[identity.TaskID]*org.Task
	kept   []string // names that roles of the operator or the configuration have or had

	rootGrant grantSet          // what root may grant
	wholes    bool              // read parts count as their groups
	unbound   bool              // bounds do not count
	callers   map[string]string // workflow states by caller, identity.Principal.String
}

// grantSet is a set of groups as it was written: each id with its owner at that
// time, "" if it had none. The id "*" means all groups.
type grantSet map[toolgroups.GroupID]toolgroups.GroupOwner

// rolePermissions is a role.
type rolePermissions struct {
	id         identity.RoleID
	name       string
	use, grant grantSet
	creator    identity.RoleID // "" if no role created it
	byRoot     bool            // root created it
	caller     string          // of the task whose agent created it, as in org.Task
	callerRole identity.RoleID
	server     string // "" if it is not restricted to a server
	gated      bool
	tasksAs    identity.RoleID // tasks.as, "" if it has none
	bind       bounds.Bind
	gone       bool // deleted
	suspended  bool
}

// off reports whether a role is deleted or suspended.
func (r *rolePermissions) off() bool { return r == nil || r.gone || r.suspended }

// agentRecord is an agent.
type agentRecord struct {
	id       identity.AgentID
	role     identity.RoleID
	task     identity.TaskID
	parent   *agentRecord
	contacts []identity.AgentID
	root     bool
	gone     bool
}

func newInvariants(r *naiveRegistry) *invariants {
	return &invariants{
		groups: r, roles: map[identity.RoleID]*rolePermissions{}, agents: map[identity.AgentID]*agentRecord{},
		tasks: map[identity.TaskID]*org.Task{}, rootGrant: grantSet{"*": ""},
		callers: map[string]string{},
	}
}

// setRootGrant changes what root may grant. The groups of an equal set keep their owners.
func (v *invariants) setRootGrant(s toolgroups.GroupSet) {
	next := grantSet{}
	for _, id := range idsOf(s) {
		if next[id] = ""; id != "*" {
			next[id] = v.groups.OwnerOf(id)
		}
	}
	if !next.covers(v.rootGrant) || !v.rootGrant.covers(next) {
		v.rootGrant = next
	}
}

// grantSetOf returns a set of groups as a grantSet.
func grantSetOf(s toolgroups.GroupSet, owners map[toolgroups.GroupID]toolgroups.GroupOwner) grantSet {
	g := grantSet{}
	for _, id := range idsOf(s) {
		g[id] = owners[id]
	}
	return g
}

// covers reports whether g contains all ids of other, or the groups of which they are the read
// parts. Only all groups cover all
// groups.
func (g grantSet) covers(other grantSet) bool {
	if _, all := g["*"]; all {
		return true
	}
	for id := range other {
		whole, _ := strings.CutSuffix(string(id), ":read")
		_, same := g[id]
		_, more := g[toolgroups.GroupID(whole)]
		if !same && !more || id == "*" {
			return false
		}
	}
	return true
}

// reaches reports whether a set contains a tool now. A group counts only while
// it belongs to the owner it had when the set was written.
func (v *invariants) reaches(g grantSet, name string) bool {
	if _, all := g["*"]; all {
		return v.groups.GroupOfTool(name) != nil
	}
	for id, owner := range g {
		whole, reads := strings.CutSuffix(string(id), ":read")
		if s := v.groups.Find(toolgroups.GroupID(whole)); s != nil && s.Owner == owner && slices.Contains(v.groups.Members(s), name) && (!reads || v.wholes || v.isRead(name)) {
			return true
		}
	}
	return false
}

// isRead reports whether a tool has the effect ReadOnly now.
func (v *invariants) isRead(name string) bool {
	t, ok := v.groups.ToolByName(name)
	return ok && t.Effect == tool.ReadOnly
}

// creatorGrants lists the grants of the roles that created r, recursively, and what root
// may grant if it created one of them. A deleted creator grants nothing.
func (v *invariants) creatorGrants(r *rolePermissions) []grantSet {
	switch {
	case r.byRoot:
		return []grantSet{v.rootGrant}
	case r.creator == "":
		return nil
	}
	creator := v.roles[r.creator]
	if creator.off() {
		return []grantSet{{}}
	}
	return append(v.creatorGrants(creator), creator.grant)
}

// taskBounds lists the limits of a task: the permissions of its caller and its
// narrowing.
func (v *invariants) taskBounds(id identity.TaskID) []grantSet {
	t := v.tasks[id]
	bounds := []grantSet{grantSetOf(t.Ceiling.Set, t.Ceiling.Owners), grantSetOf(t.Groups.Set, t.Groups.Owners)}
	if t.CallerRole == "" {
		return bounds
	}
	return append(bounds, v.callerBounds(t.CallerRole)...)
}

// callerBounds lists the limits of the tasks that callers in a role may start now.
func (v *invariants) callerBounds(id identity.RoleID) []grantSet {
	r := v.boundingRole(id)
	if r.off() {
		return []grantSet{{}}
	}
	return append(v.creatorGrants(r), r.use)
}

// boundingRole returns the role that limits the tasks of callers in a role: that of its
// tasks.as, else the role itself. It is the role itself if that is deleted or suspended.
func (v *invariants) boundingRole(id identity.RoleID) *rolePermissions {
	r := v.roles[id]
	if r.off() || r.tasksAs == "" {
		return r
	}
	return v.roles[r.tasksAs]
}

// parentGrants lists the limits of what an agent's parent may grant; for the
// agent at the top, those of the task.
func (v *invariants) parentGrants(p *agentRecord) []grantSet {
	if p.parent == nil {
		return v.taskBounds(p.task)
	}
	return v.spawnLimits(p.parent, v.roles[p.role])
}

// spawnLimits lists the sets that limit the agents of a role that an agent spawns. What
// root may grant does not limit those of the operator's roles.
func (v *invariants) spawnLimits(p *agentRecord, r *rolePermissions) []grantSet {
	if p.root && r != nil && r.isDeclared() {
		return v.taskBounds(p.task)
	}
	return v.grantLimits(p)
}

// isDeclared reports whether the operator created the role.
func (r *rolePermissions) isDeclared() bool { return r.creator == "" && !r.byRoot }

// grantLimits lists the sets that must cover everything an agent grants.
func (v *invariants) grantLimits(p *agentRecord) []grantSet {
	if p.root {
		return append(v.parentGrants(p), v.rootGrant)
	}
	r := v.roles[p.role]
	if r.off() {
		return []grantSet{{}}
	}
	return append(append(v.parentGrants(p), v.creatorGrants(r)...), r.grant)
}

// mayCall reports whether an agent may call a tool now.
func (v *invariants) mayCall(p *agentRecord, tool string) bool {
	t, _ := v.groups.ToolByName(tool)
	return v.mayCallInSomeState(p, tool) && grouptest.AllowedInState(t.States, v.stateOf(p))
}

// stateOf returns the workflow state of an agent: that of the task's caller. Those of the
// operator's tasks stay in the initial state, because no call of the attacks moves it.
func (v *invariants) stateOf(p *agentRecord) string {
	if t := v.tasks[p.task]; t.CallerRole != "" {
		return v.callers[t.Caller]
	}
	return ""
}

// deniedByState reports whether an agent may call a tool, but not in its workflow state.
func (v *invariants) deniedByState(p *agentRecord, tool string) bool {
	return v.mayCallInSomeState(p, tool) && !v.mayCall(p, tool)
}

// mayCallInSomeState reports whether an agent may call a tool in some workflow state.
func (v *invariants) mayCallInSomeState(p *agentRecord, tool string) bool {
	if p == nil || p.gone {
		return false
	}
	if p.root {
		return v.reaches(grantSet{toolgroups.OrgManagement: toolgroups.Builtin}, tool)
	}
	r := v.roles[p.role]
	if r.off() {
		return false
	}
	return v.reaches(r.use, tool) && v.allReach(append(v.parentGrants(p), v.creatorGrants(r)...), tool) && v.allowedByServers(p, tool) && (v.unbound || !v.isShut(p, tool))
}

// deniedByRootGrant reports whether an agent may not call a tool, and might if root could
// grant everything.
func (v *invariants) deniedByRootGrant(p *agentRecord, tool string) bool {
	other := *v
	other.rootGrant = grantSet{"*": ""}
	return !v.mayCall(p, tool) && other.mayCall(p, tool)
}

// boundingRoles lists all roles that limit an agent: its own, those of its
// ancestors and the one that bounds the caller's tasks, and the creators of each.
func (v *invariants) boundingRoles(p *agentRecord) []*rolePermissions {
	var roles []*rolePermissions
	if bound := v.boundingRole(v.tasks[p.task].CallerRole); bound != nil {
		roles = v.creatorChain(bound.id)
	}
	for ; p != nil; p = p.parent {
		roles = append(roles, v.creatorChain(p.role)...)
	}
	return roles
}

// creatorChain lists a role and its creators.
func (v *invariants) creatorChain(id identity.RoleID) []*rolePermissions {
	var list []*rolePermissions
	for r := v.roles[id]; r != nil; r = v.roles[r.creator] {
		list = append(list, r)
	}
	return list
}

// allowedByServers reports whether the tool belongs to every server that a
// bounding role is restricted to.
func (v *invariants) allowedByServers(p *agentRecord, tool string) bool {
	owner := v.groups.GroupOfTool(tool).Owner
	if only := v.tasks[p.task].Ceiling.Only; only != "" && only != owner {
		return false
	}
	return ofServers(v.boundingRoles(p), owner)
}

// isShut reports whether a bounding role lets no arguments of the tool through, or did not do so
// for the caller when the task started.
func (v *invariants) isShut(p *agentRecord, tool string) bool {
	binds := append(slices.Clone(v.tasks[p.task].Binds), v.tasks[p.task].Ceiling.Bind)
	for _, r := range v.boundingRoles(p) {
		binds = append(binds, r.bind)
	}
	return slices.ContainsFunc(binds, func(b bounds.Bind) bool { r, ok := b.RuleFor(tool); return ok && r.Equal(nothing) })
}

// ofServers reports whether an owner is every server that roles are restricted to.
func ofServers(roles []*rolePermissions, owner toolgroups.GroupOwner) bool {
	return !slices.ContainsFunc(roles, func(r *rolePermissions) bool {
		return r.server != "" && owner != toolgroups.GroupOwner("module:"+r.server)
	})
}

// isToolGated reports whether a bounding role is tool-gated. Root never is.
func (v *invariants) isToolGated(p *agentRecord) bool {
	return !p.gone && !p.root && slices.ContainsFunc(v.boundingRoles(p), func(r *rolePermissions) bool { return r.gated })
}

// suspendedBecause returns the reason that an agent reads for each denial while a bounding
// role is suspended, "" if none is.
func (v *invariants) suspendedBecause(p *agentRecord) string {
	isSuspended := func(r *rolePermissions) bool { return r.suspended && !r.gone }
	switch {
	case p.gone || p.root:
		return ""
	case v.roles[p.role] != nil && isSuspended(v.roles[p.role]):
		return "role " + v.roles[p.role].name + " is paused"
	case slices.ContainsFunc(v.boundingRoles(p), isSuspended):
		return "a role that bounds this one is paused"
	}
	return ""
}

// deniedBySuspension reports whether an agent may not call a tool, and might if no role was
// suspended.
func (v *invariants) deniedBySuspension(p *agentRecord, tool string) bool {
	other := *v
	other.roles = map[identity.RoleID]*rolePermissions{}
	for id, r := range v.roles {
		resumed := *r
		resumed.suspended = false
		other.roles[id] = &resumed
	}
	return !v.mayCall(p, tool) && other.mayCall(p, tool)
}

// deniedByReadPart reports whether an agent may not call a tool, and might if every set had the
// whole group in the place of a read part.
func (v *invariants) deniedByReadPart(p *agentRecord, tool string) bool {
	other := *v
	other.wholes = true
	return !v.mayCall(p, tool) && other.mayCall(p, tool)
}

// deniedByBounds reports whether an agent may not call a tool, and might without bounds.
func (v *invariants) deniedByBounds(p *agentRecord, tool string) bool {
	if p == nil || p.gone || p.root || !v.isShut(p, tool) {
		return false
	}
	other := *v
	other.unbound = true
	return !v.mayCall(p, tool) && other.mayCall(p, tool)
}

// deniedByOne reports whether deniedByReadPart or deniedByBounds is true.
func (v *invariants) deniedByOne(p *agentRecord, tool string) bool {
	return v.deniedByReadPart(p, tool) || v.deniedByBounds(p, tool)
}

// allReach reports whether all sets contain a tool.
func (v *invariants) allReach(list []grantSet, tool string) bool {
	return !slices.ContainsFunc(list, func(g grantSet) bool { return !v.reaches(g, tool) })
}

// mayGrant reports whether an agent may grant all of some sets.
func (v *invariants) mayGrant(p *agentRecord, gifts ...grantSet) bool {
	return allCover(v.grantLimits(p), gifts...)
}

// exists reports whether a role exists for an agent: the operator created it, or an agent
// of a task of the same caller.
func (v *invariants) exists(p *agentRecord, r *rolePermissions) bool {
	t := v.tasks[p.task]
	return r.isDeclared() || t != nil && r.caller == t.Caller && r.callerRole == t.CallerRole
}

// maySpawn reports whether an agent may spawn one of a role. A root that may grant nothing
// spawns only agents of the operator's roles.
func (v *invariants) maySpawn(p *agentRecord, r *rolePermissions) bool {
	return !r.suspended && v.exists(p, r) && allCover(v.spawnLimits(p, r), r.use, r.grant) && (r.isDeclared() || !v.grantsNothing(p))
}

// grantsNothing reports whether an agent is a root that may grant nothing, and so creates
// no roles.
func (v *invariants) grantsNothing(p *agentRecord) bool { return p.root && len(v.rootGrant) == 0 }

// allCover reports whether all limits cover all of some sets.
func allCover(limits []grantSet, gifts ...grantSet) bool {
	for _, bound := range limits {
		if slices.ContainsFunc(gifts, func(g grantSet) bool { return !bound.covers(g) }) {
			return false
		}
	}
	return true
}

// mayWrite reports whether an agent may send a message to another: in its task,
// to its parent, its descendants, its collaborators and the agent at the top.
func (v *invariants) mayWrite(p *agentRecord, to identity.AgentID) bool {
	q := v.agents[to]
	if q == nil || q.gone || q.task != p.task {
		return false
	}
	return q == p.parent || v.tasks[p.task].Top == to || q.isBelow(p) || slices.Contains(p.contacts, to)
}

// isBelow reports whether an agent is a descendant of another.
func (p *agentRecord) isBelow(other *agentRecord) bool {
	for p = p.parent; p != nil; p = p.parent {
		if p == other {
			return true
		}
	}
	return false
}

// Kinds of violations.
const (
	violationEffect      = "effect"      // a tool ran for an agent that may not call it
	violationGrant       = "grant"       // a role or an agent has more than its creator may grant
	violationRecord      = "record"      // a record contains false information
	violationTermination = "termination" // an agent was terminated by one that is not its ancestor
	violationMessage     = "message"     // a message went to a recipient that the sender may not write to
	violationVisibility  = "visibility"  // an agent sees other tools than those it may call
	violationName        = "name"        // an agent's role has a name that is kept for the operator
	violationIsolation   = "isolation"   // an agent has a role of another caller
	violationDisclosure  = "disclosure"  // a tool-gated agent learns more than that it may not call a tool
)

// violation is a forbidden effect or change.
type violation struct{ kind, text string }

func (b *violation) Error() string { return b.kind + ": " + b.text }

// newViolation returns a violation as an error.
func newViolation(kind, format string, args ...any) error {
	return &violation{kind, fmt.Sprintf(format, args...)}
}

// checkCommits checks and applies the changes that a call of an agent made.
func (v *invariants) checkCommits(p *agentRecord, tool string, made []change) error {
	var found error
	caused := 0
	for _, c := range made {
		for _, r := range c.put {
			if err := v.checkRecord(p, r); err != nil && found == nil {
				found = fmt.Errorf("%s by agent %s of role %q: %w", tool, p.id, p.role, err)
			}
			v.apply(r)
		}
		c.post = slices.DeleteFunc(c.post, v.isNoToolsNotice)
		caused += len(c.put) + len(c.post)
		for _, m := range c.post {
			if m.From != string(p.id) || m.Task != p.task || !v.mayWrite(p, identity.AgentID(m.To)) {
				return newViolation(violationMessage, "%s by agent %s: a message from %s to %s in task %s", tool, p.id, m.From, m.To, m.Task)
			}
		}
	}
	if found == nil && caused > 0 && !v.mayCall(p, tool) {
		found = newViolation(violationEffect, "%s by agent %s of role %q, which may not call it, made %d changes", tool, p.id, p.role, len(made))
	}
	return found
}

// isNoToolsNotice reports whether a message is the error notice of a tool-gated
// agent without tools to its parent. No call caused it.
func (v *invariants) isNoToolsNotice(m journal.Message) bool {
	var notice struct{ ErrorType errcode.Code }
	from := v.agents[identity.AgentID(m.From)]
	return json.Unmarshal(m.Payload, &notice) == nil && notice.ErrorType == errcode.NoToolsAvailable &&
		from != nil && from.parent != nil && m.To == string(from.parent.id)
}

// checkRecord checks one record that a call of an agent wrote.
func (v *invariants) checkRecord(p *agentRecord, r journal.Record) error {
	switch org.RecordKind(r.Kind) {
	case org.KindRole:
		return v.checkRole(p, decode[org.Role](r))
	case org.KindAgent, org.KindTerminated:
		a := org.Agent{ID: identity.AgentID(r.Key), Status: org.Terminated} // a terminated agent moves from one kind to the other
		if r.Value != nil {
			a = decode[org.Agent](r)
		}
		if a.Status == org.Active && r.Kind == string(org.KindAgent) {
			return v.checkSpawn(p, a)
		}
		if q := v.agents[a.ID]; q == nil || q.gone || !q.isBelow(p) || a.Status != org.Terminated {
			return newViolation(violationTermination, "agent %s became %s", a.ID, a.Status)
		}
	case org.KindTask:
		return newViolation(violationRecord, "the record of task %s: %.300s", r.Key, r.Value)
	}
	return nil
}

// checkRole checks a created role: the grant of its creator must cover its use
// and grant, and its other fields must be true.
func (v *invariants) checkRole(p *agentRecord, r org.Role) error {
	made := rolePermissionsOf(r)
	by, role := string(p.id), string(p.role)
	if p.root {
		by, role = org.CreatorRoot, org.CreatorRoot
	}
	switch {
	case v.roles[r.ID] != nil || r.Status != org.Active:
		return newViolation(violationRecord, "existing role %s became %s use %s grant %s", r.ID, r.Status, r.Use, r.Grant)
	case r.Suspended():
		return newViolation(violationRecord, "role %s was created suspended", r.ID)
	case r.CreatedBy != by || r.CreatedByRole != role || r.ID == org.RootRole:
		return newViolation(violationRecord, "role %s was not created by %s of role %q as recorded", r.ID, r.CreatedBy, r.CreatedByRole)
	case v.roleNamed(p, r.Name) != nil:
		return newViolation(violationRecord, "a second role named %q", r.Name)
	case !v.exists(p, made):
		return newViolation(violationRecord, "role %q is recorded for %q in role %q", r.Name, r.Caller, r.CallerRole)
	case slices.Contains(v.kept, r.Name):
		return newViolation(violationName, "a role named %q, which is kept for the operator", r.Name)
	case made.server != "" || made.gated || made.tasksAs != "":
		return newViolation(violationRecord, "role %q is restricted to %q, tool-gated %v, bounds tasks by %q; agents may set none of these", r.Name, made.server, made.gated, made.tasksAs)
	case !v.mayGrant(p, made.use, made.grant) || v.grantsNothing(p):
		return newViolation(violationGrant, "role %q has use %s grant %s; all of %v must cover them", r.Name, r.Use, r.Grant, v.grantLimits(p))
	}
	for id, owner := range r.GroupOwners {
		if owner != v.groups.OwnerOf(id) {
			return newViolation(violationRecord, "role %q pins group %s to the wrong owner %q", r.Name, id, owner)
		}
	}
	return nil
}

// checkSpawn checks a spawned agent: the grant of its parent must cover use and
// grant of its role, whichever agent created the role.
func (v *invariants) checkSpawn(p *agentRecord, a org.Agent) error {
	r := v.roles[a.Role]
	switch {
	case v.agents[a.ID] != nil:
		return newViolation(violationRecord, "existing agent %s was created again", a.ID)
	case a.Parent != p.id || a.Task != p.task || a.Root || a.Role == org.RootRole:
		return newViolation(violationRecord, "agent %s of role %q below %s in task %s, root %v", a.ID, a.Role, a.Parent, a.Task, a.Root)
	case r == nil || r.gone:
		return newViolation(violationGrant, "agent %s has role %q, which does not exist", a.ID, a.Role)
	case !v.exists(p, r):
		return newViolation(violationIsolation, "agent %s has role %q of the tasks of %q", a.ID, r.name, r.caller)
	case !v.maySpawn(p, r):
		return newViolation(violationGrant, "agent %s has role %q with use %v grant %v; all of %v must cover them", a.ID, r.name, r.use, r.grant, v.spawnLimits(p, r))
	}
	for _, c := range a.Brief.Collaborators {
		if to := c.Agent; to != p.id && to != org.RootRole && to != "user" && !v.mayWrite(p, to) {
			return newViolation(violationMessage, "agent %s may write to %s, to which its parent may not", a.ID, to)
		}
	}
	return nil
}

// roleNamed returns the active role with a name that exists for an agent, nil if there is
// none.
func (v *invariants) roleNamed(p *agentRecord, name string) *rolePermissions {
	for _, r := range v.roles {
		if r.name == name && !r.gone && v.exists(p, r) {
			return r
		}
	}
	return nil
}

// rolePermissionsOf returns the permissions of a role.
func rolePermissionsOf(r org.Role) *rolePermissions {
	c := &rolePermissions{id: r.ID, name: r.Name, server: r.Server, gated: r.ToolGated != toolgroups.NotGated, tasksAs: r.Tasks.As, bind: r.Bind, use: grantSetOf(r.Use, r.GroupOwners), grant: grantSetOf(r.Grant, r.GroupOwners), gone: r.Status != org.Active, suspended: r.Suspended(), caller: r.Caller, callerRole: r.CallerRole}
	switch by := r.CreatedByRole; by {
	case org.CreatorRoot:
		c.byRoot = true
	case org.CreatorOperator:
	default:
		c.creator = identity.RoleID(by)
	}
	return c
}

// apply updates the model with a record, without checking it.
func (v *invariants) apply(r journal.Record) {
	switch org.RecordKind(r.Kind) {
	case org.KindRole:
		role := decode[org.Role](r)
		v.roles[role.ID] = rolePermissionsOf(role)
		if role.CreatedBy == org.CreatorOperator || role.CreatedBy == org.CreatorConfig {
			v.kept = append(v.kept, role.Name)
		}
	case org.KindTask:
		t := decode[org.Task](r)
		v.tasks[t.ID] = &t
	case org.KindCaller:
		c := decode[org.Caller](r)
		v.callers[identity.ByCaller(c.User, c.Role).String()] = c.State
	case org.KindAgent, org.KindTerminated:
		if r.Value != nil { // a terminated agent moves from one kind to the other
			v.applyAgent(decode[org.Agent](r))
		}
	}
}

func (v *invariants) applyAgent(a org.Agent) {
	if p := v.agents[a.ID]; p != nil {
		p.gone = a.Status != org.Active
		return
	}
	p := &agentRecord{id: a.ID, role: a.Role, task: a.Task, parent: v.agents[a.Parent], root: a.Root}
	for _, c := range a.Brief.Collaborators {
		p.contacts = append(p.contacts, c.Agent)
	}
	v.agents[a.ID] = p
}

// decode decodes a record of the organization.
func decode[T any](r journal.Record) T {
	var v T
	if err := json.Unmarshal(r.Value, &v); err != nil {
		panic(fmt.Sprintf("%s %s: %v", r.Kind, r.Key, err))
	}
	return v
}
