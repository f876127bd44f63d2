package runtime

import (
	"context"
	"iter"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// kindOwner is the kind of the records that owners of tool groups store.
const kindOwner = "owner"

// OwnerRecord implements modules.Store.
func (rt *Runtime) OwnerRecord(ctx context.Context, owner toolgroups.Owner) ([]byte, error) {
	return rt.store.Record(ctx, kindOwner, string(owner))
}

// SetOwnerRecord implements modules.Store.
func (rt *Runtime) SetOwnerRecord(_ context.Context, owner toolgroups.Owner, value []byte) error {
	_, err := rt.commit(&journal.Batch{Put: []journal.Record{{Kind: kindOwner, Key: string(owner), Value: value}}})
	return err
}

// RecordOwners implements modules.Owners. It stops at the first error.
func (rt *Runtime) RecordOwners(ctx context.Context) iter.Seq2[toolgroups.Owner, error] {
	return func(yield func(toolgroups.Owner, error) bool) {
		for e, err := range rt.store.Entries(ctx, kindOwner, "") {
			if !yield(toolgroups.Owner(e.Key), err) || err != nil {
				return
			}
		}
	}
}
