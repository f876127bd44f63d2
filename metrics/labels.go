package metrics

import (
	"sync"

	"github.com/rolecall/rolecall/toolgroups"
)

// labelValues returns label values. Registered names are labels of their own;
// invented names become otherLabel, because every label is kept forever. It is
// safe for concurrent use.
type labelValues struct {
	groups *toolgroups.Manager

	mu       sync.Mutex // guards the fields below, which belong to one snapshot
	snapshot *toolgroups.Snapshot
	perState map[string]int // number of tools available in each state
}

// hasTool reports whether a tool is registered.
func (l *labelValues) hasTool(tool string) bool {
	_, ok := l.groups.CurrentSnapshot().LookupTool(tool)
	return ok
}

// toolLabel returns the label of a tool.
func (l *labelValues) toolLabel(name string) string {
	if h, ok := l.groups.CurrentSnapshot().LookupTool(name); ok {
		return h.Definition.Name
	}
	return otherLabel
}

// groupLabel returns the label of a group.
func (l *labelValues) groupLabel(id string) string {
	if l.groups.CurrentSnapshot().GroupOwner(toolgroups.GroupID(id)) == "" {
		return otherLabel
	}
	return id
}

// allGroups is the name of all groups in a request.
const allGroups = "*"

// requestedGroupLabel returns the label of a group that a request names.
func (l *labelValues) requestedGroupLabel(id string) string {
	if id == allGroups || id == string(toolgroups.DefaultGroup) { // requests have it by default, also if no tool is in it
		return id
	}
	return l.groupLabel(id)
}

// stateLabel returns the label of a workflow state: a state that a registered tool
// names, or the one of agents without a state.
func (l *labelValues) stateLabel(name string) string {
	name = toolgroups.StateName(name)
	if _, ok := l.toolsPerState()[name]; ok {
		return name
	}
	return otherLabel
}

// toolsPerState returns the number of tools available in each state to an agent
// that may use all groups. The caller must not change the map.
func (l *labelValues) toolsPerState() map[string]int {
	now := l.groups.CurrentSnapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snapshot != now {
		l.snapshot, l.perState = now, countToolsPerState(now)
	}
	return l.perState
}

// countToolsPerState counts with a View, as the gate decides.
func countToolsPerState(s *toolgroups.Snapshot) map[string]int {
	tools := s.ListTools()
	counts := map[string]int{toolgroups.UndefinedState: 0}
	for _, h := range tools {
		for _, state := range append(h.Definition.States[:len(h.Definition.States):len(h.Definition.States)], h.Definition.State) {
			if state != "" && state != "*" && cleanLabel(state) != otherLabel && len(counts) < maxSeries {
				counts[state] = 0
			}
		}
	}
	view := s.Compile(s.PinOwners(toolgroups.AllGroups()))
	for state := range counts {
		inState := view.ForState(state)
		for _, h := range tools {
			if inState.HasTool(h) {
				counts[state]++
			}
		}
	}
	return counts
}
