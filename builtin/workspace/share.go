package workspace

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
)

// ShareStore keeps what each holder has added to shared directories, also after a restart.
type ShareStore interface {
	// LoadShare returns the usage that was saved last, the zero Usage if there is none.
	LoadShare(ctx context.Context, dir, holder string) (Usage, error)
	SaveShare(ctx context.Context, dir, holder string, u Usage) error
}

// SharedQuota returns the quota of one holder in a directory that others use, too. It limits
// what the holder adds: what was there before, and what others add, does not count. What a
// write removes is deducted from the holder that removes it.
//
// What a program adds is the growth of the directory while it runs, without what is written
// through this package. So programs of different holders take turns; see BeginProgram. Callers
// must always use the same path for a directory. A Dir below it has the same quota.
func (m *QuotaManager) SharedQuota(dir string, q Quota, holder string, store ShareStore) *DirQuota {
	return &DirQuota{manager: m, dir: dir, quota: q, holder: holder, store: store}
}

// isShared reports whether the quota belongs to one of several holders.
func (q *DirQuota) isShared() bool { return q.store != nil }

// programs are the programs that may write to a shared directory. The semaphore of the
// usageCache guards the fields but turn.
type programs struct {
	turn    *fair.Semaphore // held while a program runs
	current *DirQuota       // whose program runs; nil if no program does
	charged *DirQuota       // who is charged for the growth since usage was measured; nil if no holder is
}

// maxShared limits the entries that are counted in a shared directory.
const maxShared = 10_000_000

// The limits of programs that wait for their turn in one directory: in all, and of one holder.
const (
	maxWaitingPrograms         = 256
	maxWaitingProgramsOfHolder = 32
)

// newTurn returns the turn of the programs of a directory.
func newTurn() *fair.Semaphore {
	s := fair.NewSemaphore(1)
	s.LimitQueue(maxWaitingPrograms, maxWaitingProgramsOfHolder, maxWaitingProgramsOfHolder)
	return s
}

// BeginProgram waits until a program may write to the workspace. In a shared directory one
// program runs at a time, and the holders take turns. The caller calls end when the program
// has ended; it measures what the program has added.
//
// Errors: the cause of ctx, and fair.ErrQueueFull.
func (d *Dir) BeginProgram(ctx context.Context) (end func(), err error) {
	if d.ReadOnly || d.Quota == nil {
		return func() {}, nil
	}
	last := context.WithoutCancel(ctx)
	if !d.Quota.isShared() {
		return func() { _, _ = d.DiskUsage(last) }, nil // refreshes the cache for later writes
	}
	q := d.Quota
	c := q.manager.acquire(q.dir)
	release, err := c.turn.Acquire(ctx, fair.Key{Owner: q.holder})
	if err == nil {
		if err = q.startProgram(ctx, c); err != nil {
			release()
		}
	}
	if err != nil {
		q.manager.release(q.dir, c)
		return nil, err
	}
	return func() {
		q.endProgram(last, c)
		release()
		q.manager.release(q.dir, c)
	}, nil
}

// startProgram measures the directory before a program of the holder runs. If that fails, the
// program may not write: shareUsage fails, too.
func (q *DirQuota) startProgram(ctx context.Context, c *usageCache) error {
	_, unlock, err := q.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c.current = q
	_ = q.chargeGrowth(ctx, c)
	return nil
}

// endProgram charges the holder for what its program has added. If the directory cannot be
// measured, the next measurement charges it.
func (q *DirQuota) endProgram(ctx context.Context, c *usageCache) {
	_, unlock, err := q.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	c.current = nil
	_ = q.chargeGrowth(ctx, c)
}

// chargeGrowth measures a shared directory and charges its growth since the last time to the holder
// whose program ran. c's semaphore must be held.
func (q *DirQuota) chargeGrowth(ctx context.Context, c *usageCache) error {
	start := time.Now()
	now, err := q.measureAll(ctx)
	if err == nil && c.charged != nil {
		err = c.charged.addShare(ctx, now.Bytes-c.usage.Bytes, now.Files-c.usage.Files)
	}
	if err != nil {
		return err
	}
	c.usage, c.charged = now, c.current
	c.measured, c.scanTime = time.Now(), time.Since(start)
	return nil
}

// addShare adds to what the holder has added.
func (q *DirQuota) addShare(ctx context.Context, bytes, files int64) error {
	had, err := q.loadShare(ctx)
	if err != nil || bytes == 0 && files == 0 {
		return err
	}
	return q.saveShare(ctx, had.adjusted(bytes, files))
}

