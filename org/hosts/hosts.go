// Package hosts owns which hosts something may reach: the one spelling of a
// host, patterns of hosts, and rules made of them.
//
//	rule := hosts.Rule{Allow: hosts.MustPatterns("api.example.com", "*.example.org"), Deny: hosts.MustPatterns("old.example.org")}
//	host, err := hosts.FromURL(u)
//	ok := rule.Allows(host)
//
// Everything here is about names as they are written. Where a name leads to
// is another question, which only the one who dials can answer.
package hosts

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Host is a host and port in the one spelling that patterns are compared
// with: an ASCII name in lower case without final dot, or an IP address as
// netip writes it. Of and Canonical make it. No pattern matches the zero Host.
type Host struct {
	Name string
	Port uint16
}

// String gives "name:port", an IPv6 address in brackets.
func (h Host) String() string { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// FromURL gives the host of an absolute http or https URL, with the port the
// scheme has when the URL names none.
func FromURL(u *url.URL) (Host, error) {
	name, err := Canonical(u.Hostname())
	if err != nil {
		return Host{}, err
	}
	text := u.Port()
	switch {
	case text != "":
	case u.Scheme == "https":
		text = "443"
	case u.Scheme == "http":
		text = "80"
	}
	port, err := parsePort(text)
	return Host{name, port}, err
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '+' {
		return 0, errors.New("the port must be a number from 1 to 65535")
	}
	return uint16(port), nil
}

// Canonical gives the one spelling of a host: international names in ASCII,
// letters small, no final dot; of an IPv6 address, in brackets or not, the
// shortest form without, or the IPv4 address that it only wraps. Refused are zones,
// IPv4 addresses not written as four decimal numbers (0177.1, 2130706433:
// readers disagree about them), and what can be no name.
func Canonical(host string) (string, error) {
	if strings.ContainsAny(host, ":[") {
		return canonical6(host)
	}
	name, err := idnaProfile.ToASCII(host)
	if err != nil || !utf8.ValidString(host) {
		return "", errors.New("the host is no name and no address")
	}
	name = strings.TrimSuffix(name, ".")
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String(), nil
	}
	return name, checkName(name)
}

func canonical6(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", errors.New("the host is no IPv6 address without zone")
	}
	return addr.Unmap().String(), nil
}

// idnaProfile maps as browsers do, but takes the names with odd hyphens and
// underscores that are in use; checkName refuses what it lets through.
var idnaProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

func checkName(name string) error {
	if len(name) > 253 {
		return errors.New("the host's name is longer than 253 characters")
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("the host's name has a part of no or more than 63 characters")
		}
		if strings.ContainsFunc(label, invalidHostRune) {
			return errors.New("the host's name holds a character that no name has")
		}
		last = label
	}
	if isNumber(last) {
		return errors.New("the host ends in a number: write an IPv4 address as four decimal numbers without leading zeros")
	}
	return nil
}

func invalidHostRune(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

// isNumber says whether some reader takes a label for a number: of digits,
// octal and hexadecimal ones too.
func isNumber(label string) bool {
	hex, isHex := strings.CutPrefix(label, "0x")
	return strings.Trim(label, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}
