package hosts

import "slices"

// HostRule allows the hosts that a pattern of Allow matches and no pattern of Deny matches.
// The zero HostRule allows nothing.
type HostRule struct {
	Allow []HostPattern `json:"allow"`
	Deny  []HostPattern `json:"deny,omitempty"`
}

// AnyHost returns the HostRule that allows all hosts.
func AnyHost() HostRule { return HostRule{Allow: []HostPattern{{Name: "*"}}} }

// AllowsHost reports whether r allows a host.
func (r HostRule) AllowsHost(h Host) bool {
	matches := func(p HostPattern) bool { return p.MatchesHost(h) }
	return slices.ContainsFunc(r.Allow, matches) && !slices.ContainsFunc(r.Deny, matches)
}

// Equal reports whether two rules have the same patterns in the same order.
func (r HostRule) Equal(other HostRule) bool {
	return slices.Equal(r.Allow, other.Allow) && slices.Equal(r.Deny, other.Deny)
}

// Clone returns a copy of r that shares no memory with it.
func (r HostRule) Clone() HostRule { return HostRule{slices.Clone(r.Allow), slices.Clone(r.Deny)} }
