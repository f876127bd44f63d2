package app

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
)

// drainTimeout is how long calls in modules that are not needed any more are waited
// for. Those that go on longer end as they would, and their module after them.
const drainTimeout = time.Second

// swap brings the modules that are ready into service.
func (a *App) swap(ctx context.Context, ch *configChange) (errs []error) {
	short, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for n, m := range ch.staged {
		err := m.ready.Install(short)
		if err == nil {
			a.running[m.Name], ch.staged[n].done = m.Module, true
			continue
		}
		told, late := a.unloadStale(ctx, ch, m)
		errs = append(errs, ch.cfg.Fault(m.Pos, "module", reasonOf(err)+told, ""), a.ignoreSlowClose(late))
	}
	return errs
}

// drainReplaced closes the modules that were replaced, and unloads those that are gone.
func (a *App) drainReplaced(ctx context.Context, ch *configChange, gone []string) (errs []error) {
	for _, name := range gone {
		errs = append(errs, a.ignoreSlowClose(a.unload(ctx, name)))
		delete(a.running, name)
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	for _, m := range ch.staged {
		if m.done {
			errs = append(errs, a.ignoreSlowClose(m.ready.DrainOld(ctx)))
		}
	}
	return errs
}

// unload takes a module out of service. Its calls are waited for as long as
// farewell says; that it is asked for its groups meanwhile, until it has been.
func (a *App) unload(ctx context.Context, name string) error {
	short, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := a.loader.Unload(short, name)
	if errcode.Of(err) == errcode.Conflict {
		return a.loader.Unload(ctx, name)
	}
	return err
}

// ignoreSlowClose passes over the error of a module that closes later, with its last
// call.
func (a *App) ignoreSlowClose(err error) error {
	if e, ok := errors.AsType[*modules.StepError](err); ok && e.Step == modules.StepWait {
		a.options.Log.Info("a module that is not needed any more closes when its calls have ended", "module", e.Module)
		return nil
	}
	return err
}
