package toolgroups

import (
	"encoding/json"
	"slices"
	"strings"
)

// Set is a choice of groups: a list of ids, or all groups that exist now or later.
// The zero Set is empty. A Set is an immutable value.
type Set struct {
	all bool
	ids []GroupID
}

// All returns the Set of all groups, including those registered later.
func All() Set { return Set{all: true} }

// Of returns the Set of the given ids, in this order, without repetitions. If one of
// them is "*", it returns All.
func Of(ids ...GroupID) Set {
	s := Set{ids: make([]GroupID, 0, len(ids))}
	for _, id := range ids {
		if id == "*" {
			return All()
		}
		if !slices.Contains(s.ids, id) {
			s.ids = append(s.ids, id)
		}
	}
	return s
}

// OfNames is Of for ids that are plain strings.
func OfNames(names ...string) Set {
	ids := make([]GroupID, len(names))
	for i, name := range names {
		ids[i] = GroupID(name)
	}
	return Of(ids...)
}

// IsAll reports whether s is All.
func (s Set) IsAll() bool { return s.all }

// IDs returns the ids in order. It returns nil for All.
func (s Set) IDs() []GroupID { return slices.Clone(s.ids) }

// Has reports whether id is in s.
func (s Set) Has(id GroupID) bool { return s.all || slices.Contains(s.ids, id) }

// Covers reports whether all groups of other are in s. Only All covers All.
func (s Set) Covers(other Set) bool { return len(s.Missing(other)) == 0 }

// Missing returns the ids that are in other and not in s. If other is All and s is
// not, it returns "*".
func (s Set) Missing(other Set) []GroupID {
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
// with All is the other Set.
func (s Set) Intersect(other Set) Set {
	switch {
	case other.all:
		return s
	case s.all:
		return other
	}
	return Set{ids: slices.DeleteFunc(slices.Clone(s.ids), func(id GroupID) bool { return !other.Has(id) })}
}

// Equal reports whether both Sets contain the same groups, in any order.
func (s Set) Equal(other Set) bool { return s.Covers(other) && other.Covers(s) }

// String returns "*" for All, "-" for the empty Set, else the ids separated by commas.
func (s Set) String() string {
	switch {
	case s.all:
		return "*"
	case len(s.ids) == 0:
		return "-"
	}
	names := make([]string, len(s.ids))
	for i, id := range s.ids {
		names[i] = string(id)
	}
	return strings.Join(names, ",")
}

// MarshalJSON returns the list of ids, ["*"] for All and [] for the empty Set.
func (s Set) MarshalJSON() ([]byte, error) {
	if s.all {
		return []byte(`["*"]`), nil
	}
	if len(s.ids) == 0 {
		return []byte(`[]`), nil
	}
	return json.Marshal(s.ids)
}

// UnmarshalJSON accepts a list of ids. null is the empty Set. On an error s does not
// change.
func (s *Set) UnmarshalJSON(data []byte) error {
	var ids []GroupID
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	*s = Of(ids...)
	return nil
}
