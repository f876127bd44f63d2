package app

import (
	"slices"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// prepareDeclared prepares toolsets and auth services for a change. It returns the
// problems of these and of declared tools.
func (a *App) prepareDeclared(ch *configChange) (faults []*yamldoc.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = a.services.prepare(ch.cfg, ch.cfg.AuthServices, nil)
	return slices.Concat(faults, a.checkToolNames(ch), a.checkToolsetIDs(ch), a.checkRelated(ch), a.checkModuleTools(ch), a.brokers.check(ch.cfg))
}
