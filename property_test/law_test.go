package property_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// law is design §4 "Use and grant" written once more, sentence by sentence,
// beside the oracle and without it. It learns from what was put on record and
// says of each tool whether somebody may call it, and of each thing that an
// agent brought about whether it was its to bring about.
type law struct {
	groups *registry
	roles  map[identity.RoleID]*charter
	agents map[identity.AgentID]*person
	tasks  map[identity.TaskID]*org.Task
}

// gift is a set of groups as it was written: each id with the owner it had
// then, "" for nobody. The id "*" is all.
type gift map[toolgroups.GroupID]toolgroups.Owner

// charter is a role.
type charter struct {
	id         identity.RoleID
	name       string
	use, grant gift
	maker      identity.RoleID // "" when no role made it
	server     string          // "" when it is confined to none
	gated      bool
	gone       bool
}

// person is an agent.
type person struct {
	id       identity.AgentID
	role     identity.RoleID
	task     identity.TaskID
	parent   *person
	contacts []identity.AgentID
	root     bool
	gone     bool
}

func newLaw(r *registry) *law {
	return &law{r, map[identity.RoleID]*charter{}, map[identity.AgentID]*person{}, map[identity.TaskID]*org.Task{}}
}

func giftOf(s toolgroups.Set, owners map[toolgroups.GroupID]toolgroups.Owner) gift {
	g := gift{}
	for _, id := range listed(s) {
		g[id] = owners[id]
	}
	return g
}

// covers: "Subset tests compare group ids. Only All covers All."
func (g gift) covers(other gift) bool {
	if _, all := g["*"]; all {
		return true
	}
	for id := range other {
		if _, ok := g[id]; !ok || id == "*" {
			return false
		}
	}
	return true
}

// reaches: "permission intersects tools", and "ids bind to their owner when
// written".
func (l *law) reaches(g gift, tool string) bool {
	if _, all := g["*"]; all {
		return l.groups.home(tool) != nil
	}
	for id, owner := range g {
		if s := l.groups.find(id); s != nil && s.owner == owner && slices.Contains(l.groups.members(s), tool) {
			return true
		}
	}
	return false
}

// makers lists what those may grant who made a role: "Ceilings are live and
// recursive … a deleted creator role is a ceiling of nothing".
func (l *law) makers(r *charter) []gift {
	if r.maker == "" {
		return nil
	}
	maker := l.roles[r.maker]
	if maker == nil || maker.gone {
		return []gift{{}}
	}
	return append(l.makers(maker), maker.grant)
}

// task lists what bounds a task: its caller's ceiling and its narrowing.
func (l *law) task(id identity.TaskID) []gift {
	t := l.tasks[id]
	bounds := []gift{giftOf(t.Ceiling.Set, t.Ceiling.Owners), giftOf(t.Groups.Set, t.Groups.Owners)}
	if t.CallerRole == "" {
		return bounds
	}
	caller := l.roles[t.CallerRole]
	if caller == nil || caller.gone {
		return []gift{{}}
	}
	return append(append(bounds, l.makers(caller)...), caller.use)
}

// above lists what the one above an agent may give; at the top, its task's bounds.
func (l *law) above(p *person) []gift {
	if p.parent == nil {
		return l.task(p.task)
	}
	return l.giving(p.parent)
}

// giving lists what everything must pass that an agent gives.
func (l *law) giving(p *person) []gift {
	if p.root {
		return l.above(p)
	}
	r := l.roles[p.role]
	if r == nil || r.gone {
		return []gift{{}}
	}
	return append(append(l.above(p), l.makers(r)...), r.grant)
}

// may says whether an agent may call a tool.
func (l *law) may(p *person, tool string) bool {
	if p == nil || p.gone {
		return false
	}
	if p.root {
		return l.reaches(gift{toolgroups.OrgManagement: toolgroups.Builtin}, tool)
	}
	r := l.roles[p.role]
	if r == nil || r.gone {
		return false
	}
	return l.reaches(r.use, tool) && l.allReach(append(l.above(p), l.makers(r)...), tool) && l.brought(p, tool)
}

// bounding lists every role that bounds a person: its own, its caller's, those
// of whoever is above it, and the makers of each.
func (l *law) bounding(p *person) []*charter {
	roles := l.lineage(l.tasks[p.task].CallerRole)
	for ; p != nil; p = p.parent {
		roles = append(roles, l.lineage(p.role)...)
	}
	return roles
}

func (l *law) lineage(id identity.RoleID) []*charter {
	var list []*charter
	for r := l.roles[id]; r != nil; r = l.roles[r.maker] {
		list = append(list, r)
	}
	return list
}

