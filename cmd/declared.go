package cmd

import (
	"errors"
	"maps"

	"github.com/rolecall/rolecall/config"
)

// declareFaults prepares toolsets and auth services, and finds what is wrong
// with them and with declared tools.
func (h *App) declareFaults(ch *configChange) (faults []*config.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = h.services.prepare(ch.cfg)
	return append(append(faults, h.toolFaults(ch)...), h.toolsetFaults(ch)...)
}

// restrict is the first step of a change: what toolsets hold in one of both
// configurations alone goes, auth services that are others vouch for nobody, and
// tools leave the sources that lose them. Where that fails, roles that come after
// would get what neither configuration gives: it is undone.
func (h *App) restrict(ch *configChange) error {
	services, sets, groups := h.services.all(), maps.Clone(h.toolsets), h.groups.Snapshot()
	h.services.narrow(ch.services)
	err := h.restrictToolsets(ch.toolsets)
	if err == nil {
		err = h.releaseMovedTools(ch)
	}
	if err == nil {
		return nil
	}
	h.services.replace(services)
	return errors.Join(err, h.restoreMovedTools(ch, groups), h.expandToolsets(sets))
}

// expand is the step after the roles: toolsets and auth services are those of
// the new configuration.
func (h *App) expand(ch *configChange) error {
	h.services.replace(ch.services)
	return h.expandToolsets(ch.toolsets)
}
