package app

import (
	"context"
	"errors"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/runtime"
)

// changeSpec describes a change of the configuration.
type changeSpec struct {
	fileConfig *config.Config // what the files declare
	loaded     error          // of loading files
	org        runtime.OrgConfig
	strict     bool                      // a module of the files that fails to start rejects the change
	check      func(*configChange) error // nil accepts all
	item       *runtime.ItemChange       // of the stored items; nil changes none
}

// change makes a configuration with the applied items active. A mistake in the files rejects the
// change. An item at fault is left out and becomes broken; the others stay. configMu must be held.
func (a *App) change(ctx context.Context, c changeSpec) (summary []string, err error) {
	stored, err := a.itemsAfter(ctx, c.item)
	if err != nil {
		return nil, err
	}
	items := newItemStates(stored, c.fileConfig)
	if c.loaded != nil {
		items = nil // the change is rejected
	}
	for {
		ch, err := a.prepareWith(ctx, c, items)
		if err != nil {
			return nil, err
		}
		ch.fileConfig = c.fileConfig
		if c.item != nil {
			if err := a.prepareItemChange(ctx, c, ch); err != nil {
				return nil, err
			}
		}
		summary, err := a.install(ctx, ch)
		if err == nil || summary != nil || c.item != nil || errcode.CodeOf(err) == errcode.Internal || !items.leaveOut(err) {
			return summary, err
		}
	}
}

// prepareWith prepares the files of a change with items. Those at fault it leaves out.
func (a *App) prepareWith(ctx context.Context, c changeSpec, items itemStates) (*configChange, error) {
	checkedFiles := false
	for {
		ch, err := a.tryPrepare(ctx, c, items.included())
		if err == nil {
			ch.items = items.afterFailures(ch)
			return ch, nil
		}
		if len(items.included()) == 0 {
			return nil, err
		}
		if items.leaveOutFaulty(err) {
			continue
		}
		if !checkedFiles { // no item is the place of a mistake
			if err := a.tryFiles(ctx, c); err != nil {
				return nil, err
			}
			checkedFiles = true
		}
		items.leaveOutNewest(err)
	}
}

// tryFiles returns why the files of a change are rejected without items.
func (a *App) tryFiles(ctx context.Context, c changeSpec) error {
	ch, err := a.tryPrepare(ctx, c, nil)
	if err != nil {
		return err
	}
	return a.discard(ctx, ch)
}

// tryPrepare prepares the files of a change with items. With an error nothing is left of it.
func (a *App) tryPrepare(ctx context.Context, c changeSpec, items []config.Item) (*configChange, error) {
	cfg, loaded := c.fileConfig, c.loaded
	if len(items) > 0 && loaded == nil {
		var err error
		if cfg, err = c.fileConfig.WithItems(items, a.options.Env); err != nil {
			return nil, err
		}
	}
	ch := a.prepare(ctx, cfg, c.org)
	if err := a.checkChange(c, ch, loaded); err != nil {
		return nil, errors.Join(err, a.discard(ctx, ch))
	}
	return ch, nil
}

// checkChange returns why a prepared change is rejected. A module of an item that fails to start
// is no reason.
func (a *App) checkChange(c changeSpec, ch *configChange, loaded error) error {
	problems := ch.problems
	if c.strict {
		problems = append(problems, slices.DeleteFunc(slices.Clone(ch.moduleErrors), isItemError)...)
	}
	if len(problems) == 0 && !c.org.KeepRoles {
		problems = a.checkStaleModules(ch)
	}
	if len(problems) > 0 && !c.strict {
		problems = append(problems, ch.moduleErrors...)
	}
	if err := yamldoc.JoinErrors(loaded, problems...); err != nil || c.check == nil {
		return err
	}
	return c.check(ch)
}

// isItemError reports whether an error is one of an applied item.
func isItemError(e *yamldoc.Error) bool { return config.IsItemPath(e.File) }
