package toolgroups

import (
	"encoding/json"
	"slices"
	"strings"
)

// Set is a choice of groups: some, none, or all there are and will be. The
// zero Set is empty. Sets are values and never change.
type Set struct {
	all bool
	ids []GroupID
}

// All is the Set of every group, also those registered later.
func All() Set { return Set{all: true} }

// Of is the Set of ids, in this order, each once. The id "*" makes it All.
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

// IsAll says whether s is All.
func (s Set) IsAll() bool { return s.all }

// IDs lists the chosen ids in order; nil for All.
func (s Set) IDs() []GroupID { return slices.Clone(s.ids) }

// Has says whether id is chosen.
func (s Set) Has(id GroupID) bool { return s.all || slices.Contains(s.ids, id) }

// Covers says whether everything other chooses is chosen by s. Only All
// covers All.
func (s Set) Covers(other Set) bool { return len(s.Missing(other)) == 0 }

// Missing lists what other chooses and s does not: "*" when other is All and
// s is not.
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

// Intersect chooses what both choose, in the order of s.
func (s Set) Intersect(other Set) Set {
	switch {
	case other.all:
		return s
	case s.all:
		return other
	}
	return Set{ids: slices.DeleteFunc(slices.Clone(s.ids), func(id GroupID) bool { return !other.Has(id) })}
}

// Equal says whether both choose the same groups, in any order.
func (s Set) Equal(other Set) bool { return s.Covers(other) && other.Covers(s) }

// String gives "*" for All, "-" for none, else the ids with commas.
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

// MarshalJSON gives a list of ids, ["*"] for All and [] for none.
func (s Set) MarshalJSON() ([]byte, error) {
	if s.all {
		return []byte(`["*"]`), nil
	}
	if len(s.ids) == 0 {
		return []byte(`[]`), nil
	}
	return json.Marshal(s.ids)
}

// UnmarshalJSON takes a list of ids; null is the empty Set.
func (s *Set) UnmarshalJSON(data []byte) error {
	var ids []GroupID
	if err := json.Unmarshal(data, &ids); err != nil {
		return err
	}
	*s = Of(ids...)
	return nil
}
