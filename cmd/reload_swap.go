package cmd

import (
	"context"
	"errors"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
)

// farewell is how long calls in modules that are not needed any more are waited
// for. Those that go on longer end as they would, and their module after them.
const farewell = time.Second

// swap brings the modules that are ready into service.
func (h *house) swap(ctx context.Context, ch *change) (errs []error) {
	short, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for n, m := range ch.staged {
		err := m.ready.Install(short)
		if err == nil {
			h.running[m.Name], ch.staged[n].done = m.Module, true
			continue
		}
		told, late := h.withhold(ctx, ch, m)
		errs = append(errs, ch.cfg.Fault(m.Pos, "module", reasonOf(err)+told, ""), h.inTime(late))
	}
	return errs
}

// retire closes the modules that were replaced, and unloads those that are gone.
func (h *house) retire(ctx context.Context, ch *change, gone []string) (errs []error) {
	for _, name := range gone {
		errs = append(errs, h.inTime(h.unload(ctx, name)))
		delete(h.running, name)
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for _, m := range ch.staged {
		if m.done {
			errs = append(errs, h.inTime(m.ready.DrainOld(ctx)))
		}
	}
	return errs
}

// unload takes a module out of service. Its calls are waited for as long as
// farewell says; that it is asked for its groups meanwhile, until it has been.
func (h *house) unload(ctx context.Context, name string) error {
	short, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	err := h.loader.Unload(short, name)
	if errcode.Of(err) == errcode.Conflict {
		return h.loader.Unload(ctx, name)
	}
	return err
}

// inTime passes over the error of a module that closes later, with its last
// call.
func (h *house) inTime(err error) error {
	if e, ok := errors.AsType[*modules.StepError](err); ok && e.Step == modules.StepWait {
		h.log.Info("a module that is not needed any more closes when its calls have ended", "module", e.Module)
		return nil
	}
	return err
}
