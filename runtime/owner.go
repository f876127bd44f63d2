package runtime

import (
	"context"
	"iter"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// kindOwner is the kind of the records that owners of tool groups store.
const kindOwner = "owner"

// OwnerStore stores one value for each owner of tool groups, such as a module,
// that survives restarts. It implements modules.OwnerStore and modules.OwnerLister. All
// methods are safe for concurrent use.
type OwnerStore struct {
	store  journal.Store
	commit func(*journal.Batch) (uint64, error)
}

// OwnerStore returns the store of the values that owners of tool groups keep.
func (rt *Runtime) OwnerStore() *OwnerStore { return &OwnerStore{rt.store, rt.commit} }

// ReadValue returns the value of an owner, or nil if there is none.
func (s *OwnerStore) ReadValue(ctx context.Context, owner toolgroups.GroupOwner) ([]byte, error) {
	return s.store.ReadRecord(ctx, kindOwner, string(owner))
}

// WriteValue replaces the value of an owner; nil removes it. It returns when the value
// is on disk.
func (s *OwnerStore) WriteValue(_ context.Context, owner toolgroups.GroupOwner, value []byte) error {
	_, err := s.commit(&journal.Batch{Put: []journal.Record{{Kind: kindOwner, Key: string(owner), Value: value}}})
	return err
}

// ListOwners lists the owners that have a value. It stops at the first error.
func (s *OwnerStore) ListOwners(ctx context.Context) iter.Seq2[toolgroups.GroupOwner, error] {
	return func(yield func(toolgroups.GroupOwner, error) bool) {
		for e, err := range s.store.ReadEntries(ctx, kindOwner, "") {
			if !yield(toolgroups.GroupOwner(e.Key), err) || err != nil {
				return
			}
		}
	}
}