// brought: "`server: X` confines a role to tools whose owner is X", and so
// whoever it makes, spawns or calls.
func (l *law) brought(p *person, tool string) bool {
	owner := l.groups.home(tool).owner
	if only := l.tasks[p.task].Ceiling.Only; only != "" && only != owner {
		return false
	}
	return !slices.ContainsFunc(l.bounding(p), func(r *charter) bool {
		return r.server != "" && owner != toolgroups.Owner("module:"+r.server)
	})
}

// gated says whether somebody answers from tools alone: "toolGated" bounds
// whoever it makes or spawns. Root never does.
func (l *law) gated(p *person) bool {
	return !p.gone && !p.root && slices.ContainsFunc(l.bounding(p), func(r *charter) bool { return r.gated })
}

func (l *law) allReach(list []gift, tool string) bool {
	return !slices.ContainsFunc(list, func(g gift) bool { return !l.reaches(g, tool) })
}

// mayGive says whether an agent may give all of some gifts.
func (l *law) mayGive(p *person, gifts ...gift) bool {
	for _, bound := range l.giving(p) {
		if slices.ContainsFunc(gifts, func(g gift) bool { return !bound.covers(g) }) {
			return false
		}
	}
	return true
}

// mayWrite: "own descendants, the parent, user, and collaborators of the same
// task"; and whom the task stands on.
func (l *law) mayWrite(p *person, to identity.AgentID) bool {
	q := l.agents[to]
	if q == nil || q.gone || q.task != p.task {
		return false
	}
	return q == p.parent || l.tasks[p.task].Top == to || q.under(p) || slices.Contains(p.contacts, to)
}

// under says whether a person is a descendant of another.
func (p *person) under(other *person) bool {
	for p = p.parent; p != nil; p = p.parent {
		if p == other {
			return true
		}
	}
	return false
}

// What somebody brought about against the law.
const (
	ran    = "ran"    // a tool acted for who may not call it
	gave   = "gave"   // a role or an agent holds what its maker may not give
	forged = "forged" // a record says what is not so
	ended  = "ended"  // an agent was ended by who is not above it
	wrote  = "wrote"  // a message went to who may not get it
	sees   = "sees"   // an agent sees what it may not call, or not what it may
	told   = "told"   // a tool-gated agent is told more than that a tool is not its own
)

// breach is something that the law forbids.
type breach struct{ kind, text string }

func (b *breach) Error() string { return b.kind + ": " + b.text }

func breached(kind, format string, args ...any) error {
	return &breach{kind, fmt.Sprintf(format, args...)}
}

// judge looks at what an agent's call brought about, and learns it.
func (l *law) judge(p *person, tool string, made []change) error {
	var found error
	caused := 0
	for _, c := range made {
		for _, r := range c.put {
			if err := l.judgeRecord(p, r); err != nil && found == nil {
				found = fmt.Errorf("%s by agent %s of role %q: %w", tool, p.id, p.role, err)
			}
			l.learn(r)
		}
		c.post = slices.DeleteFunc(c.post, l.excuse)
		caused += len(c.put) + len(c.post)
		for _, m := range c.post {
			if m.From != string(p.id) || m.Task != p.task || !l.mayWrite(p, identity.AgentID(m.To)) {
				return breached(wrote, "%s by agent %s: a message from %s to %s in task %s", tool, p.id, m.From, m.To, m.Task)
			}
		}
	}
	if found == nil && caused > 0 && !l.may(p, tool) {
		found = breached(ran, "%s by agent %s of role %q, which may not call it, made %d changes", tool, p.id, p.role, len(made))
	}
	return found
}

// excuse says whether a message is that of a tool-gated agent who was given
// work, has no tool, and tells its parent so: no call brought it about.
func (l *law) excuse(m journal.Message) bool {
	var notice struct{ ErrorType errcode.Code }
	from := l.agents[identity.AgentID(m.From)]
	return json.Unmarshal(m.Payload, &notice) == nil && notice.ErrorType == errcode.NoToolsAvailable &&
		from != nil && from.parent != nil && m.To == string(from.parent.id)
}

func (l *law) judgeRecord(p *person, r journal.Record) error {
	switch org.Kind(r.Kind) {
	case org.KindRole:
		return l.judgeRole(p, decoded[org.Role](r))
	case org.KindAgent, org.KindTerminated:
		a := org.Agent{ID: identity.AgentID(r.Key), Status: org.Terminated} // who ends goes from the one kind to the other
		if r.Value != nil {
			a = decoded[org.Agent](r)
		}
		if a.Status == org.Active && r.Kind == string(org.KindAgent) {
			return l.judgeSpawn(p, a)
		}
		if q := l.agents[a.ID]; q == nil || q.gone || !q.under(p) || a.Status != org.Terminated {
			return breached(ended, "agent %s became %s", a.ID, a.Status)
		}
	case org.KindTask:
		return breached(forged, "the record of task %s", r.Key)
	}
	return nil
}

