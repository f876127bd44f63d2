package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// authority is a host and its port, "" when it is left out.
type authority struct{ host, port string }

// authorityOf reads a Host header: a name or an address, lower case, addresses
// in their shortest form; false for what is neither.
func authorityOf(text string) (a authority, ok bool) {
	if len(text) > 261 { // a name of 255, a colon, a port
		return a, false
	}
	host, port, hasPort := text, "", false
	if strings.HasPrefix(text, "[") {
		inner, rest, closed := strings.Cut(text[1:], "]")
		addr, err := netip.ParseAddr(inner)
		if !closed || err != nil || !addr.Is6() || addr.Zone() != "" {
			return a, false
		}
		host = addr.Unmap().String()
		if rest != "" {
			rest, port, hasPort = strings.Cut(rest, ":")
			if rest != "" || !hasPort {
				return a, false
			}
		}
	} else {
		host, port, hasPort = strings.Cut(text, ":")
		if !isHostName(host) {
			return a, false
		}
	}
	if hasPort && !isPort(port) {
		return a, false
	}
	return authority{strings.ToLower(host), port}, true
}

func isHostName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._", r))
	})
}

func isPort(port string) bool {
	return len(port) >= 1 && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// isOf says whether a host is the address a connection came in at, by number
// or, for loopback, by any of its names.
func (a authority) isOf(local net.Addr) bool {
	at, ok := local.(*net.TCPAddr)
	if !ok {
		return false
	}
	if port := fmt.Sprint(at.Port); a.port != port && (a.port != "" || port != "80") {
		return false
	}
	here := at.AddrPort().Addr().Unmap().WithZone("")
	addr, err := netip.ParseAddr(a.host)
	switch {
	case err == nil && here.IsLoopback():
		return addr.IsLoopback()
	case err == nil:
		return addr == here
	}
	return a.host == "localhost" && here.IsLoopback()
}

// in says whether a list of hosts names it; a host without a port stands for
// every port.
func (a authority) in(list []authority) bool {
	return slices.ContainsFunc(list, func(b authority) bool { return a.host == b.host && (b.port == "" || a.port == b.port) })
}

// origin is where a page comes from, as browsers say it.
type origin struct {
	scheme string
	authority
}

// originOf reads an Origin header; false for null and whatever else is no
// origin of HTTP.
func originOf(text string) (o origin, ok bool) {
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "http" && scheme != "https" {
		return o, false
	}
	a, ok := authorityOf(rest)
	return origin{scheme, a}, ok
}

// sameOrigin says whether an Origin header names the host that is asked. The
// scheme is not compared: a proxy may end TLS before us.
func sameOrigin(text, host string) bool {
	o, ok := originOf(text)
	asked, known := authorityOf(host)
	return ok && known && o.authority == asked
}

// localAddr gives the address a request came in at; nil when no server says so.
func localAddr(r *http.Request) net.Addr {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr
}
