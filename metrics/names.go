package metrics

import (
	"sync"

	"github.com/rolecall/rolecall/toolgroups"
)

// labelValues tells names that the registry holds from those that somebody made up,
// which are never a label. It is safe for concurrent use.
type labelValues struct {
	groups *toolgroups.Manager

	mu     sync.Mutex // guards what follows, which is of one snapshot
	of     *toolgroups.Snapshot
	states map[string]int // how many tools each state offers
}

// knows says whether there is a tool of this name.
func (n *labelValues) knows(tool string) bool {
	_, ok := n.groups.Snapshot().Lookup(tool)
	return ok
}

// tool gives the label of a tool.
func (n *labelValues) tool(name string) string {
	if h, ok := n.groups.Snapshot().Lookup(name); ok {
		return h.Definition.Name
	}
	return otherLabel
}

// group gives the label of a group.
func (n *labelValues) group(id string) string {
	if n.groups.Snapshot().Owner(toolgroups.GroupID(id)) == "" {
		return otherLabel
	}
	return id
}

// state gives the label of a workflow state: one that a tool names, or that of
// agents which have none.
func (n *labelValues) state(name string) string {
	if name == "" {
		name = toolgroups.Undefined
	}
	if _, ok := n.offers()[name]; ok {
		return name
	}
	return otherLabel
}

// offers says how many tools each state offers to whom all groups are open.
// Callers must not change it.
func (n *labelValues) offers() map[string]int {
	now := n.groups.Snapshot()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of != now {
		n.of, n.states = now, offersOf(now)
	}
	return n.states
}

// offersOf asks the same View that the gate would ask.
func offersOf(s *toolgroups.Snapshot) map[string]int {
	tools := s.Tools()
	offers := map[string]int{toolgroups.Undefined: 0}
	for _, h := range tools {
		for _, state := range append(h.Definition.States[:len(h.Definition.States):len(h.Definition.States)], h.Definition.State) {
			if state != "" && state != "*" && label(state) != otherLabel && len(offers) < maxSeries {
				offers[state] = 0
			}
		}
	}
	view := s.Compile(s.Bind(toolgroups.All()))
	for state := range offers {
		shelf := view.ForState(state)
		for _, h := range tools {
			if shelf.Has(h) {
				offers[state]++
			}
		}
	}
	return offers
}
