package gateway

import (
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// visibility is what of the registry the sender of a request is shown: the operator
// all, a caller what its role has. The zero sight is nothing.
type visibility struct {
	snapshot *toolgroups.Snapshot
	all      bool
	role     org.Role         // of a caller
	view     *toolgroups.View // what the role lets through
}

// sight gives what the sender of a request is shown.
func (a *api) sight(r *http.Request) visibility {
	s := visibility{snapshot: a.snapshot(), view: new(toolgroups.View)}
	switch p := sender(r); p.Kind {
	case identity.Operator:
		s.all = true
	case identity.Caller:
		if role, ok := a.org().Role(p.Role); ok && role.Status == org.Active {
			s.role, s.view = role, a.org().RoleView(p.Role, toolgroups.All())
		}
	}
	return s
}

// has says whether a tool is there for the sender.
func (s visibility) has(h *toolgroups.Handle) bool { return s.all || s.view.Has(h) }

// tool finds a tool that is there for the sender.
func (s visibility) tool(name string) (*toolgroups.Handle, bool) {
	h, ok := s.snapshot.Lookup(name)
	return h, ok && s.has(h)
}

// tools lists the tools that are there for the sender, sorted by name.
func (s visibility) tools() []*toolgroups.Handle {
	return slices.DeleteFunc(s.snapshot.Tools(), func(h *toolgroups.Handle) bool { return !s.has(h) })
}

// group gives a group with those of its tools that are there for the sender;
// false without any, or when the role does not use the group.
func (s visibility) group(id toolgroups.GroupID) (toolgroups.Info, bool) {
	info, ok := s.snapshot.Group(id)
	if !ok || s.all {
		return info, ok
	}
	if !s.snapshot.Covers(toolgroups.BoundSet{Set: s.role.Use, Owners: s.role.GroupOwners}, id) {
		return toolgroups.Info{}, false
	}
	info.Tools = slices.DeleteFunc(slices.Clone(info.Tools), func(name string) bool {
		_, there := s.tool(name)
		return !there
	})
	info.Count = len(info.Tools)
	return info, info.Count > 0
}

// groups lists the groups that are there for the sender, sorted by id.
func (s visibility) groups() []toolgroups.Info {
	var list []toolgroups.Info
	for _, g := range s.snapshot.Groups() {
		if shown, ok := s.group(g.ID); ok {
			list = append(list, shown)
		}
	}
	return list
}

// filter gives of a set of groups those that are there for the sender.
func (s visibility) filter(set *toolgroups.Set) *toolgroups.Set {
	if set == nil || set.IsAll() || s.all {
		return set
	}
	kept := toolgroups.Of(slices.DeleteFunc(set.IDs(), func(id toolgroups.GroupID) bool {
		_, there := s.group(id)
		return !there
	})...)
	return &kept
}

// groupOf names the group that a tool is shown in: its own, or for a caller whose
// role has not that one, the first by which the role has the tool.
func (s visibility) groupOf(h *toolgroups.Handle) toolgroups.GroupID {
	if _, ok := s.group(h.Group); ok {
		return h.Group
	}
	for _, id := range s.role.Use.IDs() {
		if _, ok := s.group(id); ok && s.snapshot.InGroups(h.Definition.Name, id) {
			return id
		}
	}
	return ""
}

// show gives a tool as the sender sees it.
func (s visibility) show(h *toolgroups.Handle) Tool {
	shown := toolOf(h)
	shown.Group = s.groupOf(h)
	return shown
}