func (q *DirQuota) loadShare(ctx context.Context) (Usage, error) {
	return q.store.LoadShare(ctx, q.dir, q.holder)
}

func (q *DirQuota) saveShare(ctx context.Context, u Usage) error {
	return q.store.SaveShare(ctx, q.dir, q.holder, u)
}

// shareUsage returns what the holder has added. If a program may have written, it measures the
// directory. c's semaphore must be held.
func (q *DirQuota) shareUsage(ctx context.Context, c *usageCache) (Usage, error) {
	if c.current != nil || c.charged != nil {
		if err := q.chargeGrowth(ctx, c); err != nil {
			return Usage{Partial: true}, err
		}
	}
	return q.loadShare(ctx)
}

// writeWithinShare is writeWithinQuota in a shared directory. The share is saved before the
// write, so that a crash leaves it too large and never too small. c's semaphore must be held.
func (q *DirQuota) writeWithinShare(ctx context.Context, c *usageCache, more Usage, act func() error) error {
	had, err := q.loadShare(ctx)
	if err != nil {
		return err
	}
	if (more.Bytes > 0 || more.Files > 0) && !had.adjusted(more.Bytes, more.Files).fits(q.quota) {
		if had, err = q.cappedShare(ctx, c); err != nil {
			return err
		}
		if !had.adjusted(more.Bytes, more.Files).fits(q.quota) {
			return shareError(had, more, q.quota)
		}
	}
	if now := had.adjusted(more.Bytes, more.Files); now != had {
		if err := q.saveShare(ctx, now); err != nil {
			return err
		}
	}
	c.usage = c.usage.adjusted(more.Bytes, more.Files)
	if err = act(); err != nil {
		c.usage = c.usage.adjusted(-more.Bytes, -more.Files)
		_ = q.saveShare(ctx, had) // else it stays too large
	}
	return err
}

// cappedShare returns what the holder has added, at most what the directory contains: the
// operator may have emptied it.
func (q *DirQuota) cappedShare(ctx context.Context, c *usageCache) (Usage, error) {
	if !c.isFresh() {
		if err := q.chargeGrowth(ctx, c); err != nil {
			return Usage{}, err
		}
	}
	had, err := q.loadShare(ctx)
	return Usage{Bytes: min(had.Bytes, c.usage.Bytes), Files: min(had.Files, c.usage.Files)}, err
}

// measureAll counts the contents of a shared directory, and removes temporary files that
// killed processes left. The error is permission_denied if a folder cannot be read, and
// quota_exceeded if there is too much to count.
func (q *DirQuota) measureAll(ctx context.Context) (u Usage, err error) {
	root, err := os.OpenRoot(q.dir)
	if err != nil {
		return u, opError(errcode.ToolUnavailable, "the workspace was removed")
	}
	defer root.Close()
	walk := walker{ctx: ctx, root: root, budget: maxShared, strict: true, visit: func(name string, info fs.FileInfo) error {
		if isTempFile(name, info) && time.Since(info.ModTime()) > staleTempAge && root.Remove(name) == nil {
			return nil
		}
		u = u.adjusted(size(info), 1)
		return nil
	}}
	switch err := walk.walk("."); {
	case errors.Is(err, fs.ErrPermission):
		return u, errUnreadable()
	case err != nil:
		return u, err
	case walk.truncated:
		return u, opError(errcode.QuotaExceeded, "the workspace has more files and folders than can be counted; remove some")
	}
	return u, nil
}

// adjusted returns u with more bytes and files, or with less if they are negative. It is never
// less than nothing, and saturates.
func (u Usage) adjusted(bytes, files int64) Usage {
	u.Bytes, u.Files = addClamped(u.Bytes, bytes), addClamped(u.Files, files)
	return u
}

func addClamped(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return max(0, a+b)
}

// shareError returns the error for a write over the share of a holder.
func shareError(used, more Usage, q Quota) error {
	return errcode.New(errcode.QuotaExceeded,
		"you have added %d bytes in %d files and folders to this workspace; your quota in it is %d bytes in %d, and this write needs %d bytes in %d more; "+
			"write less, replace large files by short ones, or delete some with run_command if you have it",
		used.Bytes, used.Files, q.Bytes, q.Files, more.Bytes, more.Files).
		With("ok", false).With("used", used.Bytes).With("limit", q.Bytes).With("needed", more.Bytes).
		With("usedFiles", used.Files).With("limitFiles", q.Files).With("neededFiles", more.Files)
}
