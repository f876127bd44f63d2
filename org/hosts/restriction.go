package hosts

import (
	"net/netip"
	"slices"

	"code.dny.dev/ssrf"
)

// Restriction narrows which addresses a DialGuard allows. It never allows an address that the
// DialGuard does not. The zero Restriction changes nothing.
type Restriction struct {
	PublicOnly bool           // only addresses that are public, and those in Allowed
	Blocked    []netip.Prefix // no address in these ranges, except those in Allowed
	Allowed    []netip.Prefix // exceptions from PublicOnly and Blocked
}

// Restrict returns a DialGuard that allows what g and the Restriction both allow.
func (g DialGuard) Restrict(r Restriction) DialGuard {
	g.restrictions = append(slices.Clone(g.restrictions), r)
	return g
}

// permits reports whether the Restriction leaves an address allowed. isPublic reports whether
// an address is public.
func (r Restriction) permits(a netip.Addr, isPublic func(netip.Addr) bool) bool {
	contains := func(p netip.Prefix) bool { return p.Contains(a) }
	if slices.ContainsFunc(r.Allowed, contains) {
		return true
	}
	return !slices.ContainsFunc(r.Blocked, contains) && (!r.PublicOnly || isPublic(a))
}

// AllowsRange reports whether the operator has listed all addresses of a range. It also reports
// true if no address of the range has a special purpose. It reports true for ranges of public
// addresses of this machine, which AllowsAddr does not allow.
func (g DialGuard) AllowsRange(p netip.Prefix) bool {
	listed := func(l netip.Prefix) bool { return l.Bits() <= p.Bits() && l.Contains(p.Addr()) }
	if g.public == nil || !p.IsValid() {
		return false
	}
	if slices.ContainsFunc(g.private, listed) {
		return true
	}
	if slices.ContainsFunc(cloudMetadata, p.Contains) {
		return false
	}
	if p.Addr().Is4() {
		return !slices.ContainsFunc(ssrf.IPv4DeniedPrefixes, p.Overlaps)
	}
	global := ssrf.IPv6GlobalUnicast
	return global.Bits() <= p.Bits() && global.Contains(p.Addr()) && !slices.ContainsFunc(ssrf.IPv6DeniedPrefixes, p.Overlaps)
}
