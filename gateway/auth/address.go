package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientNetwork returns the network that counts as one sender: an IPv4 address, or an IPv6 /64
// network, because an IPv6 host has a network of its own. It returns the zero Prefix for the zero
// Addr.
func ClientNetwork(at netip.Addr) netip.Prefix {
	at = at.Unmap().WithZone("")
	bits := 64
	if at.Is4() {
		bits = 32
	}
	network, _ := at.Prefix(bits)
	return network
}

// clientAddress returns the network that a request comes from, as text. A trusted proxy says
// in X-Forwarded-For for whom it sends: the last address there that is not a trusted proxy.
func (t *TokenStore) clientAddress(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "local" // a socket
	}
	at := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil || !t.isProxy(at) {
			break
		}
		at = next.Unmap().WithZone("")
	}
	return ClientNetwork(at).String()
}

// isProxy reports whether an address is that of a trusted proxy.
func (t *TokenStore) isProxy(at netip.Addr) bool {
	return t.config.TrustedProxies != nil && slices.ContainsFunc(t.config.TrustedProxies(), func(p netip.Prefix) bool { return p.Contains(at) })
}
