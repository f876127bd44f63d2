package hosts

import (
	"errors"
	"net"
	"net/netip"
	"strings"
)

// HostPattern matches hosts. Its text is a name, an address, "*.example.org" for all names
// below example.org without example.org itself, or "*" for all hosts. A ":port" restricts
// it to one port. The zero HostPattern matches nothing.
type HostPattern struct {
	Name string // a canonical name or address, "*." and a canonical name, or "*"
	Port uint16 // 0 is any port
}

// ParsePattern parses the text of a HostPattern. An address with a port needs brackets if it is an
// IPv6 address: "[::1]:80".
func ParsePattern(text string) (HostPattern, error) {
	if strings.ContainsAny(text, "/@?#") {
		return HostPattern{}, errors.New("a pattern is a host, not a URL or a range of addresses")
	}
	var p HostPattern
	name := text
	if host, port, err := net.SplitHostPort(text); err == nil {
		if p.Port, err = parsePort(port); err != nil {
			return HostPattern{}, err
		}
		name = host
	}
	if name == "*" {
		p.Name = name
		return p, nil
	}
	below, wild := strings.CutPrefix(name, "*.")
	host, err := CanonicalName(below)
	switch {
	case strings.Contains(below, "*"):
		return HostPattern{}, errors.New(`"*" stands alone or at the beginning, before a dot`)
	case err != nil:
		return HostPattern{}, err
	case !wild:
		p.Name = host
		return p, nil
	case isAddress(host):
		return HostPattern{}, errors.New("an address has nothing below it")
	}
	p.Name = "*." + host
	return p, nil
}

// isAddress reports whether a canonical name is an IP address.
func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// MustPatterns parses patterns and panics if one is malformed. It is for literals.
func MustPatterns(texts ...string) []HostPattern {
	list := make([]HostPattern, len(texts))
	for i, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			panic("hosts: pattern " + text + ": " + err.Error())
		}
		list[i] = p
	}
	return list
}

// MatchesHost reports whether p matches a host.
func (p HostPattern) MatchesHost(h Host) bool {
	if h.Name == "" || p.Port != 0 && p.Port != h.Port {
		return false
	}
	if p.Name == "*" {
		return true
	}
	if suffix, wild := strings.CutPrefix(p.Name, "*"); wild { // suffix begins with a dot
		return strings.HasSuffix(h.Name, suffix)
	}
	return p.Name == h.Name
}

// String returns the text of p, which ParsePattern accepts.
func (p HostPattern) String() string {
	if p.Port != 0 {
		return Host(p).String()
	}
	return p.Name
}

// MarshalText implements encoding.TextMarshaler.
func (p HostPattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It returns the errors of ParsePattern.
func (p *HostPattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}
