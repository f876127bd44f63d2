package org

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// An agent has a name in its task: the name of its role and a number, such as counter-1. The
// names stand for ids in what models read and write. They are recorded with the agents, and no
// name is given twice in a task. Names of agents and of roles are looked up separately: the
// name of a role never stands for an agent.

// agentNames numbers the agents of tasks.
type agentNames struct {
	highest map[identity.TaskID]map[string]int // numbers given, by the name of the role; none of tasks that are done
}

// retiredName is the record of the highest number of a name, written when its agent is
// terminated.
type retiredName struct {
	Task   identity.TaskID `json:"taskId"`
	Name   string          `json:"name"` // of the role
	Number int             `json:"number"`
}

// key returns the key of the record.
func (r retiredName) key() string { return string(r.Task) + "/" + r.Name }

// newAgentName returns the name of a new agent and counts it. by creates the agent. A name is
// skipped if a role that exists for by has it, so that it means one thing to a reader. It must
// be called with mu held.
func (o *Org) newAgentName(by identity.Principal, task identity.TaskID, role string) string {
	for n := o.highest[task][role] + 1; ; n++ {
		name := role + "-" + strconv.Itoa(n)
		if _, err := o.findActiveRole(by, name); err != nil {
			o.countName(task, name)
			return name
		}
	}
}

// splitName returns the name of a role and the number that make the name of an agent.
func splitName(name string) (role string, number int) {
	at := strings.LastIndexByte(name, '-')
	if at < 0 {
		return "", 0
	}
	number, err := strconv.Atoi(name[at+1:])
	if err != nil {
		return "", 0
	}
	return name[:at], number
}

// countName notes that a name is given, unless the task is done. It must be called with mu held.
func (o *Org) countName(task identity.TaskID, name string) {
	role, number := splitName(name)
	if t := o.tasks[task]; number <= o.highest[task][role] || t != nil && t.Status == Done {
		return
	}
	if o.highest == nil {
		o.highest = map[identity.TaskID]map[string]int{}
	}
	if o.highest[task] == nil {
		o.highest[task] = map[string]int{}
	}
	o.highest[task][role] = number
}

// retireName returns a record that reserves the name of a terminated agent. Without the record, the
// name could be given again after a restart. It returns nil unless the agent has the highest
// number.
func (o *Org) retireName(m *agentNode) []RecordChange {
	role, number := splitName(m.name)
	if number == 0 || number != o.highest[m.task][role] {
		return nil
	}
	r := retiredName{m.task, role, number}
	return []RecordChange{newRecord(KindNames, r.key(), r)}
}

// loadNames reads the numbers of terminated agents.
func (o *Org) loadNames(source RecordSource) {
	for r := range o.validRecords(source, KindNames) {
		var name retiredName
		if o.decode(KindNames, r, &name) && o.matchesKey(KindNames, r, name.key()) {
			o.countName(name.Task, name.Name+"-"+strconv.Itoa(name.Number))
		}
	}
}

// ResolveRecipient returns the id of the agent that an agent means by a name or an id. It looks
// among the agents that the agent may message. It returns any other text unchanged.
func (o *Org) ResolveRecipient(from identity.AgentID, name string) identity.AgentID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[from]
	if !ok {
		return identity.AgentID(name)
	}
	return o.resolveRecipient(m, identity.AgentID(name))
}

// ResolveBelow returns the id of the agent that an agent means by a name or an id. It looks among
// the agents below it. It returns any other text unchanged.
func (o *Org) ResolveBelow(by identity.AgentID, name identity.AgentID) identity.AgentID {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[by]
	if !ok || name == "" || o.agents[name] != nil {
		return name
	}
	return cmp.Or(m.descendantNamed(string(name)), name)
}

// resolveRecipient is ResolveRecipient for a sender that exists. It must be called with mu held.
func (o *Org) resolveRecipient(from *agentNode, name identity.AgentID) identity.AgentID {
	if name == "" || o.agents[name] != nil {
		return name
	}
	for _, m := range o.recipients(from) {
		if m.name == string(name) {
			return m.id
		}
	}
	return cmp.Or(from.descendantNamed(string(name)), name)
}

// descendantNamed returns the id of the descendant of m with a name, "" if there is none.
func (m *agentNode) descendantNamed(name string) identity.AgentID {
	for _, d := range m.subtree() {
		if d != m && d.name == name {
			return d.id
		}
	}
	return ""
}

// recipients returns agents that an agent may message. The list has its parent, the top agent
// of its task, the collaborators of its brief, and its children, oldest first. recipients
// must be called with mu held.
func (o *Org) recipients(from *agentNode) (list []*agentNode) {
	if from.parent != nil {
		list = append(list, from.parent)
	}
	if t, ok := o.tasks[from.task]; ok && o.agents[t.Top] != nil {
		list = append(list, o.agents[t.Top])
	}
	for _, id := range from.contacts {
		if m := o.agents[id]; m != nil && m.task == from.task {
			list = append(list, m)
		}
	}
	children := len(list)
	for c := from.firstChild; c != nil; c = c.nextSibling {
		list = append(list, c)
	}
	slices.Reverse(list[children:])
	return list
}

// recipientNames returns names that an agent may write as recipients. It must be called with mu
// held.
func (o *Org) recipientNames(from *agentNode) []string {
	names := []string{}
	for _, m := range o.recipients(from) {
		if m != from && !m.root && !slices.Contains(names, m.name) {
			names = append(names, cmp.Or(m.name, string(m.id)))
		}
	}
	return append(names, RootRole, "user")
}

// hiredHint lists for an error the agents that an agent hired. It must be called with mu held.
func (o *Org) hiredHint(by identity.Principal) string {
	m, ok := o.agents[by.Agent]
	if !ok || by.Kind != identity.Agent {
		return ""
	}
	var names []string
	for c := m.firstChild; c != nil; c = c.nextSibling {
		names = append(names, cmp.Or(c.name, string(c.id)))
	}
	if len(names) == 0 {
		return "; you have hired none"
	}
	slices.Reverse(names)
	return "; you hired " + textutil.ListNames(names)
}

// resolveCollaborators returns collaborators with ids in place of names. It must be called with
// mu held.
func (o *Org) resolveCollaborators(p *agentNode, list []Collaborator) []Collaborator {
	list = slices.Clone(list)
	for i := range list {
		list[i].Agent = o.resolveRecipient(p, list[i].Agent)
	}
	return list
}
