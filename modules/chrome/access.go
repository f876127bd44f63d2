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

// accessPolicy decides what a principal may reach, anew each time it is asked.
type accessPolicy struct {
	Deps
	by identity.Principal
}

func (r accessPolicy) policy() Policy {
	if r.Policy == nil {
		return Policy{}
	}
	return r.Policy()
}

// check says whether the principal may reach a host.
func (r accessPolicy) check(ctx context.Context, h hosts.Host) error {
	switch {
	case hosts.IsNonHTTPPort(h.Port):
		return errcode.New(errcode.InvalidURL, "port %d belongs to another protocol than HTTP", h.Port)
	case !r.policy().Hosts.Allows(h):
		return errcode.New(errcode.HostBlocked, "the operator allows no requests to %s", h)
	case r.Hosts == nil:
		return errcode.New(errcode.HostBlocked, "nobody may reach %s", h)
	}
	return r.Hosts.MayReach(ctx, r.by, h)
}

// checkPlainHTTP says whether requests without TLS may go out.
func (r accessPolicy) checkPlainHTTP() error {
	if r.policy().AllowHTTP {
		return nil
	}
	return errcode.New(errcode.OnlyHTTPS, "only https is allowed; the operator can allow http with allowHTTP in kind: network")
}

// dial connects to a host that check allows, at an address that may be
// reached.
func (r accessPolicy) dial(ctx context.Context, h hosts.Host) (net.Conn, error) {
	if err := r.check(ctx, h); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: 15 * time.Second, Control: hosts.NewDialGuard(r.policy().Private).Control, Resolver: r.Resolver}
	c, err := d.DialContext(ctx, "tcp", h.String())
	if errors.Is(err, hosts.ErrNotPublic) {
		err = errcode.Wrap(errcode.AddressBlocked, err, "%s leads to an address that is not public; the operator can list it in privateAddresses of kind: network", h)
	}
	return c, err
}

// hostOf reads "name:port".
func hostOf(authority string) (hosts.Host, error) {
	return hosts.FromURL(&url.URL{Scheme: "https", Host: authority})
}
