package hosts

import (
	"net/netip"
	"strings"
)

// Authority is a host as requests name it: a name or an address in lower case,
// addresses in their shortest form, and the port, "" when it is left out. It is
// compared with what stands there, and leads nowhere: names are not held against
// what a resolver takes.
type Authority struct{ Name, Port string }

// ParseAuthority reads a Host header; false for what is neither name nor address.
func ParseAuthority(text string) (a Authority, ok bool) {
	if len(text) > 261 { // a name of 255, a colon, a port
		return a, false
	}
	name, port, hasPort := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") {
		name, port, hasPort, ok = splitIPv6(text)
	} else {
		ok = isName(name)
	}
	if !ok || hasPort && !isPort(port) {
		return a, false
	}
	return Authority{strings.ToLower(name), port}, true
}

// splitIPv6 cuts an IPv6 address in brackets from its port.
func splitIPv6(text string) (name, port string, hasPort, ok bool) {
	inner, rest, closed := strings.Cut(text[1:], "]")
	addr, err := netip.ParseAddr(inner)
	before, port, hasPort := strings.Cut(rest, ":")
	ok = closed && err == nil && addr.Is6() && addr.Zone() == "" && before == ""
	return addr.Unmap().String(), port, hasPort, ok
}

func isName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._", r))
	})
}

func isPort(port string) bool {
	return len(port) >= 1 && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// Origin is where a page comes from, as browsers say it.
type Origin struct {
	Scheme string // http or https
	Host   Authority
}

// ParseOrigin reads an Origin header; false for null and whatever else is no
// origin of HTTP.
func ParseOrigin(text string) (Origin, bool) {
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !found || scheme != "http" && scheme != "https" {
		return Origin{}, false
	}
	host, ok := ParseAuthority(rest)
	return Origin{scheme, host}, ok
}
