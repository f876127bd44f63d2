package config

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
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
	AllowHTTP        bool            // http in addition to https
	PrivateAddresses []netip.Prefix  // allowed ranges that are not public
	Hosts            *hosts.HostRule // applies to all roles; nil allows every host
	MaxBody          int64           // bytes; 0 is not set
	MaxRedirects     *int            // nil is not set
	Timeout          time.Duration   // of one request; 0 is not set
	Pos              yamldoc.Pos
}

// The largest limits that a document may set. The timeout of a request is shorter than the timeout
// of a tool call.
const (
	maxRedirects = 50
	maxTimeout   = 4 * time.Minute
)

// readNetwork reads the document of kind network.
func readNetwork(it item) {
	network := Network{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"allowHTTP":        yamldoc.BoolField(&network.AllowHTTP),
		"privateAddresses": yamldoc.AddressRangeList(&network.PrivateAddresses),
		"hosts":            hostRuleField(&network.Hosts),
		"maxBody":          yamldoc.Int64Field(&network.MaxBody, maxArtifactBytes),
		"maxRedirects":     redirectsField(&network.MaxRedirects),
		"timeout":          yamldoc.DurationField(&network.Timeout, maxTimeout),
	})
	to := &it.r.config.Network
	if to.Pos != (yamldoc.Pos{}) {
		it.AddError(fmt.Sprintf("duplicate network; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = network
}

// redirectsField reads a number of redirects, which may be 0.
func redirectsField(to **int) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if n, ok := v.ReadInteger(0, maxRedirects); ok {
			most := int(n)
			*to = &most
		}
	}
}
