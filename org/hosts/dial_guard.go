package hosts

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrNotPublic is the error of DialGuard.Control for an address that is not allowed.
var ErrNotPublic = errors.New("the address is not public")

// DialGuard decides which IP addresses may be dialed: public addresses, and addresses
// that the operator has listed.
//
//	dialer := net.Dialer{Control: hosts.NewDialGuard(private).Control}
//
// It checks an address at the moment it is dialed. By then a name may resolve to another
// address than when it was checked (DNS rebinding). The zero DialGuard allows nothing. A
// DialGuard is safe for concurrent use.
type DialGuard struct {
	public       *ssrf.Guardian
	private      []netip.Prefix
	restrictions []Restriction
}

// NewDialGuard returns a DialGuard that allows public addresses and all addresses in
// private.
func NewDialGuard(private []netip.Prefix) DialGuard {
	return DialGuard{public: ssrf.New(ssrf.WithAnyPort()), private: slices.Clone(private)}
}

// Control is a value for net.Dialer.Control. It returns ErrNotPublic if the address is
// not allowed or is not a TCP address.
func (g DialGuard) Control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !g.AllowsAddr(at.Addr()) {
		return ErrNotPublic
	}
	return nil
}

// AllowsAddr reports whether an address is public or listed. An IPv4 address that is mapped
// to IPv6 is treated as the IPv4 address. Addresses of this machine are not public:
// requests to them would bypass its firewall.
func (g DialGuard) AllowsAddr(a netip.Addr) bool {
	if g.public == nil {
		return false
	}
	a = a.Unmap()
	if slices.ContainsFunc(g.restrictions, func(r Restriction) bool { return !r.permits(a, g.isPublic) }) {
		return false
	}
	listed := slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a) })
	switch {
	case listed && nat64.Contains(a):
		return g.AllowsAddr(embeddedIPv4(a))
	case listed:
		return true
	}
	return g.isPublic(a)
}

// isPublic reports whether an address is public, and not of this machine.
func (g DialGuard) isPublic(a netip.Addr) bool {
	return g.public.SafeAddr(a) == nil && !slices.Contains(cloudMetadata, a) && !isLocalAddr(a)
}

// nat64 is the prefix through which IPv6-only networks reach IPv4 addresses. It is allowed
// only if the operator lists it; then the embedded address is checked.
var nat64 = ssrf.IPv6NAT64Prefix

// embeddedIPv4 returns the IPv4 address in the last bytes of a NAT64 address.
func embeddedIPv4(a netip.Addr) netip.Addr {
	bytes := a.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// cloudMetadata lists public addresses at which clouds serve metadata to their machines.
var cloudMetadata = []netip.Addr{netip.MustParseAddr("168.63.129.16")} // Azure

// isLocalAddr reports whether an address belongs to this machine. It reports true if that
// cannot be determined.
func isLocalAddr(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list, func(addr net.Addr) bool {
		p, err := netip.ParsePrefix(addr.String())
		return err != nil || p.Addr().Unmap() == a
	})
}
