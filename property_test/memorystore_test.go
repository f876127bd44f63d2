package property_test

import store "github.com/rolecall/rolecall/journal/memory"

// memoryStore is the store of tests that need no disk.
type memoryStore = store.Store

func newMemoryStore() *memoryStore { return store.New() }
