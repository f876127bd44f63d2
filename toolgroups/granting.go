package toolgroups

// GrantingGroup returns the group through which v allows a tool. That is the group that
// owns the tool if all sets of v contain that group. Otherwise it is another group with
// the tool that they contain. It never is a group that the role of v does not have. It
// returns "" if v does not allow the tool.
func (v *View) GrantingGroup(h *ToolHandle) GroupID {
	if !v.HasTool(h) {
		return ""
	}
	if id, ok := v.through[h.index]; ok {
		return id
	}
	return h.Group
}

// GrantingGroup returns View.GrantingGroup of the View that decided.
func (e *Evaluation) GrantingGroup(h *ToolHandle) GroupID {
	if e.view == nil {
		return ""
	}
	return e.view.GrantingGroup(h)
}

// grantingGroups returns the group through which sets contain each tool that they do not
// contain through its own group, by index. It returns nil if there is no such tool.
func (s *Snapshot) grantingGroups(handles []*ToolHandle, sets []PinnedSet) map[uint32]GroupID {
	covered := map[GroupID]bool{}
	missing := map[uint32]bool{}
	for _, h := range handles {
		if _, known := covered[h.Group]; !known {
			covered[h.Group] = s.allCover(sets, h.Group)
		}
		if !covered[h.Group] {
			missing[h.index] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	through := make(map[uint32]GroupID, len(missing))
	for _, everywhere := range []bool{true, false} { // first the groups that all sets contain
		for _, set := range sets {
			s.addGranting(through, missing, set, func(id GroupID) bool { return !everywhere || s.allCover(sets, id) })
		}
	}
	return through
}

// addGranting adds the groups of a set that have one of the missing tools and are eligible.
func (s *Snapshot) addGranting(through map[uint32]GroupID, missing map[uint32]bool, set PinnedSet, eligible func(GroupID) bool) {
	if set.Set.all || len(through) == len(missing) {
		return
	}
	for _, g := range s.pinnedGroups(set) {
		if !eligible(g.ID) {
			continue
		}
		for _, h := range s.ownMembers(g) {
			if _, known := through[h.index]; missing[h.index] && !known {
				through[h.index] = g.ID
			}
		}
	}
}

// allCover reports whether all sets contain a group.
func (s *Snapshot) allCover(sets []PinnedSet, id GroupID) bool {
	for _, set := range sets {
		if !s.CoversGroup(set, id) {
			return false
		}
	}
	return true
}
