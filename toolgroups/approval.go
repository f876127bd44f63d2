package toolgroups

import (
	"slices"

	"github.com/rolecall/rolecall/toolgroups/approval"
)

// SetApprovalRules sets the rules that say which calls of the tools of v wait for people. v must be
// a View of s that is not published yet. A rule names a tool by any of its names. Its groups
// stand for the tools that they have in s, of any owner. A group counts as open
// whatever its hours: its tools may be called through other groups while it is closed.
func (s *Snapshot) SetApprovalRules(v *View, rules []approval.Rule) {
	for _, r := range rules {
		var members bits
		if len(r.Groups) > 0 {
			members = s.membersOf(SetOfNames(r.Groups...))
		}
		for _, h := range v.handles {
			if selects(&r, h) && (members == nil || members.has(h.index)) {
				v.addApprovalRule(h, r)
			}
		}
	}
}

// membersOf returns the indexes of the tools of groups as if all of them were open.
func (s *Snapshot) membersOf(set GroupSet) bits {
	if set.IsAll() {
		return s.bits(s.PinOwners(set))
	}
	var handles []*ToolHandle
	for _, id := range set.ids {
		handles = append(handles, s.AllTools(id)...)
	}
	return s.bitsOfNames(handles)
}

// selects reports whether a rule selects the calls of a tool, apart from its groups.
func selects(r *approval.Rule, h *ToolHandle) bool {
	return (len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, h.hasName)) && (r.Effect == "" || r.Effect == h.Definition.Effect.String())
}

// hasName reports whether a name is one of the names of the tool.
func (h *ToolHandle) hasName(name string) bool {
	return slices.ContainsFunc([]*ToolHandle{h, h.original, h.api}, func(other *ToolHandle) bool {
		return other != nil && other.Definition.Name == name
	})
}

// addApprovalRule adds a rule to the rules of a tool, once.
func (v *View) addApprovalRule(h *ToolHandle, r approval.Rule) {
	if v.approvals == nil {
		v.approvals = map[uint32]approval.Rules{}
	}
	v.approvals[h.index] = v.approvals[h.index].Add([]approval.Rule{r})
}

// ApprovalRules returns the rules of a tool that the View of e allows, nil if its calls wait for no
// person. approval.Rules.ForArguments returns the rules of a call. Callers must not change the
// list.
func (e *Evaluation) ApprovalRules(h *ToolHandle) approval.Rules {
	if e.view == nil {
		return nil
	}
	return e.view.approvals[h.index]
}
