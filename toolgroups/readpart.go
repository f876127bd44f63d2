package toolgroups

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/tool"
)

// The read part of a group has the ReadOnly tools of the group and nothing else. It has no
// prompts, and no tool whose effect is unknown. Sets name it by the id of the group with the
// suffix ":read". No group is registered under such an id. The registered group determines the
// tools of the read part. A tool that is registered again with another effect leaves the read
// part with this change. The read part of a group with children has the read parts of the
// children.

// readSuffix ends the id of a read part. CheckID rejects it, because an id has no ':'.
const readSuffix = ":read"

// ReadPart returns the id of the read part of a group. The read part of a read part is itself.
func (id GroupID) ReadPart() GroupID {
	if _, isPart := id.WholeGroup(); isPart {
		return id
	}
	return id + readSuffix
}

// WholeGroup returns the id of the group of which id is the read part, and true. For all other
// ids it returns id and false: there is no read part of a read part.
func (id GroupID) WholeGroup() (whole GroupID, isPart bool) {
	text, isPart := strings.CutSuffix(string(id), readSuffix)
	if !isPart || strings.HasSuffix(text, readSuffix) {
		return id, false
	}
	return GroupID(text), true
}

// CheckListedID is CheckID for the ids that sets name: ids of groups and of their read parts.
func CheckListedID(id GroupID) error {
	whole, _ := id.WholeGroup()
	return CheckID(whole)
}

// readPart returns the read part of g, which must be a whole group.
func (g *group) readPart() *group {
	part := *g
	part.ID, part.onlyReads, part.prompts = g.ID.ReadPart(), true, nil
	part.Children = make([]GroupID, len(g.Children))
	for i, id := range g.Children {
		part.Children[i] = id.ReadPart()
	}
	return &part
}

// isPartOf reports whether g is other, or the read part of other.
func (g *group) isPartOf(other *group) bool {
	whole, _ := g.ID.WholeGroup()
	return other.ID == g.ID || other.ID == whole
}

// hasOwnReadPart reports whether a group has ReadOnly tools and others, so that its read part is neither
// empty nor the whole. Groups with hours count as open.
func (s *Snapshot) hasOwnReadPart(g *group) bool {
	members := s.allMembers(g)
	readOnly := countReads(members)
	return readOnly > 0 && readOnly < len(members)
}

// countReads returns the number of ReadOnly tools.
func countReads(handles []*ToolHandle) (n int) {
	for _, h := range handles {
		if h.isReadOnly() {
			n++
		}
	}
	return n
}

// isReadOnly reports whether the tool is ReadOnly. The zero Effect is not.
func (h *ToolHandle) isReadOnly() bool { return h.Definition.Effect == tool.ReadOnly }

// readOnlyTools returns the ReadOnly tools of a list, which it does not change.
func readOnlyTools(handles []*ToolHandle) []*ToolHandle {
	return slices.DeleteFunc(slices.Clone(handles), func(h *ToolHandle) bool { return !h.isReadOnly() })
}

// withReadParts returns the ids of groups. The id of the read part precedes the id of each group.
func withReadParts(ids []GroupID) (list []GroupID) {
	for _, id := range ids {
		list = append(list, id.ReadPart(), id)
	}
	return list
}

// WholeOrRead returns the id of a group if has reports true for it. Else it returns the id of the
// read part if has reports true for the read part. It reports false if has reports false for both.
func WholeOrRead(id GroupID, has func(GroupID) bool) (GroupID, bool) {
	for _, part := range []GroupID{id, id.ReadPart()} {
		if has(part) {
			return part, true
		}
	}
	return "", false
}
