package app

import (
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// prepareDeclared prepares toolsets and auth services for a change. It returns the
// problems of these and of declared tools.
func (a *App) prepareDeclared(ch *configChange) (faults []*yamldoc.Error) {
	ch.toolsets = toolsetsOf(ch.cfg)
	ch.services, faults = a.services.prepare(ch.cfg, ch.cfg.AuthServices, nil)
	return append(append(faults, a.checkToolNames(ch)...), a.checkToolsetIDs(ch)...)
}
