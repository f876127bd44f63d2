package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
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
	By     identity.Principal
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

// itemChanged adds a change of an item to a batch.
func (rt *Runtime) itemChanged(b *journal.Batch, c ItemChange) {
	e := journal.ItemChanged{Kind: c.Kind, Name: c.Name, Change: "deleted", By: c.By.String()}
	record := journal.Record{Kind: kindItem, Key: c.key()}
	if !c.Delete {
		sum := sha256.Sum256([]byte(c.Text))
		e.Change, e.Digest = "applied", hex.EncodeToString(sum[:])
		record.Value, _ = json.Marshal(c.StoredItem) // texts always marshal
	}
	b.Put = append(b.Put, record)
	b.Events = append(b.Events, rt.eventBy(c.By, "", e))
}
