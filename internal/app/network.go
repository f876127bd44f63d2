package app

import (
	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/internal/config"
)

// networkPolicy returns the network policy of a configuration. A field that is not set
// has its default.
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
