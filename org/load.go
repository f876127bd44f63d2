package org

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/identity"
)

// load reads all records. Agents come after roles and tasks, on which their scopes
// depend.
func (o *Org) load(source RecordSource) {
	for r := range o.validRecords(source, KindMeta) {
		if r.Key == "epoch" {
			_ = json.Unmarshal(r.Value, &o.epoch) // a lost epoch starts at 0 again
		}
	}
	o.loadPause(source)
	o.loadRootGrant(source)
	o.loadRootApproval(source)
	o.loadTools(source)
	for r := range o.validRecords(source, KindRole) {
		var role Role
		if o.decode(KindRole, r, &role) && o.matchesKey(KindRole, r, string(role.ID)) && o.hasAllowedFields(r, &role) {
			o.addRole(&role)
		}
	}
	for r := range o.validRecords(source, KindTask) {
		var task Task
		if o.decode(KindTask, r, &task) && o.matchesKey(KindTask, r, string(task.ID)) {
			o.tasks[task.ID] = task.summary()
			o.tasksByAge = append(o.tasksByAge, o.tasks[task.ID])
		}
	}
	o.assignOwners()
	slices.SortFunc(o.tasksByAge, compareAge)
	for _, t := range o.tasksByAge {
		o.addKey(t)
	}
	o.loadAgents(source)
	o.loadCallers(source)
}

// pendingAgent is an agent that is not linked to its parent yet.
type pendingAgent struct {
	*agentNode
	parent identity.AgentID
}

// loadAgents reads all agents, then links each to its parent, then assigns the scopes.
func (o *Org) loadAgents(source RecordSource) {
	var list []pendingAgent
	texts := interner{}
	for r := range o.validRecords(source, KindAgent) {
		if c, ok := o.decodeAgent(r); ok && LifecycleStatus(c.status) == Active {
			list = append(list, pendingAgent{texts.node(r.Key, &c), identity.AgentID(texts.intern(c.parent))})
		}
	}
	o.loadNames(source)
	o.agents = make(map[identity.AgentID]*agentNode, len(list))
	for _, f := range list {
		if o.agents[f.id] == nil {
			o.countAgent(f.task, 1)
		}
		o.agents[f.id] = f.agentNode
		o.countName(f.task, f.name)
	}
	for _, f := range list {
		o.link(f.agentNode, f.parent)
	}
	c := linker{Org: o}
	for _, f := range list {
		c.assignScope(f.agentNode)
	}
}

// decodeAgent decodes the record of an agent. It reports false if the record is ignored.
func (o *Org) decodeAgent(r StoredRecord) (agentHeader, bool) {
	c, err := decodeAgentHeader(r.Value)
	if err != nil {
		o.skipRecord(KindAgent, r, err.Error())
		return c, false
	}
	return c, string(c.id) == r.Key || o.matchesKey(KindAgent, r, string(c.id))
}

// interner returns equal strings as one string, which saves the memory of ids that many
// agents share.
type interner map[string]string

// intern returns the shared string that is equal to text.
func (i interner) intern(text []byte) string {
	known, ok := i[string(text)]
	if !ok {
		known = string(text)
		i[known] = known
	}
	return known
}

// node returns the node of an agent, without parent and scope.
func (i interner) node(id string, c *agentHeader) *agentNode {
	return &agentNode{
		id: identity.AgentID(id), role: identity.RoleID(i.intern(c.role)), task: identity.TaskID(i.intern(c.task)), name: string(c.name),
		state: i.intern(c.state), contacts: c.contacts, created: c.created, root: c.root,
	}
}

// link attaches an agent to its parent. An agent without a parent is orphaned unless it is the top
// agent of its task. So is one whose parent is missing, belongs to another task, or contradicts the
// flags of the agent. Orphaned agents are denied everything.
func (o *Org) link(m *agentNode, parent identity.AgentID) {
	p, ok := o.agents[parent]
	switch {
	case parent == "":
		m.orphaned = !o.isTopAgent(m)
	case ok && p.task == m.task && !m.root && !o.isTopAgent(m):
		m.attach(p)
	default:
		m.orphaned = true
	}
}

// linker assigns the scopes of agents.
type linker struct {
	*Org
	path    []*agentNode // from an agent up to the first ancestor that has a scope
	pending scope        // marks the agents on path
}

// assignScope assigns the scope of an agent, after the scopes of its ancestors. A cycle of parents
// is broken: the agent where it is found is orphaned.
func (l *linker) assignScope(m *agentNode) {
	l.path = l.path[:0]
	for at := m; at != nil && at.scope == nil; at = at.parent {
		at.scope = &l.pending
		l.path = append(l.path, at)
	}
	for _, at := range slices.Backward(l.path) {
		if at.parent != nil && at.parent.scope == &l.pending {
			at.detach()
			at.parent, at.orphaned = nil, true
		}
		l.setScope(at)
	}
}

// validRecords yields the records of a kind that are not damaged.
func (o *Org) validRecords(source RecordSource, kind RecordKind) iter.Seq[StoredRecord] {
	return func(yield func(StoredRecord) bool) {
		for r, err := range source.Records(string(kind)) {
			if err != nil {
				r.Value = nil // nothing of it is believed
				o.skipRecord(kind, r, err.Error())
				continue
			}
			if !yield(r) {
				return
			}
		}
	}
}

// decode decodes the JSON of a record into v. It reports false if the record is ignored.
func (o *Org) decode(kind RecordKind, r StoredRecord, v any) bool {
	err := json.Unmarshal(r.Value, v)
	if err != nil {
		o.skipRecord(kind, r, err.Error())
	}
	return err == nil
}

// matchesKey reports whether the id in a record is its key.
func (o *Org) matchesKey(kind RecordKind, r StoredRecord, id string) bool {
	if id != r.Key {
		o.skipRecord(kind, r, "the record has the id "+strconv.Quote(id))
	}
	return id == r.Key
}

// hasAllowedFields reports whether a role may have what it says about its callers. A role that an
// agent created never says anything.
func (o *Org) hasAllowedFields(r StoredRecord, role *Role) bool {
	forged := (role.Tasks.As != "" || role.Agent != nil || role.States != nil) && !role.isDeclared()
	if forged {
		o.skipRecord(KindRole, r, "the role of an agent has tasks.as, agent or states")
	}
	return !forged
}

// skipRecord logs that a record is ignored.
func (o *Org) skipRecord(kind RecordKind, r StoredRecord, why string) {
	o.config.Log.Error("record ignored", "kind", kind, "key", r.Key, "error", why)
	if kind == KindRole {
		o.lost.add(r.Value)
	}
}
