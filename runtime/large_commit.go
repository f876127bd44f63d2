package runtime

import (
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/journal"
)

// Commits with large records delay all others, because the store writes one after the
// other.
const (
	largeCommit     = 256 << 10 // bytes of records from which a commit is large
	maxLargeCommits = 2         // that wait for the disk at once
)

// acquireLargeCommit waits until a commit on behalf of by may write that many bytes of records.
// The places are shared fairly among the owners of calls, so that the results of one owner
// do not fill the queue of the store. It returns at once for a commit that is not large.
// The caller must call release after the commit.
func (rt *Runtime) acquireLargeCommit(by identity.Principal, bytes int) (release func()) {
	if bytes < largeCommit {
		return func() {}
	}
	release, err := rt.largeCommits.Acquire(rt.uncancelled, fair.Key{Owner: rt.callOwner(by), Member: by.String()})
	if err != nil { // never: the context does not end, and the queue has no limit
		return func() {}
	}
	return release
}

// batchSize returns the size of the records that a batch writes.
func batchSize(b *journal.Batch) (bytes int) {
	for _, r := range b.Put {
		bytes += len(r.Value)
	}
	return bytes
}

// resultBytes returns the size of the results of calls.
func resultBytes(calls []*gate.Admission) (bytes int) {
	for _, c := range calls {
		bytes += c.Result.TextBytes() + c.Result.DataBytes()
	}
	return bytes
}
