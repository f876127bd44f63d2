package app

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/toolgroups"
)

// drainTimeout is how long a change waits for calls in a module that is replaced or
// removed. Longer calls continue, and the module closes after the last one.
const drainTimeout = time.Second

// stageUnloads prepares the end of the removed modules.
func (a *App) stageUnloads(ctx context.Context, ch *configChange) error {
	for _, name := range ch.removed {
		s, err := a.loader.StageUnload(ctx, name)
		if err != nil {
			return err
		}
		ch.unloads = append(ch.unloads, s)
	}
	return nil
}

// registerGroups replaces the current groups by the groups of a change.
func (a *App) registerGroups(tx *toolgroups.Tx, ch *configChange) error {
	for _, s := range ch.unloads {
		if err := s.Register(tx); err != nil {
			return err
		}
	}
	for _, m := range ch.staged {
		if err := m.ready.Register(tx); err != nil {
			return yamldoc.Errors{ch.cfg.ErrorAt(m.Pos, "module", errorReason(err), "")}
		}
	}
	tx.DeclareGroups(a.declaredGroups(ch))
	return a.registerToolsets(tx, ch)
}

// declaredGroups returns the groups of the modules that failed to start and have no predecessor.
// It also returns the groups of the services that may announce themselves, and the group that
// applied tools join. The groups of a module are known only when it runs. Until then its group
// has the name of the module.
func (a *App) declaredGroups(ch *configChange) map[toolgroups.GroupID]toolgroups.GroupOwner {
	declared := map[toolgroups.GroupID]toolgroups.GroupOwner{toolgroups.DefaultGroup: toolgroups.Config}
	for _, name := range ch.failedModules {
		declared[toolgroups.GroupID(name)] = modules.OwnerOf(name)
	}
	announces := newAnnouncePolicy(ch.cfg)
	eachGroups(ch.cfg, func(_ string, g config.Groups) {
		for _, id := range g.IDs {
			if owner := announces.findGroup(id); owner != "" {
				declared[toolgroups.GroupID(id)] = owner
			}
		}
	})
	return declared
}

// groupError returns err, if it is about the groups of a module, as an error at the place
// of the module in the configuration.
func (ch *configChange) groupError(err error) error {
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok {
		return err
	}
	for _, m := range ch.staged {
		if e.Details["owner"] == modules.OwnerOf(m.Name) {
			return yamldoc.Errors{ch.cfg.ErrorAt(m.Pos, "module", errorReason(err), "")}
		}
	}
	return err
}

// activateModules brings the staged modules into service, after their groups were registered. It
// takes the removed modules out of service.
func (a *App) activateModules(ch *configChange) (errs []error) {
	for n, m := range ch.staged {
		err := m.ready.Activate()
		ch.staged[n].installed = err == nil
		if err == nil {
			a.running[m.Name] = m.Module
		}
		errs = append(errs, err)
	}
	for n, s := range ch.unloads {
		errs = append(errs, s.Activate())
		delete(a.running, ch.removed[n])
	}
	return errs
}

// drainReplaced closes the modules that were replaced or removed.
func (a *App) drainReplaced(ctx context.Context, ch *configChange) (errs []error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for _, s := range ch.unloads {
		errs = append(errs, a.ignoreSlowClose(s.DrainOld(ctx)))
	}
	for _, m := range ch.staged {
		if m.installed {
			errs = append(errs, a.ignoreSlowClose(m.ready.DrainOld(ctx)))
		} else {
			errs = append(errs, m.ready.Discard(ctx))
		}
	}
	return errs
}

// ignoreSlowClose returns nil for the error of a module that closes after its last call.
func (a *App) ignoreSlowClose(err error) error {
	if e, ok := errors.AsType[*modules.StepError](err); ok && e.Step == modules.StepWait {
		a.options.Log.Info("module closes when its calls have ended", "module", e.Module)
		return nil
	}
	return err
}
