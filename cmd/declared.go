package cmd

import (
	"errors"

	"github.com/rolecall/rolecall/config"
)

// declareFaults prepares toolsets and auth services, and finds what is wrong
// with them and with declared tools.
func (h *house) declareFaults(ch *change) (faults []*config.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = h.services.prepare(ch.cfg)
	return append(append(faults, h.toolFaults(ch)...), h.toolsetFaults(ch)...)
}

// narrow is the first step of a change: what toolsets hold in one of both
// configurations alone goes, auth services that are others vouch for nobody, and
// tools leave the sources that lose them.
func (h *house) narrow(ch *change) error {
	h.services.narrow(ch.services)
	return errors.Join(append(h.makeRoom(ch), h.narrowToolsets(ch.toolsets))...)
}

// widen is the step after the roles: toolsets and auth services are those of
// the new configuration.
func (h *house) widen(ch *change) error {
	h.services.replace(ch.services)
	return h.widenToolsets(ch.toolsets)
}
