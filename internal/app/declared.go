package app

import (
	"errors"
	"maps"

	"github.com/rolecall/rolecall/config"
)

// declareFaults prepares toolsets and auth services, and finds what is wrong
// with them and with declared tools.
func (a *App) declareFaults(ch *configChange) (faults []*config.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = a.services.prepare(ch.cfg)
	return append(append(faults, a.toolFaults(ch)...), a.toolsetFaults(ch)...)
}

// restrict is the first step of a change: what toolsets hold in one of both
// configurations alone goes, auth services that are others vouch for nobody, and
// tools leave the sources that lose them. Where that fails, roles that come after
// would get what neither configuration gives: it is undone.
func (a *App) restrict(ch *configChange) error {
	services, sets, groups := a.services.all(), maps.Clone(a.toolsets), a.groups.Snapshot()
	a.services.narrow(ch.services)
	err := a.restrictToolsets(ch.toolsets)
	if err == nil {
		err = a.releaseMovedTools(ch)
	}
	if err == nil {
		return nil
	}
	a.services.replace(services)
	return errors.Join(err, a.restoreMovedTools(ch, groups), a.expandToolsets(sets))
}

// expand is the step after the roles: toolsets and auth services are those of
// the new configuration.
func (a *App) expand(ch *configChange) error {
	a.services.replace(ch.services)
	return a.expandToolsets(ch.toolsets)
}
