package org

// agentList lists the agents of a scope whose tasks are running, the oldest first. It is a
// linked list, so that an idle agent stays small and leaves in constant time.
type agentList struct {
	first, last *agentNode
	count       int
}

// add adds m to the end.
func (l *agentList) add(m *agentNode) {
	m.prevInScope, m.listed = l.last, true
	if l.last != nil {
		l.last.nextInScope = m
	} else {
		l.first = m
	}
	l.last = m
	l.count++
}

// remove removes m. It does nothing if m is not in the list.
func (l *agentList) remove(m *agentNode) {
	if !m.listed {
		return
	}
	if m.prevInScope != nil {
		m.prevInScope.nextInScope = m.nextInScope
	} else {
		l.first = m.nextInScope
	}
	if m.nextInScope != nil {
		m.nextInScope.prevInScope = m.prevInScope
	} else {
		l.last = m.prevInScope
	}
	m.nextInScope, m.prevInScope, m.listed = nil, nil, false
	l.count--
}

// setScope sets the scope of m. Its parent must have one already.
func (o *Org) setScope(m *agentNode) {
	m.scope = o.scopeOf(m)
	if t, ok := o.tasks[m.task]; ok && !t.Status.Ended() {
		m.scope.agents.add(m)
	}
}

// addToScopes adds the agents of a task that goes on to the lists of their scopes.
func (o *Org) addToScopes(t *Task) {
	top, ok := o.agents[t.Top]
	if !ok {
		return
	}
	for _, m := range top.subtree() {
		m.scope.agents.add(m)
	}
}

// removeFromScopes removes the agents of a task that ends from the lists of their scopes.
func (o *Org) removeFromScopes(t *Task) {
	top, ok := o.agents[t.Top]
	if !ok {
		return
	}
	for _, m := range top.subtree() {
		m.scope.agents.remove(m)
	}
}
