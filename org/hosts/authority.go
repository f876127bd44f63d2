package hosts

import (
	"net/netip"
	"strings"
)

// Authority is the host of a request, as in a Host header. Name is in lower case, an
// address in its shortest form. Port is "" if it is missing. An Authority is for
// comparisons only: it is not checked against the rules for names that can be resolved.
type Authority struct{ Name, Port string }

// ParseAuthority parses a Host header. It reports false if text is neither a name nor an
// address, with or without a port. A name has at most 255 bytes.
func ParseAuthority(text string) (a Authority, ok bool) {
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

// splitIPv6 splits an IPv6 address in brackets from its port.
func splitIPv6(text string) (name, port string, hasPort, ok bool) {
	inner, rest, closed := strings.Cut(text[1:], "]")
	addr, err := netip.ParseAddr(inner)
	before, port, hasPort := strings.Cut(rest, ":")
	ok = closed && err == nil && addr.Is6() && addr.Zone() == "" && before == ""
	return addr.Unmap().String(), port, hasPort, ok
}

// isName reports whether a name is neither too long nor empty, and all its characters may be in a
// Host header. Those of an IPv4 address may.
func isName(name string) bool {
	return name != "" && len(name) <= 255 && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._", r))
	})
}

// isPort reports whether a port has one to five digits.
func isPort(port string) bool {
	return len(port) >= 1 && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// defaultPorts are the ports of the schemes of an Origin.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// Origin is the origin of a web page. As browsers send it, it has no default port.
type Origin struct {
	Scheme string // http or https
	Host   Authority
}

// IsAt reports whether a Host header names the host of an origin. The header may have the default
// port of the origin's scheme.
func (o Origin) IsAt(host Authority) bool { return o.Host == host.withoutDefaultPort(o.Scheme) }

// withoutDefaultPort returns a without its port if that is the default port of a scheme.
func (a Authority) withoutDefaultPort(scheme string) Authority {
	if a.Port == defaultPorts[scheme] {
		a.Port = ""
	}
	return a
}

// ParseOrigin parses an Origin header, and an origin with its default port as one without. It
// reports false for null and for origins that are not HTTP or HTTPS.
func ParseOrigin(text string) (Origin, bool) {
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !found || defaultPorts[scheme] == "" {
		return Origin{}, false
	}
	host, ok := ParseAuthority(rest)
	return Origin{scheme, host.withoutDefaultPort(scheme)}, ok
}
