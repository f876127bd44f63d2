package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/runtime"
)

// ApplyItem applies a configuration item and stores it. It returns when the item is active and on
// disk. An item that is not valid is rejected, and nothing changes. Other items may become broken
// by a valid one. Existing roles stay as they are.
//
// Errors: InvalidConfig; LimitExceeded if there are too many items; the errors of
// runtime.Runtime.UseOperationApproval.
func (a *App) ApplyItem(ctx context.Context, kind, name, text string, from runtime.Requester) (wire.ConfigItem, error) {
	kind, err := config.FindItemKind(kind)
	if err == nil {
		err = config.CheckItem(config.Item{Kind: kind, Name: name, Text: text})
	}
	if err != nil {
		return wire.ConfigItem{}, errcode.New(errcode.InvalidConfig, "apply an item: %s", err.Error())
	}
	stored := runtime.StoredItem{Kind: kind, Name: name, Text: text}
	if err := a.changeItem(ctx, runtime.ItemChange{StoredItem: stored, Requester: from}); err != nil {
		return wire.ConfigItem{}, err
	}
	state, _ := a.itemStates().find(kind, name)
	return state.wire(), nil
}

// UsesVariables reports whether an item has variables.
func (a *App) UsesVariables(text string) bool { return config.UsesVariables(text) }

// DeleteItem deletes an applied item and returns it as it was. Items that need it become broken.
// Errors: ItemNotFound; InvalidConfig if the files need the item; the errors of
// runtime.Runtime.UseOperationApproval.
func (a *App) DeleteItem(ctx context.Context, kind, name string, from runtime.Requester) (wire.ConfigItem, error) {
	if known, err := config.FindItemKind(kind); err == nil {
		kind = known
	}
	state, _ := a.itemStates().find(kind, name)
	c := runtime.ItemChange{StoredItem: runtime.StoredItem{Kind: kind, Name: name}, Delete: true, Requester: from}
	return state.wire(), a.changeItem(ctx, c)
}

// ListItems lists the applied items, sorted by kind and name. There are no items before the first
// configuration is active.
func (a *App) ListItems() (list []wire.ConfigItem) {
	for _, i := range a.itemStates() {
		list = append(list, i.wire())
	}
	slices.SortFunc(list, func(x, y wire.ConfigItem) int {
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name))
	})
	return list
}

// HasItems reports whether items are stored.
func (a *App) HasItems(ctx context.Context) (bool, error) {
	list, err := a.Runtime.ListItems(ctx)
	return len(list) > 0, err
}

// ActivateItems makes the applied items active if no configuration is.
func (a *App) ActivateItems(ctx context.Context) error {
	if a.active.Load() != nil {
		return nil
	}
	if found, err := a.HasItems(ctx); err != nil || !found {
		return err
	}
	return a.restoreConfig(ctx, new(config.Config), leaveDeleted)
}

// itemStates returns the items of the active configuration.
func (a *App) itemStates() itemStates {
	if list := a.items.Load(); list != nil {
		return *list
	}
	return nil
}

// changeItem makes a change of an item active and stores it, in one commit.
func (a *App) changeItem(ctx context.Context, item runtime.ItemChange) error {
	a.configMu.Lock()
	defer a.configMu.Unlock()
	if err := a.Runtime.RequestItemApproval(ctx, item); err != nil {
		return err // before a server or a service of the item is reached
	}
	files := a.fileConfig
	if files == nil {
		files = new(config.Config)
	}
	c := changeSpec{fileConfig: files, org: orgConfig(files), item: &item}
	c.org.KeepRoles = a.restored || a.fileConfig == nil
	a.changeTexts = nil
	if _, err := a.change(ctx, c); err != nil {
		return err
	}
	verb := "is applied"
	if item.Delete {
		verb = "is deleted"
	}
	text := fmt.Sprintf("item %s/%s %s", item.Kind, item.Name, verb)
	fmt.Fprintln(a.options.Console, "rolecall: "+textutil.SanitizeLines(strings.Join(append([]string{text}, a.changeTexts...), "; ")))
	a.changeTexts = nil
	return nil
}

// itemsAfter returns the stored items after a change; nil changes none. It sets c.Order to the next
// order: the applied item becomes the last, even if it replaces another.
func (a *App) itemsAfter(ctx context.Context, c *runtime.ItemChange) ([]runtime.StoredItem, error) {
	list, err := a.Runtime.ListItems(ctx)
	if err != nil || c == nil {
		return list, err
	}
	if len(list) > 0 {
		c.Order = list[len(list)-1].Order + 1
	}
	same := func(i runtime.StoredItem) bool { return i.Kind == c.Kind && i.Name == c.Name }
	found := slices.ContainsFunc(list, same)
	list = slices.DeleteFunc(list, same)
	switch {
	case c.Delete && !found:
		return nil, errcode.New(errcode.ItemNotFound, "delete the item %s/%s: no such item is applied", c.Kind, textutil.Truncate(c.Name, 100))
	case c.Delete:
		return list, nil
	case len(list) >= config.MaxItems:
		return nil, errcode.New(errcode.LimitExceeded, "apply the item %s/%s: %d items are applied, the most there can be; delete some", c.Kind, c.Name, len(list))
	}
	return append(list, c.StoredItem), nil
}

// prepareItemChange adds the item to a prepared change. The change then keeps existing roles,
// because the operator may have changed them since. It rejects and discards a change by which the
// item would not be active.
func (a *App) prepareItemChange(ctx context.Context, c changeSpec, ch *configChange) error {
	ch.orgConfig.KeepRoles, ch.orgConfig.Item = true, c.item
	if state, found := ch.items.find(c.item.Kind, c.item.Name); found && state.status != wire.ItemActive {
		return errors.Join(errcode.New(errcode.InvalidConfig, "%s", state.reason.Error()), a.discard(ctx, ch))
	}
	return nil
}

// setItems makes the items of an installed change current. It adds a text to a.changeTexts for
// each whose status has changed. A new item has none if it is active.
func (a *App) setItems(ch *configChange) {
	before := a.itemStates()
	for _, i := range ch.items {
		old, known := before.find(i.Kind, i.Name)
		if i.status != old.status && (known || i.status != wire.ItemActive) {
			a.changeTexts = append(a.changeTexts, i.describe())
		}
	}
	a.items.Store(&ch.items)
}

// itemNotes returns a note for each applied item that is not active.
func (a *App) itemNotes() (notes []string) {
	for _, i := range a.itemStates() {
		if i.status != wire.ItemActive {
			notes = append(notes, i.describe())
		}
	}
	return notes
}
