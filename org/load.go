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
		if o.decode(KindRole, r, &role) && o.placed(KindRole, r, string(role.ID)) {
			o.addRole(&role)
		}
	}
	for r := range o.records(source, KindTask) {
		var task Task
		if o.decode(KindTask, r, &task) && o.placed(KindTask, r, string(task.ID)) {
			o.tasks[task.ID] = task.compact()
		}
	}
	o.loadAgents(source)
	o.loadCallers(source)
}

// found is an agent whose parent is not looked up yet.
type found struct {
	*member
	parent identity.AgentID
}

// loadAgents reads all agents, then links each to its parent and its slot.
func (o *Org) loadAgents(source Source) {
	var list []found
	texts := texts{}
	for r := range o.records(source, KindAgent) {
		if c, ok := o.claimOf(r); ok && Status(c.status) == Active {
			list = append(list, found{texts.member(r.Key, &c), identity.AgentID(texts.one(c.parent))})
		}
	}
	o.agents = make(map[identity.AgentID]*member, len(list))
	for _, f := range list {
		o.agents[f.id] = f.member
	}
	for _, f := range list {
		o.link(f.member, f.parent)
	}
	c := climber{Org: o}
	for _, f := range list {
		c.seat(f.member)
	}
}

// claimOf reads an agent's record; false when it is left out.
func (o *Org) claimOf(r Record) (claim, bool) {
	c, err := readClaim(r.Value)
	if err != nil {
		o.leaveOut(KindAgent, r, err.Error())
		return c, false
	}
	return c, string(c.id) == r.Key || o.placed(KindAgent, r, string(c.id))
}

// texts holds one text of each that many agents share. It is let go when all
// agents are loaded.
type texts map[string]string

// one gives the one text there is.
func (t texts) one(text []byte) string {
	known, ok := t[string(text)]
	if !ok {
		known = string(text)
		t[known] = known
	}
	return known
}

func (t texts) member(id string, c *claim) *member {
	return &member{
		id: identity.AgentID(id), role: identity.RoleID(t.one(c.role)), task: identity.TaskID(t.one(c.task)),
		state: t.one(c.state), contacts: c.contacts, created: c.created, root: c.root,
	}
}

// link puts an agent below its parent. One that claims to be what its task
// does not know it as, or a parent that cannot be its own, is lost.
func (o *Org) link(m *member, parent identity.AgentID) {
	p, ok := o.agents[parent]
	switch {
	case parent == "":
		m.lost = !o.leads(m)
	case ok && p.task == m.task && !m.root && !o.leads(m):
		m.attach(p)
	default:
		m.lost = true
	}
}

// climber gives agents their slots.
type climber struct {
	*Org
	path []*member
	mark slot // of whom is on the path
}

// seat gives an agent its slot, and those above it theirs first. Parents that
// go in a circle would be climbed for ever: it is cut, and who is cut is lost.
func (c *climber) seat(m *member) {
	c.path = c.path[:0]
	for at := m; at != nil && at.slot == nil; at = at.parent {
		at.slot = &c.mark
		c.path = append(c.path, at)
	}
	for _, at := range slices.Backward(c.path) {
		if at.parent != nil && at.parent.slot == &c.mark {
			at.detach()
			at.parent, at.lost = nil, true
		}
		at.slot = c.slotOf(at)
	}
}

// records reads the records of a kind that are whole.
func (o *Org) records(source Source, kind Kind) iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for r, err := range source.Records(string(kind)) {
			if err != nil {
				o.leaveOut(kind, r, err.Error())
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
		o.leaveOut(kind, r, err.Error())
	}
	return err == nil
}

// placed says whether a record holds what its key names.
func (o *Org) placed(kind Kind, r Record, id string) bool {
	if id != r.Key {
		o.leaveOut(kind, r, "it holds "+strconv.Quote(id))
	}
	return id == r.Key
}

func (o *Org) leaveOut(kind Kind, r Record, why string) {
	o.config.Log.Error("record left out", "kind", kind, "key", r.Key, "error", why)
}
