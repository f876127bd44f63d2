package hosts

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrNotPublic reports that a dialled address may not be reached.
var ErrNotPublic = errors.New("the address is not public")

// DialGuard decides which addresses may be dialled: public ones, and those an
// operator listed.
//
//	dialer := net.Dialer{Control: hosts.NewDialGuard(private).Control}
//
// It decides about an address at the moment it is dialled, because what a name
// resolves to may have changed since it was checked. The zero DialGuard allows
// none. It is safe for concurrent use.
type DialGuard struct {
	public  *ssrf.Guardian
	private []netip.Prefix
}

// NewDialGuard returns a DialGuard that allows public addresses, and those within
// private.
func NewDialGuard(private []netip.Prefix) DialGuard {
	return DialGuard{ssrf.New(ssrf.WithAnyPort()), slices.Clone(private)}
}

// Control is a net.Dialer's. Its error is ErrNotPublic, also for what is no
// TCP address.
func (g DialGuard) Control(network, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" || !g.Allows(at.Addr()) {
		return ErrNotPublic
	}
	return nil
}

// Allows says whether an address is public, or one the operator listed. An
// IPv4 address inside an IPv6 one is judged as what it is. An address of this
// machine is not public: requests to it would come from inside, past what
// guards it outside.
func (g DialGuard) Allows(a netip.Addr) bool {
	if g.public == nil {
		return false
	}
	a = a.Unmap()
	listed := slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(a) })
	switch {
	case listed && nat64.Contains(a):
		return g.Allows(embeddedIPv4(a))
	case listed:
		return true
	}
	return g.public.SafeAddr(a) == nil && !slices.Contains(cloudMetadata, a) && !isLocalAddr(a)
}

// nat64 is how a network without IPv4 reaches it; an operator there lists it.
var nat64 = ssrf.IPv6NAT64Prefix

// embeddedIPv4 gives the IPv4 address in the last bytes of a NAT64 address.
func embeddedIPv4(a netip.Addr) netip.Addr {
	bytes := a.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// cloudMetadata are public addresses at which clouds answer their own machines.
var cloudMetadata = []netip.Addr{netip.MustParseAddr("168.63.129.16")} // Azure

// isLocalAddr says whether an address is this machine's.
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
