package persist

import "os"

// DiscardUnused makes Close remove the data file if Open has created it and nothing was
// committed to it. Close then also removes the empty directories that Open has created.
// DiscardUnused is for a command that has failed: the command leaves nothing behind.
func (s *Store) DiscardUnused() { s.discard.Store(true) }

// removeUnused removes the files that DiscardUnused names. The committer must have ended.
// The lock of the file is held, so no other process uses the file. Another Open may wait
// for the lock; it rejects a file that has lost its name meanwhile.
func (s *Store) removeUnused() {
	unused := s.made.file && !s.committed && s.stopReason() == nil
	if unused && s.discard.CompareAndSwap(true, false) && os.Remove(s.db.Path()) == nil {
		s.made.removeDirs()
	}
}
