package config

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org/hosts"
)

// Gateway is the document of kind gateway: the address of the server, the hosts
// and origins it accepts, and its tokens. A configuration has at most one.
//
//	kind: gateway
//	name: api
//	address: 127.0.0.1:7464
//	origins: [https://app.example.com]
//	tokens:
//	  - {name: ann, role: reader, sha256: bb76d489e0ee334ed05d12cc413fa6935e3866c1b9c2468ae6841226ef9a47be}
type Gateway struct {
	Name    string
	Address string            // host:port; "" is the default
	Origins []hosts.Origin    // accepted origins of pages, in addition to the gateway's own, such as https://app.example.com
	Hosts   []hosts.Authority // accepted Host headers, in addition to the address, such as gw.example.com or gw.example.com:8080
	Tokens  []Token
	Issuers []Issuer `json:",omitempty"` // of the tokens that people and programs get elsewhere

	TLS            TLSFiles       `json:",omitzero"`
	Requests       int            `json:",omitzero"` // that a caller may send in a minute; 0 is no limit
	TrustedProxies []netip.Prefix // addresses that the connections of many clients come from
	Networks       []FromNetwork  `json:",omitempty"` // limit the requests that come from them
	Pos            yamldoc.Pos
}

// maxRequests is the highest limit of requests in a minute.
const maxRequests = 60_000

// readGateway reads the document of kind gateway.
func readGateway(it item) {
	gateway := Gateway{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"address":        listenAddress(&gateway.Address),
		"origins":        yamldoc.ParsedList(&gateway.Origins, "origin", "for example [https://app.example.com]", hosts.ParseOrigin),
		"hosts":          yamldoc.ParsedList(&gateway.Hosts, "host name", "for example [gw.example.com]", hosts.ParseAuthority),
		"tokens":         tokenList(it, &gateway.Tokens),
		"trustedProxies": yamldoc.ParsedList(&gateway.TrustedProxies, "address or network", "for example [10.0.0.7, 192.168.0.0/24]", parseNetwork),
		"networks":       fromNetworkList(&gateway.Networks),
		"auth":           issuerList(it, &gateway.Issuers),
		"tls":            tlsField(&gateway.TLS),
		"limits":         yamldoc.MappingField(yamldoc.Fields{"requestsPerMinute": yamldoc.IntField(&gateway.Requests, maxRequests)}),
		"cors":           nil,
	})
	gateway.checkUserNames(it)
	to := &it.r.config.Gateway
	if to.Pos != (yamldoc.Pos{}) {
		it.AddError(fmt.Sprintf("duplicate gateway; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = gateway
}

// listenAddress reads HOST:PORT with a numeric port. The host may be empty.
func listenAddress(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil || port == "" || strings.Trim(port, "0123456789") != "" || len(port) > 5 || strings.ContainsAny(host, " /@") {
			v.AddTypeError("an address as HOST:PORT", "for example 127.0.0.1:7464")
			return
		}
		*to = text
	}
}

// parseNetwork parses an IP address or a network in CIDR notation.
func parseNetwork(text string) (netip.Prefix, bool) {
	if at, err := netip.ParseAddr(text); err == nil {
		at = at.Unmap()
		p, err := at.Prefix(at.BitLen())
		return p, err == nil && at.Zone() == ""
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil && !p.Addr().Is4In6()
}
