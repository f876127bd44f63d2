package property_test

import (
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// oracle is design §4 said naively: everything is worked out anew with every
// question. A set of groups is a list of ids, "*" in it is all.
type oracle struct {
	registry *registry
	roles    map[identity.RoleID]*role
	agents   map[identity.AgentID]*agent
}

type ids = []toolgroups.GroupID

// bound is a set of groups with the owners they had when it was written.
type bound struct {
	ids    ids
	owners map[toolgroups.GroupID]toolgroups.Owner
}

type role struct {
	use, grant bound
	server     string          // "" when it is confined to none
	gated      bool            // its agents answer from tools alone
	maker      identity.RoleID // "" when root or the operator made it
	gone       bool            // deleted, or its record is damaged
	lost       bool            // its record is damaged
}

type agent struct {
	id     identity.AgentID
	role   identity.RoleID // "" is root's
	parent *agent
	narrow bound // of the task, at the top
	state  string
	gone   bool
	over   bool // its task is
}

// top gives the agent that the task of a stands on.
func (a *agent) top() *agent {
	for a.parent != nil {
		a = a.parent
	}
	return a
}

func newOracle(r *registry) *oracle {
	return &oracle{r, map[identity.RoleID]*role{}, map[identity.AgentID]*agent{}}
}

// bind writes a set of groups down now.
func (o *oracle) bind(set ids) bound {
	b := bound{set, map[toolgroups.GroupID]toolgroups.Owner{}}
	for _, id := range set {
		b.owners[id] = o.registry.owner(id)
	}
	return b
}

// tools lists what a set of groups reaches now: "*" everything, an id what its
// group holds if the same owner has it still.
func (o *oracle) tools(b bound) []string {
	if slices.Contains(b.ids, "*") {
		return o.registry.names()
	}
	var there ids
	for _, id := range b.ids {
		if owner := o.registry.owner(id); owner != "" && owner == b.owners[id] {
			there = append(there, id)
		}
	}
	return o.registry.definitions(there...)
}

var everything = bound{ids: ids{"*"}}

// ceiling lists what the makers of a role may grant; nil is nothing.
func (o *oracle) ceiling(r *role) []string {
	if r.maker == "" {
		return o.tools(everything)
	}
	maker := o.roles[r.maker]
	if maker.gone {
		return nil
	}
	return both(o.tools(maker.grant), o.ceiling(maker))
}

// grant lists what an agent may give.
func (o *oracle) grant(a *agent) []string {
	if a.role == "" {
		return o.tools(a.narrow)
	}
	r := o.roles[a.role]
	if r.gone {
		return nil
	}
	return both(o.tools(r.grant), o.ceiling(r), o.given(a))
}

// given lists what an agent's parent may give, or its task lets through.
func (o *oracle) given(a *agent) []string {
	if a.parent != nil {
		return o.grant(a.parent)
	}
	return o.tools(a.narrow)
}

// effective(agent) = use ∩ task ∩ ceiling(the roles its role was created by) ∩
// its parent's effective grant. Root uses org_management alone.
func (o *oracle) effective(a *agent) []string {
	if a.gone {
		return nil
	}
	if a.role == "" {
		return o.registry.definitions(toolgroups.OrgManagement)
	}
	r := o.roles[a.role]
	if r.gone {
		return nil
	}
	return o.from(o.servers(a), both(o.tools(r.use), o.ceiling(r), o.given(a)))
}

// chain lists the roles that bound an agent: its own, those that made it, and
// those of the agents above.
func (o *oracle) chain(a *agent) []*role {
	var list []*role
	for ; a != nil; a = a.parent {
		for id := a.role; id != ""; id = o.roles[id].maker {
			list = append(list, o.roles[id])
		}
	}
	return list
}

// servers lists the servers an agent is confined to.
func (o *oracle) servers(a *agent) []string {
	var list []string
	for _, r := range o.chain(a) {
		if r.server != "" {
			list = append(list, r.server)
		}
	}
	return list
}

// from lists those of some tools that every one of some servers brought.
func (o *oracle) from(servers, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		owner := o.registry.home(name).owner
		return slices.ContainsFunc(servers, func(server string) bool { return owner != toolgroups.Owner("module:"+server) })
	})
}

// gated says whether an agent answers from tools alone: it or who bounds it
// does, or may have before its record was lost. Root never does.
func (o *oracle) gated(a *agent) bool {
	return a.role != "" && !a.gone && slices.ContainsFunc(o.chain(a), func(r *role) bool { return r.gated || r.lost })
}

// both lists what is in all lists, in the order of the first.
func both(first []string, others ...[]string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(name string) bool {
		return slices.ContainsFunc(others, func(list []string) bool { return !slices.Contains(list, name) })
	})
}

// visible lists what an agent may call in its workflow state.
func (o *oracle) visible(a *agent) []string {
	return slices.DeleteFunc(o.effective(a), func(name string) bool {
		t, _ := o.registry.tool(name)
		return !offers(t.states, a.state)
	})
}

func offers(states []string, state string) bool {
	if state == "" {
		state = toolgroups.Undefined
	}
	return states == nil || slices.Contains(states, "*") || slices.Contains(states, state)
}

// limits lists the sets that what an agent gives must all cover, id by id.
func (o *oracle) limits(a *agent) []ids {
	var list []ids
	for ; a != nil; a = a.parent {
		if a.role == "" {
			list = append(list, a.narrow.ids)
			continue
		}
		r := o.roles[a.role]
		if r.gone {
			return []ids{nil}
		}
		list = append(list, r.grant.ids)
		for r.maker != "" {
			if r = o.roles[r.maker]; r.gone {
				return []ids{nil}
			}
			list = append(list, r.grant.ids)
		}
		if a.parent == nil {
			list = append(list, a.narrow.ids)
		}
	}
	return list
}

// mayGive says whether every set is covered by every limit. Only all covers all.
func mayGive(limits []ids, sets ...ids) bool {
	for _, limit := range limits {
		for _, set := range sets {
			if !slices.Contains(limit, "*") && slices.ContainsFunc(set, func(id toolgroups.GroupID) bool { return !slices.Contains(limit, id) }) {
				return false
			}
		}
	}
	return true
}

// complete fills in what a role leaves out: use is all that may be given;
// grant is use if that holds org_management, else nothing.
func complete(limits []ids, use, grant *ids) (ids, ids) {
	if use == nil {
		given := ids{"*"}
		for _, limit := range limits {
			given = meet(given, limit)
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

func meet(a, b ids) ids {
	switch {
	case slices.Contains(b, "*"):
		return a
	case slices.Contains(a, "*"):
		return b
	}
	return slices.DeleteFunc(slices.Clone(a), func(id toolgroups.GroupID) bool { return !slices.Contains(b, id) })
}

// living lists the agents that are not terminated, in the order they came.
func (o *oracle) living(order []identity.AgentID) []*agent {
	var list []*agent
	for _, id := range order {
		if a := o.agents[id]; !a.gone {
			list = append(list, a)
		}
	}
	return list
}

// end terminates an agent and all below it.
func (o *oracle) end(a *agent) {
	a.gone = true
	for _, other := range o.agents {
		if other.parent == a && !other.gone {
			o.end(other)
		}
	}
}