// judgeRole: "Nobody gives what they may not grant: use ⊆ creator's grant and
// grant ⊆ creator's grant."
func (l *law) judgeRole(p *person, r org.Role) error {
	made := charterOf(r)
	by, role := string(p.id), string(p.role)
	if p.root {
		by, role = org.CreatorRoot, org.CreatorRoot
	}
	switch {
	case l.roles[r.ID] != nil || r.Status != org.Active:
		return breached(forged, "role %s, which was there, became %s use %s grant %s", r.ID, r.Status, r.Use, r.Grant)
	case r.CreatedBy != by || r.CreatedByRole != role || r.ID == org.RootRole:
		return breached(forged, "role %s says that %s of role %q made it", r.ID, r.CreatedBy, r.CreatedByRole)
	case l.named(r.Name) != nil:
		return breached(forged, "a second role named %q", r.Name)
	case made.server != "" || made.gated:
		return breached(forged, "role %q is confined to %q, gated %v; agents say neither", r.Name, made.server, made.gated)
	case !l.mayGive(p, made.use, made.grant):
		return breached(gave, "role %q has use %s grant %s; all of %v must cover them", r.Name, r.Use, r.Grant, l.giving(p))
	}
	for id, owner := range r.GroupOwners {
		if owner != l.groups.owner(id) {
			return breached(forged, "role %q takes group %s for one of %q", r.Name, id, owner)
		}
	}
	return nil
}

// judgeSpawn: "Who may be spawned: a role whose use and grant the spawner's
// grant covers, whoever created it."
func (l *law) judgeSpawn(p *person, a org.Agent) error {
	r := l.roles[a.Role]
	switch {
	case l.agents[a.ID] != nil:
		return breached(forged, "agent %s, which was there, is made again", a.ID)
	case a.Parent != p.id || a.Task != p.task || a.Root || a.Role == org.RootRole:
		return breached(forged, "agent %s of role %q below %s in task %s, root %v", a.ID, a.Role, a.Parent, a.Task, a.Root)
	case r == nil || r.gone:
		return breached(gave, "agent %s is of role %q, which is not there", a.ID, a.Role)
	case !l.mayGive(p, r.use, r.grant):
		return breached(gave, "agent %s is of role %q with use %v grant %v; all of %v must cover them", a.ID, r.name, r.use, r.grant, l.giving(p))
	}
	for _, c := range a.Brief.Collaborators {
		if to := c.Agent; to != p.id && to != org.RootRole && to != "user" && !l.mayWrite(p, to) {
			return breached(wrote, "agent %s may write to %s, to whom its maker may not", a.ID, to)
		}
	}
	return nil
}

func (l *law) named(name string) *charter {
	for _, r := range l.roles {
		if r.name == name && !r.gone {
			return r
		}
	}
	return nil
}

func charterOf(r org.Role) *charter {
	c := &charter{id: r.ID, name: r.Name, server: r.Server, gated: r.ToolGated, use: giftOf(r.Use, r.GroupOwners), grant: giftOf(r.Grant, r.GroupOwners), gone: r.Status != org.Active}
	if by := r.CreatedByRole; by != org.CreatorRoot && by != org.CreatorOperator {
		c.maker = identity.RoleID(by)
	}
	return c
}

// learn takes a record for what is so.
func (l *law) learn(r journal.Record) {
	switch org.Kind(r.Kind) {
	case org.KindRole:
		l.roles[identity.RoleID(r.Key)] = charterOf(decoded[org.Role](r))
	case org.KindTask:
		t := decoded[org.Task](r)
		l.tasks[t.ID] = &t
	case org.KindAgent, org.KindTerminated:
		if r.Value != nil { // who ends goes from the one kind to the other
			l.learnAgent(decoded[org.Agent](r))
		}
	}
}

func (l *law) learnAgent(a org.Agent) {
	if p := l.agents[a.ID]; p != nil {
		p.gone = a.Status != org.Active
		return
	}
	p := &person{id: a.ID, role: a.Role, task: a.Task, parent: l.agents[a.Parent], root: a.Root}
	for _, c := range a.Brief.Collaborators {
		p.contacts = append(p.contacts, c.Agent)
	}
	l.agents[a.ID] = p
}

// decoded reads a record that the organization wrote.
func decoded[T any](r journal.Record) T {
	var v T
	if err := json.Unmarshal(r.Value, &v); err != nil {
		panic(fmt.Sprintf("%s %s: %v", r.Kind, r.Key, err))
	}
	return v
}
