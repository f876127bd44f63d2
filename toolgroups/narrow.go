package toolgroups

import (
	"slices"
)

// Needs is what a narrower set must still contain. What the wider set does not contain, whether
// its groups with hours are open or not, is not needed.
type Needs struct {
	Tools  []*ToolHandle // under exactly these names
	Limits []*ToolHandle // under whatever names: the set is a limit
	Groups []GroupID     // see MissingFrom; "*" needs AllGroups
}

// Narrowing is a set of groups that contains no more than another.
type Narrowing struct {
	Set   GroupSet // in the order of the other set, each group followed by its descendants; those with hours and those that are away last
	Tools int      // tools in Set while all groups with hours are open

	// Exact reports that no other choice of these groups meets the needs with fewer tools, or
	// with as many tools and fewer groups. It is false if the search was too long.
	Exact bool
}

// NarrowSet chooses groups that b contains, and that meet the needs. AllGroups contains a group
// server/api for this if it is needed. It never chooses a group that contains a tool at a time
// when b does not. A group below one with hours is chosen only if b also contains it without
// these hours. A group with hours does not replace a group that is always open. A tool that b
// has in hours only keeps all groups with hours that contain it.
//
// Groups of b that are not registered are chosen if Groups has them. AllGroups contains every
// id, known or not. Groups of other sets are never chosen if their id belongs to another owner
// now. A role that is written again would be pinned to the new owner.
func (s *Snapshot) NarrowSet(b PinnedSet, n Needs) Narrowing {
	if b.Set.all && slices.Contains(n.Groups, "*") {
		return Narrowing{Set: AllGroups(), Tools: len(s.handles(b)), Exact: true}
	}
	x := newNarrowing(s, b, n)
	chosen, exact := smallestCover(x.covers, len(x.needs))
	slices.Sort(chosen)
	ids, tools := make([]GroupID, len(chosen)), newBits(s.width)
	for i, c := range chosen {
		ids[i] = x.candidates[c].id
		tools.addAll(x.covers[c].cost)
	}
	return Narrowing{Set: SetOf(ids...), Tools: tools.count(), Exact: exact}
}

// AllTools returns the tools of a group and of its descendants, each once. It includes tools that
// are closed now by their hours. It returns nil for an unknown id.
func (s *Snapshot) AllTools(id GroupID) []*ToolHandle {
	g, ok := s.group(id)
	if !ok {
		return nil
	}
	return s.allMembers(g)
}

func (s *Snapshot) allMembers(g *group) (list []*ToolHandle) {
	seen := newBits(s.width)
	for _, one := range s.subtree(g) {
		list = appendNew(list, seen, s.ownMembers(one.opened()))
	}
	return list
}

// subtree returns a group and its descendants, whether they are closed or not.
func (s *Snapshot) subtree(g *group) []*group {
	list := []*group{g}
	for i := 0; i < len(list); i++ {
		for _, child := range s.childrenOf(list[i]) {
			if !slices.ContainsFunc(list, func(have *group) bool { return have.ID == child.ID }) {
				list = append(list, child)
			}
		}
	}
	return list
}

// candidate is a group that a narrower set may have.
type candidate struct {
	id    GroupID
	open  map[*ToolHandle]bool // tools that it contains at all times
	timed []*group             // the groups with hours through which it contains tools
}

// need is one thing that a narrower set must contain. It is a tool, a group, or a group with hours
// through which the wider set has a tool.
type need struct {
	tool  *ToolHandle
	exact bool // under the name of tool
	timed GroupID
	id    GroupID
}

// narrowing is the choice of groups of a set.
type narrowing struct {
	snapshot   *Snapshot
	set        PinnedSet
	candidates []candidate
	needs      []need
	covers     []cover // of candidates
}

func newNarrowing(s *Snapshot, b PinnedSet, n Needs) *narrowing {
	x := &narrowing{snapshot: s, set: b}
	open, timed := s.openAndTimed(x.heldGroups(n.Groups)...)
	for _, g := range slices.Concat(open, timed) {
		x.candidates = append(x.candidates, x.newCandidate(g))
	}
	for _, g := range open {
		if !g.onlyReads && (s.hasOwnReadPart(g) || slices.Contains(n.Groups, g.ID.ReadPart())) {
			x.candidates = append(x.candidates, x.newCandidate(g.readPart()))
		}
	}
	x.addAway(n.Groups)
	for _, h := range n.Tools {
		x.addToolNeed(need{tool: h, exact: true}, open, timed)
	}
	for _, h := range n.Limits {
		x.addToolNeed(need{tool: h}, open, timed)
	}
	for _, id := range n.Groups {
		x.addNeed(need{id: id})
	}
	for _, c := range x.candidates {
		x.covers = append(x.covers, x.newCover(c))
	}
	return x
}

// heldGroups returns the registered groups that the set names. The set of all groups also has the
// groups server/api that are needed.
func (x *narrowing) heldGroups(needed []GroupID) (list []*group) {
	s := x.snapshot
	ids := x.set.Set.ids
	if x.set.Set.all {
		list, ids = s.orderedGroups(), needed
	}
	for _, id := range ids {
		g, ok := s.group(id)
		if ok && (x.set.Set.all || g.Owner == x.set.Owners[id]) && !slices.ContainsFunc(list, func(have *group) bool { return have.ID == id }) {
			list = append(list, g)
		}
	}
	return list
}

