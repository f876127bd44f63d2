package chrome

import (
	"context"
	"errors"
	"net"
	"net/url"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
)

// accessPolicy decides which hosts a principal may reach. It evaluates Deps at every call,
// so that a change of the policy or of a role takes effect at once.
type accessPolicy struct {
	Deps
	by identity.Principal
}

// policy returns the operator's policy of this moment.
func (a accessPolicy) policy() Policy {
	if a.Policy == nil {
		return Policy{}
	}
	return a.Policy()
}

// check returns an error unless the principal may reach a host.
func (a accessPolicy) check(ctx context.Context, h hosts.Host) error {
	switch {
	case hosts.IsNonHTTPPort(h.Port):
		return errcode.New(errcode.InvalidURL, "port %d is assigned to another protocol than HTTP", h.Port)
	case !a.policy().Hosts.AllowsHost(h):
		return errcode.New(errcode.HostBlocked, "the operator allows no requests to %s", h)
	case a.Hosts == nil:
		return errcode.New(errcode.HostBlocked, "no requests to %s are allowed", h)
	}
	return a.Hosts.MayReach(ctx, a.by, h)
}

// checkPlainHTTP returns an error unless requests without TLS are allowed.
func (a accessPolicy) checkPlainHTTP() error {
	if a.policy().AllowHTTP {
		return nil
	}
	return errcode.New(errcode.OnlyHTTPS, "only https is allowed; the operator can allow http with allowHTTP in kind: network")
}

// dial connects to a host that check allows. It rejects addresses that are neither public
// nor allowed by the policy, after the name was resolved.
func (a accessPolicy) dial(ctx context.Context, h hosts.Host) (net.Conn, error) {
	if err := a.check(ctx, h); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 15 * time.Second, Control: hosts.NewDialGuard(a.policy().Private).Control, Resolver: a.Resolver}
	c, err := d.DialContext(ctx, "tcp", h.String())
	if errors.Is(err, hosts.ErrNotPublic) {
		err = errcode.Wrap(errcode.AddressBlocked, err, "%s resolves to an address that is not public; the operator can list it in privateAddresses of kind: network", h)
	}
	return c, err
}

// parseAuthority parses "name:port".
func parseAuthority(authority string) (hosts.Host, error) {
	return hosts.FromURL(&url.URL{Scheme: "https", Host: authority})
}
