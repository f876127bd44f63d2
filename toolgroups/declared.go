package toolgroups

import (
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/tool"
)

// DeclareGroups replaces the declared groups. Modules of the configuration will register
// them. These modules have not started yet or cannot be reached. A declared group has no
// tools. Sets may name it: they are pinned to the owner that is to register it.
//
// A registered group is known by its registration alone, whatever is declared.
func (tx *Tx) DeclareGroups(owners map[GroupID]GroupOwner) {
	tx.declared, tx.declares = maps.Clone(owners), true
}

// KnownOwner returns the owner of a group that is registered or declared, "" for an
// unknown id. Every tool of a server with a declared group is known as server/api. A read part has
// the owner of its group.
func (s *Snapshot) KnownOwner(id GroupID) GroupOwner {
	id, _ = id.WholeGroup()
	if owner := s.GroupOwner(id); owner != "" {
		return owner
	}
	if owner := s.declared[id]; owner != "" {
		return owner
	}
	server, api, _ := strings.Cut(string(id), "/")
	if tool.CheckName(api) == nil && s.declares(ServerOwner(server)) {
		return ServerOwner(server)
	}
	return ""
}

// declares reports whether a declared group belongs to an owner.
func (s *Snapshot) declares(owner GroupOwner) bool {
	for _, o := range s.declared {
		if o == owner {
			return true
		}
	}
	return false
}

// ReachesGroup reports whether a registered group is in b and has a tool that b admits.
// A group without tools is reached if b contains it and is not restricted to one owner.
func (s *Snapshot) ReachesGroup(b PinnedSet, id GroupID) bool {
	if !s.CoversGroup(b, id) {
		return false
	}
	if b.Only == "" {
		return true
	}
	g, _ := s.group(id)
	for _, h := range s.members(g) {
		if b.matchesOwner(h) {
			return true
		}
	}
	return false
}

// KnowsServer reports whether a module instance has a group, registered or declared.
func (s *Snapshot) KnowsServer(name string) bool {
	return slices.Contains(s.ServerNames(), name) || s.declares(ServerOwner(name))
}
