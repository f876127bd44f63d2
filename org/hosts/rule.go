package hosts

import (
	"errors"
	"net"
	"slices"
	"strings"
)

// HostPattern matches hosts. Its text is a name, an address, "*.example.org" for all names
// below example.org without example.org itself, or "*" for all hosts. A ":port" restricts
// it to one port. The zero Pattern matches nothing.
type HostPattern struct {
	Name string // a canonical name or address, "*." and a canonical name, or "*"
	Port uint16 // 0 is any port
}

// ParsePattern parses the text of a pattern.
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
	case checkName(host) != nil || strings.Contains(host, ":"):
		return HostPattern{}, errors.New("an address has nothing below it")
	}
	p.Name = "*." + host
	return p, nil
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
	if below, wild := strings.CutPrefix(p.Name, "*"); wild {
		return strings.HasSuffix(h.Name, below)
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

// UnmarshalText implements encoding.TextUnmarshaler. Its errors are those of ParsePattern.
func (p *HostPattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}

// HostRule allows the hosts that a pattern of Allow matches and no pattern of Deny matches.
// The zero HostRule allows nothing.
type HostRule struct {
	Allow []HostPattern `json:"allow"`
	Deny  []HostPattern `json:"deny,omitempty"`
}

// AnyHost returns the HostRule that allows all hosts.
func AnyHost() HostRule { return HostRule{Allow: []HostPattern{{Name: "*"}}} }

// AllowsHost reports whether r allows a host.
func (r HostRule) AllowsHost(h Host) bool {
	matches := func(p HostPattern) bool { return p.MatchesHost(h) }
	return slices.ContainsFunc(r.Allow, matches) && !slices.ContainsFunc(r.Deny, matches)
}

// Equal reports whether two rules have the same patterns in the same order.
func (r HostRule) Equal(other HostRule) bool {
	return slices.Equal(r.Allow, other.Allow) && slices.Equal(r.Deny, other.Deny)
}

// Clone returns a copy of r that shares no memory with it.
func (r HostRule) Clone() HostRule { return HostRule{slices.Clone(r.Allow), slices.Clone(r.Deny)} }
