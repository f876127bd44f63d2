package config

import (
	"fmt"
	"net/netip"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// FromNetwork limits the requests of callers from some addresses to tool groups.
//
//	networks:
//	  - {from: [10.0.0.0/8, "fd00::/8"], groups: all}
//	  - {from: [0.0.0.0/0, "::/0"], groups: [reading]}
type FromNetwork struct {
	From   []netip.Prefix // the most specific network that contains an address decides
	Groups Groups         // beyond the limits of the role; all is no limit
	Pos    yamldoc.Pos
}

// maxFromNetworks is the largest number of networks of a gateway.
const maxFromNetworks = 1000

// fromNetworkList reads the list of networks. No network is listed twice.
func fromNetworkList(to *[]FromNetwork) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of networks", "for example [{from: 10.0.0.0/8, groups: [reading]}]")
			return
		}
		count, seen := 0, map[netip.Prefix]yamldoc.Pos{}
		for _, entry := range v.ListItems() {
			n, ok := readFromNetwork(entry)
			for _, from := range n.From {
				if first, again := seen[from]; again {
					entry.AddError(fmt.Sprintf("network %s is listed twice; the first is at %s", from, first), "")
					ok = false
				}
				seen[from] = entry.Pos
			}
			if count += len(n.From); count > maxFromNetworks {
				entry.AddError(fmt.Sprintf("is after the first %d networks, which is the limit", maxFromNetworks), "")
				return
			}
			if ok {
				*to = append(*to, n)
			}
		}
	}
}

// readFromNetwork reads one entry. It returns false if it has reported an error.
func readFromNetwork(v yamldoc.Value) (n FromNetwork, ok bool) {
	if !v.IsMapping() {
		v.AddTypeError("a mapping of from and groups", "for example {from: 10.0.0.0/8, groups: [reading]}")
		return n, false
	}
	before := v.ErrorCount()
	n.Pos = v.Pos
	v.ReadFields(yamldoc.Fields{"from": networksField(&n.From), "groups": groupsField(&n.Groups)})
	requireFields(v, "from", "groups")
	if v.ErrorCount() == before && len(n.From) == 0 {
		v.MissingField("from").AddError("is empty", "")
	}
	return n, v.ErrorCount() == before
}

// networksField reads a network or a list of networks.
func networksField(to *[]netip.Prefix) func(yamldoc.Value) {
	const what, hint = "address or network", "for example 10.0.0.0/8 or [10.0.0.7, \"fd00::/8\"]; IPv4 is written as IPv4"
	list := yamldoc.ParsedList(to, what, hint, parseNetwork)
	return func(v yamldoc.Value) {
		if !v.IsScalar() {
			list(v)
			return
		}
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		network, ok := parseNetwork(text)
		if !ok {
			v.AddError(yamldoc.QuoteText(text)+" is not a valid "+what, hint)
			return
		}
		*to = append(*to, network)
	}
}
