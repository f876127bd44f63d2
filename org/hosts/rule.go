package hosts

import (
	"errors"
	"net"
	"slices"
	"strings"
)

// Pattern matches hosts. As text it is a name, an address, "*.example.org"
// for every name below example.org (not itself), or "*" for every host; each
// with ":port" where only that port is meant. The zero Pattern matches nothing.
type Pattern struct {
	Name string // canonical, behind "*." or alone; or "*"
	Port uint16 // 0 is every port
}

// ParsePattern reads a pattern's text; the error says what is wrong with it.
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

// MustPatterns reads patterns and panics on a malformed one; for literals.
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

// Matches says whether a pattern is for a host.
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

// String gives the pattern's text.
func (p Pattern) String() string {
	if p.Port != 0 {
		return Host(p).String()
	}
	return p.Name
}

// MarshalText implements encoding.TextMarshaler.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler, with the errors of
// ParsePattern.
func (p *Pattern) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePattern(string(text))
	return err
}

// Rule says which hosts may be reached: those that a pattern of Allow matches
// and none of Deny. The zero Rule allows none.
type Rule struct {
	Allow []Pattern `json:"allow"`
	Deny  []Pattern `json:"deny,omitempty"`
}

// Any is the Rule that allows every host.
func Any() Rule { return Rule{Allow: []Pattern{{Name: "*"}}} }

// Allows says whether a host may be reached.
func (r Rule) Allows(h Host) bool {
	matches := func(p Pattern) bool { return p.Matches(h) }
	return slices.ContainsFunc(r.Allow, matches) && !slices.ContainsFunc(r.Deny, matches)
}

// Equal says whether two rules are written alike.
func (r Rule) Equal(other Rule) bool {
	return slices.Equal(r.Allow, other.Allow) && slices.Equal(r.Deny, other.Deny)
}

// Clone gives a Rule that shares nothing with r.
func (r Rule) Clone() Rule { return Rule{slices.Clone(r.Allow), slices.Clone(r.Deny)} }
