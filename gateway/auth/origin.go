package auth

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/rolecall/rolecall/org/hosts"
)

// isLocalAddress reports whether a host is the address that accepted the
// connection. On a loopback address any loopback address and localhost match. A port may be
// missing if it is the default port of HTTP or HTTPS.
func isLocalAddress(a hosts.Authority, local net.Addr) bool {
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	if port := fmt.Sprint(tcp.Port); a.Port != port && (a.Port != "" || port != "80" && port != "443") {
		return false
	}
	here := tcp.AddrPort().Addr().Unmap().WithZone("")
	addr, err := netip.ParseAddr(a.Name)
	switch {
	case err == nil && here.IsLoopback():
		return addr.IsLoopback()
	case err == nil:
		return addr == here
	}
	return a.Name == "localhost" && here.IsLoopback()
}

// matchesHost reports whether a list of hosts contains a. A host in the list
// without a port matches every port.
func matchesHost(a hosts.Authority, list []hosts.Authority) bool {
	return slices.ContainsFunc(list, func(b hosts.Authority) bool { return a.Name == b.Name && (b.Port == "" || a.Port == b.Port) })
}

// sameOrigin reports whether an Origin header names the requested host. The
// scheme is not compared, because a proxy may terminate TLS: it only says which port is the
// default port.
func sameOrigin(text, host string) bool {
	origin, ok := hosts.ParseOrigin(text)
	target, known := hosts.ParseAuthority(host)
	return ok && known && origin.IsAt(target)
}

// localAddr returns the local address of a request's connection, or nil if the
// request does not come from a net/http server.
func localAddr(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}
