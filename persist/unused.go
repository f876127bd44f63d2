package persist

import "os"

// DiscardUnused makes Close remove the data file if Open has created it and nothing was
// committed to it, and then the directories that Open has created and that are empty. It
// is for a command that has failed: it leaves nothing behind.
func (s *Store) DiscardUnused() { s.discard.Store(true) }

// removeUnused removes what DiscardUnused says. The committer must have ended. The lock of
// the file is held, so no other process uses it; Open rejects a file that has lost its name
// while it waited for the lock.
func (s *Store) removeUnused() {
	unused := s.made.file && !s.committed && s.stopped() == nil
	if unused && s.discard.CompareAndSwap(true, false) && os.Remove(s.db.Path()) == nil {
		s.made.removeDirs()
	}
}
