package property_test

import (
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// oracle is a naive model of roles and permissions. It computes every answer
// from scratch. A set of groups is a list of ids in which "*" means all groups.
type oracle struct {
	registry *naiveRegistry
	roles    map[identity.RoleID]*role
	agents   map[identity.AgentID]*agent
}

type ids = []toolgroups.GroupID

// pinnedSet is a set of groups with their owners at the time it was written.
type pinnedSet struct {
	ids    ids
	owners map[toolgroups.GroupID]toolgroups.GroupOwner
}

// role is a role as the oracle knows it.
type role struct {
	use, grant pinnedSet
	server     string            // "" if it is not restricted to a server
	gating     toolgroups.Gating // unless NotGated, its agents need a tool to answer
	shut       []string          // tools whose bounds let nothing through
	creator    identity.RoleID   // "" if root or the operator created it
	gone       bool              // deleted or damaged
	lost       bool              // its record is damaged
}

// agent is an agent as the oracle knows it.
type agent struct {
	id         identity.AgentID
	role       identity.RoleID // "" for root
	parent     *agent
	taskGroups pinnedSet // of the task, at the top
	state      string
	gone       bool
	taskEnded  bool // its task has ended
}

// top returns the agent at the top of the task.
func (a *agent) top() *agent {
	for a.parent != nil {
		a = a.parent
	}
	return a
}

func newOracle(r *naiveRegistry) *oracle {
	return &oracle{r, map[identity.RoleID]*role{}, map[identity.AgentID]*agent{}}
}

// pinOwners returns a set with the current owners of its groups.
func (o *oracle) pinOwners(set ids) pinnedSet {
	b := pinnedSet{set, map[toolgroups.GroupID]toolgroups.GroupOwner{}}
	for _, id := range set {
		b.owners[id] = o.registry.OwnerOf(id)
	}
	return b
}

// tools lists the tools in a set now. A group counts only if it has the same
// owner as when the set was written.
func (o *oracle) tools(b pinnedSet) []string {
	if slices.Contains(b.ids, "*") {
		return o.registry.Names()
	}
	var present ids
	for _, id := range b.ids {
		if owner := o.registry.OwnerOf(id); owner != "" && owner == b.owners[id] {
			present = append(present, id)
		}
	}
	return o.registry.Definitions(present...)
}

// allGroups is the set of all groups.
var allGroups = pinnedSet{ids: ids{"*"}}

// ceiling lists the tools that the creators of a role may grant, recursively;
// nil means none.
func (o *oracle) ceiling(r *role) []string {
	if r.creator == "" {
		return o.tools(allGroups)
	}
	creator := o.roles[r.creator]
	if creator.gone {
		return nil
	}
	return intersect(o.tools(creator.grant), o.ceiling(creator))
}

// grant lists the tools that an agent may grant.
func (o *oracle) grant(a *agent) []string {
	if a.role == "" {
		return o.tools(a.taskGroups)
	}
	r := o.roles[a.role]
	if r.gone {
		return nil
	}
	return intersect(o.tools(r.grant), o.ceiling(r), o.parentGrant(a))
}

// parentGrant lists the tools that an agent's parent may grant; at the top,
// those that the task allows.
func (o *oracle) parentGrant(a *agent) []string {
	if a.parent != nil {
		return o.grant(a.parent)
	}
	return o.tools(a.taskGroups)
}

// effective lists the tools of an agent in any state: use ∩ task ∩ ceiling of
// the creators of its role ∩ effective grant of its parent. Root uses only
// org_management.
func (o *oracle) effective(a *agent) []string {
	if a.gone {
		return nil
	}
	if a.role == "" {
		return o.registry.Definitions(toolgroups.OrgManagement)
	}
	r := o.roles[a.role]
	if r.gone {
		return nil
	}
	names := o.ofServers(o.servers(a), intersect(o.tools(r.use), o.ceiling(r), o.parentGrant(a)))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(o.boundingRoles(a), func(r *role) bool { return slices.Contains(r.shut, name) })
	})
}

// boundingRoles lists the roles that limit an agent: its own, those of its
// ancestors, and the creators of each.
func (o *oracle) boundingRoles(a *agent) []*role {
	var list []*role
	for ; a != nil; a = a.parent {
		for id := a.role; id != ""; id = o.roles[id].creator {
			list = append(list, o.roles[id])
		}
	}
	return list
}

// servers lists the servers that an agent is restricted to.
func (o *oracle) servers(a *agent) []string {
	var list []string
	for _, r := range o.boundingRoles(a) {
		if r.server != "" {
			list = append(list, r.server)
		}
	}
	return list
}

// ofServers returns the tools that belong to every one of the servers.
func (o *oracle) ofServers(servers, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		owner := o.registry.GroupOfTool(name).Owner
		return slices.ContainsFunc(servers, func(server string) bool { return owner != toolgroups.GroupOwner("module:"+server) })
	})
}

