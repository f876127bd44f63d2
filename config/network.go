package config

import (
	"fmt"
	"net/netip"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/org/hosts"
)

// Network is the document of kind network: what the HTTP requests of agents may
// reach in addition to public addresses over HTTPS, and their limits. A
// configuration has at most one.
//
//	kind: network
//	name: intranet
//	privateAddresses: [10.1.0.0/16]
//	hosts: {allow: ["*.example.com"]}
//	timeout: 30s
type Network struct {
	Name             string
	AllowHTTP        bool           // http in addition to https
	PrivateAddresses []netip.Prefix // allowed ranges that are not public
	Hosts            *hosts.Rule    // applies to all roles; nil allows every host
	MaxBody          int64          // bytes; 0 is not set
	MaxRedirects     *int           // nil is not set
	Timeout          time.Duration  // of one request; 0 is not set
	Pos              Pos
}

// The largest limits that a document may set. The timeout of a request is below
// that of a tool call.
const (
	maxRedirects = 50
	maxTimeout   = 4 * time.Minute
)

// readNetwork reads the document of kind network.
func readNetwork(it docItem) {
	network := Network{Name: it.name, Pos: it.pos}
	it.fields(
		field{"allowHTTP", boolField(&network.AllowHTTP)},
		field{"privateAddresses", addressRangeList(&network.PrivateAddresses)},
		field{"hosts", hostRuleField(&network.Hosts)},
		field{"maxBody", boundedInt(&network.MaxBody, maxArtifactBytes)},
		field{"maxRedirects", redirectsField(&network.MaxRedirects)},
		field{"timeout", durationField(&network.Timeout, maxTimeout)},
	)
	to := &it.doc.config.Network
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("duplicate network; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = network
}

// redirectsField reads a number of redirects, which may be 0.
func redirectsField(to **int) func(value) {
	return func(v value) {
		if n, ok := v.integer(0, maxRedirects, fmt.Sprintf("a whole number from 0 to %d", maxRedirects)); ok {
			most := int(n)
			*to = &most
		}
	}
}

// boolField reads true or false, which may be in a variable. Other words for bools
// in YAML 1.1, such as yes, are rejected.
func boolField(to *bool) func(value) {
	return func(v value) {
		word, ok := v.node.Value, v.node.Tag == "!!bool"
		if v.hasVariable() {
			if word, ok = v.text(); !ok {
				return
			}
		}
		if !ok || word != "true" && word != "false" {
			v.failType("true or false", "")
			return
		}
		*to = word == "true"
	}
}

// durationField reads a duration such as 30s, 500ms or 1m30s, from 1ms to most. A
// number without a unit is rejected, because its unit would be a guess.
func durationField(to *time.Duration, most time.Duration) func(value) {
	return func(v value) {
		var d time.Duration
		var err error
		if v.node.Tag != "!!int" {
			text, ok := v.nonEmpty()
			if !ok {
				return
			}
			d, err = time.ParseDuration(text)
		}
		if err != nil || d < time.Millisecond || d > most {
			v.failType("a duration from 1ms to "+most.String(), "with its unit, as 30s")
			return
		}
		*to = d
	}
}

// addressRangeList reads a list of IP address ranges.
func addressRangeList(to *[]netip.Prefix) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of address ranges", "for example [10.1.0.0/16, 127.0.0.1/32, fd00::/8]")
			return
		}
		for _, item := range v.items() {
			if p, ok := item.addressRange(); ok {
				*to = append(*to, p)
			}
		}
	}
}

// addressRange reads a range in CIDR notation.
func (v value) addressRange() (netip.Prefix, bool) {
	text, ok := v.nonEmpty()
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil && addressAsRange(text) != "":
		v.fail(quote(v.node.Value)+" is one address, not a range", "write "+addressAsRange(text))
	case err != nil || p.Addr().Is4In6():
		v.failType("an address range", "for example 10.1.0.0/16 or fd00::/8")
	case p != p.Masked():
		v.fail(quote(v.node.Value)+" has address bits set after its prefix length", "write "+p.Masked().String())
	default:
		return p, true
	}
	return netip.Prefix{}, false
}

// addressAsRange returns the range that contains only the address in text, or ""
// if text is not an address.
func addressAsRange(text string) string {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" || addr.Is4In6() {
		return ""
	}
	return netip.PrefixFrom(addr, addr.BitLen()).String()
}
