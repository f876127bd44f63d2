package app

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
)

// drainTimeout is how long a change waits for calls in a module that is replaced or
// removed. Longer calls continue, and the module closes after the last one.
const drainTimeout = time.Second

// installModules puts the staged modules into service. Their predecessors get no new
// calls.
func (a *App) installModules(ctx context.Context, ch *configChange) (errs []error) {
	short, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for n, m := range ch.staged {
		err := m.ready.Install(short)
		if err == nil {
			a.running[m.Name], ch.staged[n].installed = m.Module, true
			continue
		}
		note, late := a.unloadStale(ctx, ch, m)
		errs = append(errs, ch.cfg.Fault(m.Pos, "module", errorReason(err)+note, ""), a.ignoreSlowClose(late))
	}
	return errs
}

// drainReplaced closes the modules that were replaced and unloads removed ones.
func (a *App) drainReplaced(ctx context.Context, ch *configChange, removed []string) (errs []error) {
	for _, name := range removed {
		errs = append(errs, a.ignoreSlowClose(a.unload(ctx, name)))
		delete(a.running, name)
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for _, m := range ch.staged {
		if m.installed {
			errs = append(errs, a.ignoreSlowClose(m.ready.DrainOld(ctx)))
		}
	}
	return errs
}

// unload takes a module out of service and waits for its calls up to drainTimeout. If the
// module is being refreshed it waits, without that limit, until the refresh has ended.
func (a *App) unload(ctx context.Context, name string) error {
	short, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := a.loader.UnloadModule(short, name)
	if errcode.CodeOf(err) == errcode.Conflict {
		return a.loader.UnloadModule(ctx, name)
	}
	return err
}

// ignoreSlowClose returns nil for the error of a module that closes after its last call.
func (a *App) ignoreSlowClose(err error) error {
	if e, ok := errors.AsType[*modules.StepError](err); ok && e.Step == modules.StepWait {
		a.options.Log.Info("module closes when its calls have ended", "module", e.Module)
		return nil
	}
	return err
}
