package org

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/identity"
)

func (o *Org) load(source Source) {
	for r := range o.records(source, KindMeta) {
		if r.Key == "epoch" {
			_ = json.Unmarshal(r.Value, &o.epoch) // a lost epoch starts anew
		}
	}
	for r := range o.records(source, KindRole) {
		var role Role
		if o.decode(KindRole, r, &role) && o.linked(KindRole, r, string(role.ID)) {
			o.addRole(&role)
		}
	}
	for r := range o.records(source, KindTask) {
		var task Task
		if o.decode(KindTask, r, &task) && o.linked(KindTask, r, string(task.ID)) {
			o.tasks[task.ID] = task.summary()
		}
	}
	o.loadAgents(source)
	o.loadCallers(source)
}

// pendingAgent is an agent whose parent is not looked up yet.
type pendingAgent struct {
	*agentNode
	parent identity.AgentID
}

// loadAgents reads all agents, then links each to its parent and its slot.
func (o *Org) loadAgents(source Source) {
	var list []pendingAgent
	texts := interner{}
	for r := range o.records(source, KindAgent) {
		if c, ok := o.decodeAgent(r); ok && Status(c.status) == Active {
			list = append(list, pendingAgent{texts.member(r.Key, &c), identity.AgentID(texts.intern(c.parent))})
		}
	}
	o.agents = make(map[identity.AgentID]*agentNode, len(list))
	for _, f := range list {
		o.agents[f.id] = f.agentNode
	}
	for _, f := range list {
		o.link(f.agentNode, f.parent)
	}
	c := linker{Org: o}
	for _, f := range list {
		c.resolve(f.agentNode)
	}
}

// decodeAgent reads an agent's record; false when it is left out.
func (o *Org) decodeAgent(r Record) (agentHeader, bool) {
	c, err := decodeAgentHeader(r.Value)
	if err != nil {
		o.skipRecord(KindAgent, r, err.Error())
		return c, false
	}
	return c, string(c.id) == r.Key || o.linked(KindAgent, r, string(c.id))
}

// interner holds one text of each that many agents share. It is let go when all
// agents are loaded.
type interner map[string]string

// intern gives the one text there is.
func (t interner) intern(text []byte) string {
	known, ok := t[string(text)]
	if !ok {
		known = string(text)
		t[known] = known
	}
	return known
}

func (t interner) member(id string, c *agentHeader) *agentNode {
	return &agentNode{
		id: identity.AgentID(id), role: identity.RoleID(t.intern(c.role)), task: identity.TaskID(t.intern(c.task)),
		state: t.intern(c.state), contacts: c.contacts, created: c.created, root: c.root,
	}
}

// link puts an agent below its parent. One that claims to be what its task
// does not know it as, or a parent that cannot be its own, is lost.
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

// linker gives agents their slots.
type linker struct {
	*Org
	path []*agentNode
	mark scope // of whom is on the path
}

// resolve gives an agent its slot, and those above it theirs first. Parents that
// go in a circle would be climbed for ever: it is cut, and who is cut is lost.
func (c *linker) resolve(m *agentNode) {
	c.path = c.path[:0]
	for at := m; at != nil && at.slot == nil; at = at.parent {
		at.slot = &c.mark
		c.path = append(c.path, at)
	}
	for _, at := range slices.Backward(c.path) {
		if at.parent != nil && at.parent.slot == &c.mark {
			at.detach()
			at.parent, at.orphaned = nil, true
		}
		at.slot = c.scopeOf(at)
	}
}

// records reads the records of a kind that are whole.
func (o *Org) records(source Source, kind Kind) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for r, err := range source.Records(string(kind)) {
			if err != nil {
				o.skipRecord(kind, r, err.Error())
				continue
			}
			if !yield(r) {
				return
			}
		}
	}
}

func (o *Org) decode(kind Kind, r Record, v any) bool {
	err := json.Unmarshal(r.Value, v)
	if err != nil {
		o.skipRecord(kind, r, err.Error())
	}
	return err == nil
}

// linked says whether a record holds what its key names.
func (o *Org) linked(kind Kind, r Record, id string) bool {
	if id != r.Key {
		o.skipRecord(kind, r, "it holds "+strconv.Quote(id))
	}
	return id == r.Key
}

func (o *Org) skipRecord(kind Kind, r Record, why string) {
	o.config.Log.Error("record left out", "kind", kind, "key", r.Key, "error", why)
}
