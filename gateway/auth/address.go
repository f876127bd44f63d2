package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientNetwork returns the network that counts as one sender. It is an IPv4 address or an IPv6
// /64 network, because an IPv6 host has a network of its own. It returns the zero Prefix for the
// zero Addr.
func ClientNetwork(at netip.Addr) netip.Prefix {
	at = at.Unmap().WithZone("")
	bits := 64
	if at.Is4() {
		bits = 32
	}
	network, _ := at.Prefix(bits)
	return network
}

// ClientAddress returns the network that counts as the sender of a request, as text. It is the
// network of senderAddress. If a trusted proxy does not say for whom it sends, it is the sender.
func (t *TokenStore) ClientAddress(r *http.Request) string {
	at, _ := t.senderAddress(r)
	if !at.IsValid() {
		return "local" // a socket
	}
	return ClientNetwork(at).String()
}

// senderAddress returns the address that a request comes from. A trusted proxy names the sender
// in X-Forwarded-For: it is the last address there that is not a trusted proxy. The error means
// that the connection has no address, or that a trusted proxy has sent an invalid address. In
// the second case, the address of the proxy is returned.
func (t *TokenStore) senderAddress(r *http.Request) (netip.Addr, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, errNoAddress
	}
	at, headers := peer.Addr().Unmap().WithZone(""), r.Header.Values("X-Forwarded-For")
	if len(headers) == 0 {
		return at, nil
	}
	for _, hop := range slices.Backward(strings.Split(strings.Join(headers, ","), ",")) {
		if !t.isProxy(at) {
			break
		}
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			return at, errNoAddress
		}
		at = next.Unmap().WithZone("")
	}
	return at, nil
}

// isProxy reports whether an address is the address of a trusted proxy.
func (t *TokenStore) isProxy(at netip.Addr) bool {
	return t.config.TrustedProxies != nil && slices.ContainsFunc(t.config.TrustedProxies(), func(p netip.Prefix) bool { return p.Contains(at) })
}
