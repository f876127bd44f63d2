package app

import (
	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/config"
)

// networkPolicy gives what a configuration says of requests; what it leaves
// out is as for an organization that says nothing.
func networkPolicy(c config.Network) builtin.NetworkPolicy {
	p := builtin.PublicNetwork()
	p.AllowHTTP, p.Private = c.AllowHTTP, c.PrivateAddresses
	if c.Hosts != nil {
		p.Hosts = *c.Hosts
	}
	if c.MaxBody > 0 {
		p.MaxBody = c.MaxBody
	}
	if c.MaxRedirects != nil {
		p.MaxRedirects = *c.MaxRedirects
	}
	if c.Timeout > 0 {
		p.Timeout = c.Timeout
	}
	return p
}
