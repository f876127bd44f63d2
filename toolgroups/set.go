package toolgroups

import (
	"encoding/json"
	"slices"
	"strings"
)

// GroupSet is a choice of groups: a list of ids, or all groups that exist now or later.
// The zero GroupSet is empty. A GroupSet is an immutable value.
type GroupSet struct {
	all bool
	ids []GroupID
}

// AllGroups returns the GroupSet of all groups, including those registered later.
func AllGroups() GroupSet { return GroupSet{all: true} }

// SetOf returns the GroupSet of the given ids, in this order, without repetitions. If one of
// them is "*", it returns AllGroups.
func SetOf(ids ...GroupID) GroupSet {
	s, seen := GroupSet{ids: make([]GroupID, 0, len(ids))}, make(map[GroupID]bool, len(ids))
	for _, id := range ids {
		if id == "*" {
			return AllGroups()
		}
		if !seen[id] {
			seen[id], s.ids = true, append(s.ids, id)
		}
	}
	return s
}

// SetOfNames is SetOf for ids that are plain strings.
func SetOfNames(names ...string) GroupSet {
	ids := make([]GroupID, len(names))
	for i, name := range names {
		ids[i] = GroupID(name)
	}
	return SetOf(ids...)
}

// IsAll reports whether s is AllGroups.
func (s GroupSet) IsAll() bool { return s.all }

// GroupIDs returns the ids in order. It returns nil for AllGroups.
func (s GroupSet) GroupIDs() []GroupID { return slices.Clone(s.ids) }

// Names returns the ids in order as plain strings, ["*"] for AllGroups.
func (s GroupSet) Names() []string {
	if s.all {
		return []string{"*"}
	}
	names := make([]string, len(s.ids))
	for i, id := range s.ids {
		names[i] = string(id)
	}
	return names
}

// Has reports whether id is in s.
func (s GroupSet) Has(id GroupID) bool { return s.all || slices.Contains(s.ids, id) }

// Covers reports whether all groups of other are in s. Only AllGroups covers AllGroups.
func (s GroupSet) Covers(other GroupSet) bool { return len(s.MissingFrom(other)) == 0 }

// MissingFrom returns the ids that are in other and not in s. If other is AllGroups and s is
// not, it returns "*".
func (s GroupSet) MissingFrom(other GroupSet) []GroupID {
	if s.all {
		return nil
	}
	if other.all {
		return []GroupID{"*"}
	}
	var missing []GroupID
	for _, id := range other.ids {
		if !slices.Contains(s.ids, id) {
			missing = append(missing, id)
		}
	}
	return missing
}

// Intersect returns the ids that are in both Sets, in the order of s. The intersection
// with AllGroups is the other GroupSet.
func (s GroupSet) Intersect(other GroupSet) GroupSet {
	switch {
	case other.all:
		return s
	case s.all:
		return other
	}
	return GroupSet{ids: slices.DeleteFunc(slices.Clone(s.ids), func(id GroupID) bool { return !other.Has(id) })}
}

// Equal reports whether both Sets contain the same groups, in any order.
func (s GroupSet) Equal(other GroupSet) bool { return s.Covers(other) && other.Covers(s) }

// String returns "*" for AllGroups, "-" for the empty GroupSet, else the ids separated by commas.
func (s GroupSet) String() string {
	switch {
	case s.all:
		return "*"
	case len(s.ids) == 0:
		return "-"
	}
	return strings.Join(s.Names(), ",")
}

// MarshalJSON returns the list of ids, ["*"] for AllGroups and [] for the empty GroupSet.
func (s GroupSet) MarshalJSON() ([]byte, error) {
	if s.all {
		return []byte(`["*"]`), nil
	}
	if len(s.ids) == 0 {
		return []byte(`[]`), nil
	}
	return json.Marshal(s.ids)
}

// UnmarshalJSON accepts a list of ids. null is the empty GroupSet. On an error s does not
// change.
func (s *GroupSet) UnmarshalJSON(data []byte) error {
	var ids []GroupID
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	*s = SetOf(ids...)
	return nil
}
