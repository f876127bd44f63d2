package hosts

import (
	"errors"
	"net"
	"slices"
	"strings"
)

// Pattern matches hosts. Its text is a name, an address, "*.example.org" for all names
// below example.org without example.org itself, or "*" for all hosts. A ":port" restricts
// it to one port. The zero Pattern matches nothing.
type Pattern struct {
	Name string // a canonical name or address, "*." and a canonical name, or "*"
	Port uint16 // 0 is any port
}

// ParsePattern parses the text of a pattern.
func ParsePattern(text string) (Pattern, error) {
	if strings.ContainsAny(text, "/@?#") {
		return Pattern{}, errors.New("a pattern is a host, not a URL or a range of addresses")
	}
	var p Pattern
	name := text
	if host, port, err := net.SplitHostPort(text); err == nil {
		if p.Port, err = parsePort(port); err != nil {
			return Pattern{}, err
		}
		name = host
	}
	if name == "*" {
		p.Name = name
		return p, nil
	}
	below, wild := strings.CutPrefix(name, "*.")
	host, err := Canonical(below)
	switch {
	case strings.Contains(below, "*"):
		return Pattern{}, errors.New(`"*" stands alone or at the beginning, before a dot`)
	case err != nil:
		return Pattern{}, err
	case !wild:
		p.Name = host
		return p, nil
	case checkName(host) != nil || strings.Contains(host, ":"):
		return Pattern{}, errors.New("an address has nothing below it")
	}
	p.Name = "*." + host
	return p, nil
}

// MustPatterns parses patterns and panics if one is malformed. It is for literals.
func MustPatterns(texts ...string) []Pattern {
	list := make([]Pattern, len(texts))
	for i, text := range texts {
		p, err := ParsePattern(text)
		if err != nil {
			panic("hosts: pattern " + text + ": " + err.Error())
		}
		list[i] = p
	}
	return list
}

// Matches reports whether p matches a host.
func (p Pattern) Matches(h Host) bool {
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
func (p Pattern) String() string {
	if p.Port != 0 {
		return Host(p).String()
	}
	return p.Name
}

// MarshalText implements encoding.TextMarshaler.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Its errors are those of ParsePattern.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}

// Rule allows the hosts that a pattern of Allow matches and no pattern of Deny matches.
// The zero Rule allows nothing.
type Rule struct {
	Allow []Pattern `json:"allow"`
	Deny  []Pattern `json:"deny,omitempty"`
}

// Any returns the Rule that allows all hosts.
func Any() Rule { return Rule{Allow: []Pattern{{Name: "*"}}} }

// Allows reports whether r allows a host.
func (r Rule) Allows(h Host) bool {
	matches := func(p Pattern) bool { return p.Matches(h) }
	return slices.ContainsFunc(r.Allow, matches) && !slices.ContainsFunc(r.Deny, matches)
}

// Equal reports whether two rules have the same patterns in the same order.
func (r Rule) Equal(other Rule) bool {
	return slices.Equal(r.Allow, other.Allow) && slices.Equal(r.Deny, other.Deny)
}

// Clone returns a copy of r that shares no memory with it.
func (r Rule) Clone() Rule { return Rule{slices.Clone(r.Allow), slices.Clone(r.Deny)} }
