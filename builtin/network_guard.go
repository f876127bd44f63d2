package builtin

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// errNotPublic: a name led to an address that requests may not reach.
var errNotPublic = errors.New("the address is not public")

// guard decides about an address at the moment it is dialled: what a name
// leads to may have changed since anybody looked.
type guard struct {
	public  *ssrf.Guardian
	private []netip.Prefix
}

func newGuard(private []netip.Prefix) guard {
	return guard{ssrf.New(ssrf.WithAnyPort()), private}
}

// control is a net.Dialer's.
func (g guard) control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !g.allows(at.Addr()) {
		return errNotPublic
	}
	return nil
}

// allows says whether an address is public, or one the operator listed. An
// IPv4 address inside an IPv6 one is judged as what it is.
func (g guard) allows(a netip.Addr) bool {
	a = a.Unmap()
	listed := slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a) })
	switch {
	case listed && nat64.Contains(a):
		return g.allows(inside(a))
	case listed:
		return true
	}
	return g.public.SafeAddr(a) == nil && !slices.Contains(platform, a) && !own(a)
}

// nat64 is how a network without IPv4 reaches it; an operator there lists it.
var nat64 = ssrf.IPv6NAT64Prefix

// inside gives the IPv4 address in the last bytes of a NAT64 address.
func inside(a netip.Addr) netip.Addr {
	bytes := a.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// platform are public addresses at which clouds answer their own machines.
var platform = []netip.Addr{netip.MustParseAddr("168.63.129.16")} // Azure

// own says whether an address is this machine's: requests to it would come
// from inside, past what guards it outside.
func own(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list, func(addr net.Addr) bool {
		p, err := netip.ParsePrefix(addr.String())
		return err != nil || p.Addr().Unmap() == a
	})
}
