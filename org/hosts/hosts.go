// Package hosts normalizes host names and matches them against patterns and rules, to
// decide which hosts a request may be sent to.
//
//	rule := hosts.HostRule{
//		Allow: hosts.MustPatterns("api.example.com", "*.example.org"),
//		Deny:  hosts.MustPatterns("old.example.org"),
//	}
//	host, err := hosts.FromURL(u)
//	// ...
//	ok := rule.AllowsHost(host)
//
// A [HostRule] decides by the name only and does not resolve it. A [DialGuard] decides about
// the address when it is dialed. An allowed name may resolve to an address that is not
// public. [Authority] and [Origin] parse request headers.
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

// Host is a host and a port in canonical form, in which it is compared with patterns. Name
// is an ASCII name in lower case without a final dot, or an IP address in the form of
// package netip. FromURL and CanonicalName return canonical names. No HostPattern matches the
// zero Host.
type Host struct {
	Name string
	Port uint16
}

// String returns "name:port", with brackets around an IPv6 address.
func (h Host) String() string { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// FromURL returns the host of an absolute http or https URL. If the URL has no port, it is
// the default port of the scheme.
func FromURL(u *url.URL) (Host, error) {
	name, err := CanonicalName(u.Hostname())
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

// parsePort parses a decimal port from 1 to 65535.
func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '+' {
		return 0, errors.New("the port must be a number from 1 to 65535")
	}
	return uint16(port), nil
}

// CanonicalName returns the canonical form of a host. It maps international names to ASCII and
// to lower case, and removes a final dot. It accepts IPv6 addresses with or without brackets.
// It returns the shortest form without brackets, or the IPv4 address if one is mapped.
//
// It rejects names that are not valid, and IPv6 zones. It also rejects IPv4 addresses that are
// not four decimal numbers, such as 0177.1 and 2130706433. Parsers read such addresses
// differently.
func CanonicalName(host string) (string, error) {
	if strings.ContainsAny(host, ":[") {
		return canonical6(host)
	}
	name, err := idnaProfile.ToASCII(host)
	if err != nil || !utf8.ValidString(host) {
		return "", errors.New("the host is neither a name nor an address")
	}
	name = strings.TrimSuffix(name, ".")
	if addr, err := netip.ParseAddr(name); err == nil {
		return addr.String(), nil
	}
	return name, checkName(name)
}

// canonical6 is CanonicalName for IPv6 addresses.
func canonical6(host string) (string, error) {
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", errors.New("the host is not an IPv6 address without a zone")
	}
	return addr.Unmap().String(), nil
}

// idnaProfile maps names as browsers do. It also accepts hyphens in any place and
// underscores, which are in use; checkName rejects the other characters that it accepts.
var idnaProfile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(false), idna.CheckHyphens(false))

// checkName checks a name in ASCII and lower case.
func checkName(name string) error {
	if len(name) > 253 {
		return errors.New("the host name is longer than 253 characters")
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return errors.New("the host name has a label that is empty or longer than 63 characters")
		}
		if strings.ContainsFunc(label, invalidHostRune) {
			return errors.New("the host name contains an invalid character")
		}
		last = label
	}
	if isNumber(last) {
		return errors.New("the host ends in a number: write an IPv4 address as four decimal numbers without leading zeros")
	}
	return nil
}

// invalidHostRune reports whether r may not be in a label.
func invalidHostRune(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

// isNumber reports whether a parser may read a label as a decimal, octal or hexadecimal
// number. Such a name could be taken for an IPv4 address.
func isNumber(label string) bool {
	hex, isHex := strings.CutPrefix(label, "0x")
	return strings.Trim(label, "0123456789") == "" || isHex && strings.Trim(hex, "0123456789abcdef") == ""
}
