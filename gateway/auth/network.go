package auth

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// MaxNetworks is the largest number of networks that ReplaceNetworks accepts.
const MaxNetworks = 1000

// Network limits the requests that come from some addresses. The network with the longest
// prefix that contains the address of a request decides.
type Network struct {
	From netip.Prefix

	// Within is the limit of callers (identity.Principal.Within); "" is no limit. From a
	// network with a limit the operator is not accepted: groups do not say what it may do.
	Within string
}

// ReplaceNetworks replaces all networks atomically. If it returns an error, nothing has
// changed.
func (t *TokenStore) ReplaceNetworks(list []Network) error {
	if len(list) > MaxNetworks {
		return fmt.Errorf("auth: %d networks, at most %d are allowed", len(list), MaxNetworks)
	}
	known, sorted := map[netip.Prefix]bool{}, slices.Clone(list)
	for _, n := range sorted {
		if !n.From.IsValid() || n.From != n.From.Masked() || n.From.Addr().Is4In6() || known[n.From] {
			return fmt.Errorf("auth: network %q is invalid or listed twice", n.From)
		}
		known[n.From] = true
	}
	slices.SortFunc(sorted, func(a, b Network) int { return cmp.Compare(b.From.Bits(), a.From.Bits()) })
	t.networks.Store(&sorted)
	return nil
}

// LimitSender returns the sender of a request with the limit of the network that it comes from.
// Requests of the data directory's owner come from none: the socket and this process.
//
// Errors: InsufficientPermissions for the operator in a network with a limit. Everyone gets
// this error if the address is unknown and there are networks.
func (t *TokenStore) LimitSender(r *http.Request, p identity.Principal) (identity.Principal, error) {
	list := t.networks.Load()
	if list == nil || len(*list) == 0 || IsLocalOwner(r) || p.Kind == identity.Monitor {
		return p, nil
	}
	at, err := t.senderAddress(r)
	if err != nil {
		return identity.Principal{}, errcode.Wrap(errcode.InsufficientPermissions, err, "the network that the request comes from is unknown")
	}
	i := slices.IndexFunc(*list, func(n Network) bool { return n.From.Contains(at) })
	switch {
	case i < 0 || (*list)[i].Within == "":
		return p, nil
	case p.Kind != identity.Caller:
		return identity.Principal{}, errcode.New(errcode.InsufficientPermissions,
			"the operator is not accepted from this network, which is limited to tool groups; use the socket of the data directory, or a network without a limit")
	}
	p.Within = (*list)[i].Within
	return p, nil
}

// errNoAddress is the cause of a request without a usable address of its sender.
var errNoAddress = errors.New("the address of the sender cannot be read")