// isToolGated reports whether a role that limits the agent is tool-gated, or
// may have been before its record was damaged. Root never is.
func (o *oracle) isToolGated(a *agent) bool { return o.gatingOf(a) != toolgroups.NotGated }

// gatingOf returns the strictest level of the roles that limit the agent. A damaged role may
// have had the strictest.
func (o *oracle) gatingOf(a *agent) (strictest toolgroups.Gating) {
	if a.role == "" || a.gone {
		return toolgroups.NotGated
	}
	for _, r := range o.boundingRoles(a) {
		if r.lost {
			return toolgroups.StrictlyGated
		}
		strictest = max(strictest, r.gating)
	}
	return strictest
}

// intersect returns what all lists contain, in the order of the first.
func intersect(first []string, others ...[]string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(name string) bool {
		return slices.ContainsFunc(others, func(list []string) bool { return !slices.Contains(list, name) })
	})
}

// visible lists what an agent may call in its workflow state.
func (o *oracle) visible(a *agent) []string {
	return slices.DeleteFunc(o.effective(a), func(name string) bool {
		t, _ := o.registry.ToolByName(name)
		return !grouptest.AllowedInState(t.States, a.state)
	})
}

// grantLimits lists the sets that must all cover what an agent grants, id by
// id.
func (o *oracle) grantLimits(a *agent) []pinnedSet {
	var list []pinnedSet
	for ; a != nil; a = a.parent {
		if a.role == "" {
			list = append(list, a.taskGroups)
			continue
		}
		r := o.roles[a.role]
		if r.gone {
			return []pinnedSet{{}}
		}
		list = append(list, r.grant)
		for r.creator != "" {
			if r = o.roles[r.creator]; r.gone {
				return []pinnedSet{{}}
			}
			list = append(list, r.grant)
		}
		if a.parent == nil {
			list = append(list, a.taskGroups)
		}
	}
	return list
}

// covers reports whether a set contains a group or one that it is a descendant of. A group covers
// its read part, and never the other way round. Only the owners of groups above count.
func (o *oracle) covers(b pinnedSet, id toolgroups.GroupID) bool {
	whole, _ := grouptest.Whole(id)
	if slices.Contains(b.ids, "*") || slices.Contains(b.ids, id) || slices.Contains(b.ids, whole) {
		return true
	}
	return slices.ContainsFunc(b.ids, func(above toolgroups.GroupID) bool {
		owner := o.registry.OwnerOf(above)
		return owner != "" && owner == b.owners[above] && o.registry.Covers(above, id)
	})
}

// mayGrant reports whether every limit covers every set. Only all groups cover
// all groups.
func (o *oracle) mayGrant(limits []pinnedSet, sets ...ids) bool {
	for _, limit := range limits {
		for _, set := range sets {
			if slices.ContainsFunc(set, func(id toolgroups.GroupID) bool { return !o.covers(limit, id) }) {
				return false
			}
		}
	}
	return true
}

// withDefaults completes the sets of a role: use is by default everything that
// may be granted, grant is use if that contains org_management and empty
// otherwise.
func (o *oracle) withDefaults(limits []pinnedSet, use, grant *ids) (ids, ids) {
	if use == nil {
		given := ids{"*"}
		for _, limit := range limits {
			given = o.intersectIDs(o.pinOwners(given), limit)
		}
		use = &given
	}
	if grant == nil {
		grant = &ids{}
		if slices.Contains(*use, "*") || slices.Contains(*use, toolgroups.OrgManagement) {
			grant = use
		}
	}
	return *use, *grant
}

// intersectIDs returns the groups of each set that the other covers, and the read parts of those
// of which it covers these alone.
func (o *oracle) intersectIDs(a, b pinnedSet) ids {
	switch {
	case slices.Contains(b.ids, "*"):
		return a.ids
	case slices.Contains(a.ids, "*"):
		return b.ids
	}
	var both ids
	for _, id := range slices.Concat(a.ids, b.ids) {
		for _, part := range (ids{id, readPart(id)}) {
			if o.covers(a, part) && o.covers(b, part) {
				if !slices.Contains(both, part) {
					both = append(both, part)
				}
				break
			}
		}
	}
	return both
}

// readPart returns the id of the read part of a group.
func readPart(id toolgroups.GroupID) toolgroups.GroupID {
	whole, _ := grouptest.Whole(id)
	return whole + ":read"
}

// withReads returns a list with the read parts of its groups.
func withReads(list ids) ids {
	for _, id := range slices.Clone(list) {
		if id != "*" {
			list = append(slices.Clip(list), readPart(id))
		}
	}
	return list
}

// activeAgents returns the agents that are not terminated, in the given order.
func (o *oracle) activeAgents(order []identity.AgentID) []*agent {
	var list []*agent
	for _, id := range order {
		if a := o.agents[id]; !a.gone {
			list = append(list, a)
		}
	}
	return list
}

// terminate terminates an agent and all below it.
func (o *oracle) terminate(a *agent) {
	a.gone = true
	for _, other := range o.agents {
		if other.parent == a && !other.gone {
			o.terminate(other)
		}
	}
}