// addAway adds the needed groups of the set that are not registered. The set of all groups
// contains each of them, of any owner.
func (x *narrowing) addAway(needed []GroupID) {
	ids := x.set.Set.ids
	if x.set.Set.all {
		ids = needed
	}
	for _, id := range ids {
		_, registered := x.snapshot.group(id)
		known := x.snapshot.KnownOwner(id)
		bindable := x.set.Set.all || known == "" || known == x.set.Owners[id]
		if registered || !bindable {
			continue
		}
		for _, part := range []GroupID{id, id.ReadPart()} { // the read part alone may be needed
			away := candidate{id: part}
			if slices.Contains(needed, part) && !slices.ContainsFunc(x.candidates, func(c candidate) bool { return c.id == part }) {
				x.candidates = append(x.candidates, away)
			}
		}
	}
}

// openAndTimed returns the groups that a list has at all times, each followed by its descendants. It also
// returns the groups with hours through which the list has further groups.
func (s *Snapshot) openAndTimed(list ...*group) (open, timed []*group) {
	seen := map[GroupID]bool{}
	var add func(*group)
	add = func(g *group) {
		if seen[g.ID] {
			return
		}
		seen[g.ID] = true
		if g.hours != nil {
			timed = append(timed, g)
			return
		}
		open = append(open, g)
		for _, child := range s.childrenOf(g) {
			add(child)
		}
	}
	for _, g := range list {
		add(g)
	}
	return open, timed
}

func (x *narrowing) newCandidate(g *group) candidate {
	c := candidate{id: g.ID, open: map[*ToolHandle]bool{}}
	open, timed := x.snapshot.openAndTimed(g)
	for _, one := range open {
		for _, h := range x.snapshot.ownMembers(one) {
			if x.set.matchesOwner(h) {
				c.open[h] = true
			}
		}
	}
	c.timed = timed
	return c
}

// addToolNeed adds the need of a tool: through groups that are always open, else through each
// group with hours that contains it.
func (x *narrowing) addToolNeed(n need, open, timed []*group) {
	if !x.set.matchesOwner(n.tool) {
		return
	}
	if slices.ContainsFunc(open, func(g *group) bool { return slices.ContainsFunc(x.snapshot.ownMembers(g), n.needsTool) }) {
		x.addNeed(n)
		return
	}
	for _, g := range timed {
		if slices.ContainsFunc(x.snapshot.allMembers(g), n.needsTool) {
			x.addNeed(need{timed: g.ID})
		}
	}
}

// addNeed adds a need, once, if a candidate meets it.
func (x *narrowing) addNeed(n need) {
	met := slices.ContainsFunc(x.candidates, func(c candidate) bool { return x.meets(c, n) })
	if met && !slices.Contains(x.needs, n) {
		x.needs = append(x.needs, n)
	}
}

// needsTool reports whether n needs this tool.
func (n need) needsTool(h *ToolHandle) bool { return h == n.tool || !n.exact && h.isSameTool(n.tool) }

// meets reports whether a candidate meets a need.
func (x *narrowing) meets(c candidate, n need) bool {
	switch {
	case n.timed != "":
		return slices.ContainsFunc(c.timed, func(g *group) bool { return g.ID == n.timed })
	case n.tool == nil:
		return c.id == n.id || slices.Contains(x.snapshot.ancestors(n.id), c.id)
	case n.exact:
		return c.open[n.tool]
	}
	return c.open[n.tool] || c.open[n.tool.original] || c.open[n.tool.api]
}

// newCover returns what a candidate meets and what it costs: all tools that it ever contains.
func (x *narrowing) newCover(c candidate) cover {
	v := cover{needs: newBits(uint32(len(x.needs))), cost: newBits(x.snapshot.width)}
	for i, n := range x.needs {
		if x.meets(c, n) {
			v.needs.add(uint32(i))
		}
	}
	for h := range c.open {
		v.cost.addTool(h)
	}
	for _, g := range c.timed {
		for _, h := range x.snapshot.allMembers(g) {
			if x.set.matchesOwner(h) {
				v.cost.addTool(h)
			}
		}
	}
	return v
}

// VisibleWhenOpen returns the tools that a View of b lists in some workflow state while all groups
// with hours are open, each once. A tool whose bounds surely let no arguments through is not
// among them.
func (s *Snapshot) VisibleWhenOpen(b PinnedSet) []*ToolHandle {
	groups := s.orderedGroups()
	if !b.Set.all {
		groups = nil
		for _, id := range b.Set.ids {
			if g, ok := s.group(id); ok && g.Owner == b.Owners[id] {
				groups = append(groups, g)
			}
		}
	}
	var list []*ToolHandle
	seen := newBits(s.width)
	for _, g := range groups {
		list = appendNew(list, seen, s.allMembers(g))
	}
	list = slices.DeleteFunc(list, func(h *ToolHandle) bool {
		return !b.matchesOwner(h) || h.Definition.States != nil && len(h.Definition.States) == 0
	})
	return newView().applyBounds(withoutAPIs(list), []PinnedSet{b})
}
