package runtime

import (
	"context"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org/hosts"
)

var _ builtin.Hosts = (*Runtime)(nil)

// MayReach implements builtin.Hosts, with the errors of org.MayReach.
func (rt *Runtime) MayReach(_ context.Context, by identity.Principal, h hosts.Host) error {
	return rt.org.MayReach(by, h)
}
