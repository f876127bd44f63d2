package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// kindItem is the kind of the records of applied configuration items.
const kindItem = "configItem"

// StoredItem is a configuration item that the operator has applied.
type StoredItem struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Order uint64 `json:"order"` // items applied later have larger ones
	Text  string `json:"text"`  // as applied, with its variables
}

// key returns the key of the item's record.
func (i StoredItem) key() string { return i.Kind + "/" + i.Name }

// ItemChange stores an item, or deletes it.
type ItemChange struct {
	StoredItem
	Delete bool
	Requester
}

// ListItems lists the applied items in the order in which they were applied.
func (rt *Runtime) ListItems(ctx context.Context) (list []StoredItem, err error) {
	for record, err := range rt.config.Store.ReadRecords(ctx, kindItem, "") {
		var item StoredItem
		if err == nil {
			err = json.Unmarshal(record.Value, &item)
		}
		if err != nil {
			return nil, fmt.Errorf("read the applied items: %w", err)
		}
		list = append(list, item)
	}
	slices.SortFunc(list, func(a, b StoredItem) int { return cmp.Compare(a.Order, b.Order) })
	return list, nil
}

// addItemChange adds a change of an item to a batch.
func (rt *Runtime) addItemChange(b *journal.Batch, c ItemChange) {
	e := journal.ItemChanged{Kind: c.Kind, Name: c.Name, Change: "deleted", By: c.By.String()}
	record := journal.Record{Kind: kindItem, Key: c.key()}
	if !c.Delete {
		sum := sha256.Sum256([]byte(c.Text))
		e.Change, e.Digest = "applied", hex.EncodeToString(sum[:])
		record.Value, _ = json.Marshal(c.StoredItem) // texts always marshal
	}
	b.Put = append(b.Put, record)
	b.Events = append(b.Events, rt.eventBy(c.By, "", e))
	rt.voidOperations(b, "the item has changed", func(a *Approval) bool { return a.Operation == approval.ApplyItem && a.Subject == c.key() })
}

// RequestItemApproval returns why a change of an item is held, nil if ApplyConfig may make it. It records the
// request, and uses no approval: ApplyConfig does. Errors: the errors of UseOperationApproval.
func (rt *Runtime) RequestItemApproval(ctx context.Context, c ItemChange) error {
	if !rt.needsApproval(c.By, approval.ApplyItem) {
		return nil
	}
	op, err := rt.itemOperation(ctx, c)
	if err != nil {
		return err
	}
	return rt.requestApproval(c.Requester, op)
}

// itemOperation returns the operation of a change of an item. Its approval is bound to the item as
// it is stored.
func (rt *Runtime) itemOperation(ctx context.Context, c ItemChange) (*operation, error) {
	stored, err := rt.store.ReadRecord(ctx, kindItem, c.key())
	if err != nil {
		return nil, fmt.Errorf("read the item %s: %w", c.key(), err)
	}
	o := Operation{Kind: approval.ApplyItem, Subject: c.key(), Request: map[string]any{"verb": "apply", "kind": c.Kind, "name": c.Name, "text": c.Text}}
	if c.Delete {
		o.Request = map[string]any{"verb": "delete", "kind": c.Kind, "name": c.Name}
	}
	if stored != nil {
		o.Base = json.RawMessage(stored)
	}
	return o.operation(), nil
}

// judgeItem returns the approval that the change of an item may use, or why it is held. A change
// that needs no approval has one without an id. It is called within a commit.
func (rt *Runtime) judgeItem(b *journal.Batch, c *ItemChange) (granted Approval, held, err error) {
	if c == nil || !rt.needsApproval(c.By, approval.ApplyItem) {
		return Approval{}, nil, nil
	}
	op, err := rt.itemOperation(rt.uncancelled, *c)
	if err != nil {
		return Approval{}, nil, err
	}
	granted, held = rt.judgeOperation(b, c.Requester, op)
	return granted, held, nil
}
