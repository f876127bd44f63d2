package app

import (
	"errors"
	"maps"

	"github.com/rolecall/rolecall/config"
)

// prepareDeclared prepares toolsets and auth services for a change. It returns the
// problems of these and of declared tools.
func (a *App) prepareDeclared(ch *configChange) (faults []*config.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = a.services.prepare(ch.cfg)
	return append(append(faults, a.checkToolNames(ch)...), a.checkToolsetIDs(ch)...)
}

// restrict is step 1 of install. It removes what only one of the two configurations
// has: toolsets keep their common tools and prompts, auth services that change accept
// no token, and tools that move to another source leave their old group.
//
// If a step fails, the new roles could get tools that neither configuration gives
// them. restrict then restores the previous state and returns the error.
func (a *App) restrict(ch *configChange) error {
	services, sets, groups := a.services.byName(), maps.Clone(a.toolsets), a.groups.Snapshot()
	a.services.intersect(ch.services)
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

// expand is step 5 of install, after the roles have changed. It activates the toolsets
// and auth services of the new configuration.
func (a *App) expand(ch *configChange) error {
	a.services.replace(ch.services)
	return a.expandToolsets(ch.toolsets)
}
