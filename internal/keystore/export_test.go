package keystore

import "time"

// SetNow replaces the clock of a store.
func SetNow(s *Store, now func() time.Time) { s.now = now }
