package property_test

import store "github.com/rolecall/rolecall/journal/memory"

// memory is the store of worlds that need no disk.
type memory = store.Store

func newMemory() *memory { return store.New() }
