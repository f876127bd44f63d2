package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/rolecall/rolecall/org/hosts"
)

// isHere says whether a host is the address a connection came in at, by number
// or, for loopback, by any of its names.
func isHere(a hosts.Authority, local net.Addr) bool {
	at, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	if port := fmt.Sprint(at.Port); a.Port != port && (a.Port != "" || port != "80") {
		return false
	}
	here := at.AddrPort().Addr().Unmap().WithZone("")
	addr, err := netip.ParseAddr(a.Name)
	switch {
	case err == nil && here.IsLoopback():
		return addr.IsLoopback()
	case err == nil:
		return addr == here
	}
	return a.Name == "localhost" && here.IsLoopback()
}

// isIn says whether a list of hosts names one; a host without a port stands for
// every port.
func isIn(a hosts.Authority, list []hosts.Authority) bool {
	return slices.ContainsFunc(list, func(b hosts.Authority) bool { return a.Name == b.Name && (b.Port == "" || a.Port == b.Port) })
}

// sameOrigin says whether an Origin header names the host that is asked. The
// scheme is not compared: a proxy may end TLS before us.
func sameOrigin(text, host string) bool {
	from, ok := hosts.ParseOrigin(text)
	asked, known := hosts.ParseAuthority(host)
	return ok && known && from.Host == asked
}

// localAddr gives the address a request came in at; nil when no server says so.
func localAddr(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}
