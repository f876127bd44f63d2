package gateway

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/runtime"
)

// ItemKeeper keeps the configuration items that the operator applies, in addition to the files. A
// kind may be written as in TrustGraph. It is safe for concurrent use.
type ItemKeeper interface {
	// ListItems lists the items, sorted by kind and name.
	ListItems() []wire.ConfigItem
	// ApplyItem returns when the item is active and on disk. One that is not valid changes nothing.
	// Errors: InvalidConfig, LimitExceeded, Conflict, and the errors of
	// runtime.Runtime.UseOperationApproval.
	ApplyItem(ctx context.Context, kind, name, text string, from runtime.Requester) (wire.ConfigItem, error)
	// UsesVariables reports whether a value of an item has a variable, ${NAME}, however it is written.
	UsesVariables(text string) bool
	// DeleteItem returns the item as it was. Errors: ItemNotFound, InvalidConfig, Conflict, and the
	// errors of runtime.Runtime.UseOperationApproval.
	DeleteItem(ctx context.Context, kind, name string, from runtime.Requester) (wire.ConfigItem, error)
}

// noItems is the ItemKeeper of a process without one.
type noItems struct{}

// ListItems implements ItemKeeper.
func (noItems) ListItems() []wire.ConfigItem { return nil }

// ApplyItem implements ItemKeeper.
func (noItems) ApplyItem(context.Context, string, string, string, runtime.Requester) (wire.ConfigItem, error) {
	return wire.ConfigItem{}, errcode.New(errcode.Conflict, "apply an item: this process takes no configuration items; apply it with \"rolecall serve\" running")
}

// UsesVariables implements ItemKeeper.
func (noItems) UsesVariables(string) bool { return false }

// DeleteItem implements ItemKeeper.
func (noItems) DeleteItem(_ context.Context, kind, name string, _ runtime.Requester) (wire.ConfigItem, error) {
	return wire.ConfigItem{}, errcode.New(errcode.ItemNotFound, "delete the item %.100s/%.100s: no such item is applied", kind, name)
}

// itemPath is the path of one item.
const itemPath = "/api/v1/config/items/{kind}/{name}"

// listItems lists the applied items, sorted by kind and name.
func (a *api) listItems(r *http.Request) (any, error) {
	key := func(i wire.ConfigItem) string { return i.Kind + "\x00" + i.Name }
	return paginate(r, a.items.ListItems(), key, func(i wire.ConfigItem) wire.ConfigItem { return i })
}

// applyItem applies an item. Only the owner of the data directory may use variables in it. They are
// the variables of this process, and a description shows them.
func (a *api) applyItem(r *http.Request) (any, error) {
	q, err := decode[wire.ConfigItemRequest](r)
	if err != nil {
		return nil, err
	}
	if !auth.IsLocalOwner(r) && a.items.UsesVariables(q.Text) {
		return nil, errcode.New(errcode.InsufficientPermissions, "apply an item: ${NAME} can be used only on this machine, through the socket of the data directory").With("field", "text")
	}
	return a.items.ApplyItem(r.Context(), r.PathValue("kind"), r.PathValue("name"), q.Text, requesterOf(r))
}

// deleteItem deletes an item and answers with what it was.
func (a *api) deleteItem(r *http.Request) (any, error) {
	return a.items.DeleteItem(r.Context(), r.PathValue("kind"), r.PathValue("name"), requesterOf(r))
}
