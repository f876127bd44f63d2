package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Quota limits the contents of a workspace. The zero Quota allows nothing.
type Quota struct {
	Bytes int64 `json:"bytes"` // total length of all files
	Files int64 `json:"files"` // number of files, folders, links and other entries
}

// Usage is the size of the contents of a workspace. A file with several hard
// links counts once for each, a sparse file with its full length.
type Usage struct {
	Bytes   int64
	Files   int64
	Partial bool // incomplete: there was too much to count, or it was nested too deep
}

// fits reports whether u is within q.
func (u Usage) fits(q Quota) bool {
	return !u.Partial && u.Bytes <= q.Bytes && u.Files <= q.Files
}

// plus returns the sum of two usages; it saturates instead of overflowing.
func (u Usage) plus(more Usage) Usage {
	sum := Usage{u.Bytes + more.Bytes, u.Files + more.Files, u.Partial}
	if sum.Bytes < 0 { // the sum of lengths of sparse files can overflow
		sum.Bytes = math.MaxInt64
	}
	return sum
}

// QuotaManager serializes the writes to each workspace, so that concurrent agents
// cannot exceed its quota together. It caches the measured usage, so that not
// every write has to scan the workspace. A process needs one for all
// workspaces. The zero QuotaManager is ready to use. It is safe for concurrent
// use.
type QuotaManager struct {
	mu     sync.Mutex // guards caches, and holders of each cache
	caches map[string]*usageCache
}

// DirQuota is the quota of one workspace. A nil DirQuota allows no
// write.
type DirQuota struct {
	manager *QuotaManager
	dir     string
	quota   Quota

	holder string     // of SharedQuota
	store  ShareStore // of SharedQuota; nil if the quota is for the whole directory
}

// DirQuota returns the quota of a directory. Callers must always use the same path for
// a directory, since the usage is cached by path.
func (m *QuotaManager) DirQuota(dir string, q Quota) *DirQuota {
	return &DirQuota{manager: m, dir: dir, quota: q}
}

// usageCache is the cached usage of one directory.
type usageCache struct {
	holders  int           // goroutines that hold or wait for sem
	sem      chan struct{} // binary semaphore; guards the fields below
	usage    Usage
	measured time.Time     // zero if usage is unknown
	scanTime time.Duration // how long measuring took
	programs               // of a shared directory
}

// maxUsageEntries is the number of unused directories whose usage stays cached.
const maxUsageEntries = 1000

// A cached usage is valid for usageTTL, or scanTimeFactor times the time of
// measuring it if that is longer. Only programs change files without updating
// the cache.
const (
	usageTTL       = time.Second
	scanTimeFactor = 20
)

// isFresh reports whether the cached usage is recent enough to rely on.
func (c *usageCache) isFresh() bool {
	return !c.measured.IsZero() && time.Since(c.measured) < max(usageTTL, scanTimeFactor*c.scanTime)
}

// lock waits for exclusive access to the directory. The caller must call unlock.
func (q *DirQuota) lock(ctx context.Context) (c *usageCache, unlock func(), err error) {
	c = q.manager.acquire(q.dir)
	select {
	case c.sem <- struct{}{}:
		return c, func() { <-c.sem; q.manager.release(q.dir, c) }, nil
	case <-ctx.Done():
		q.manager.release(q.dir, c)
		return nil, nil, ctx.Err()
	}
}

// acquire returns the cache of a directory and counts its caller as a holder.
func (m *QuotaManager) acquire(dir string) *usageCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.caches[dir]
	if !ok {
		c = &usageCache{sem: make(chan struct{}, 1), programs: programs{turn: newTurn()}}
		if m.caches == nil {
			m.caches = map[string]*usageCache{}
		}
		m.caches[dir] = c
	}
	c.holders++
	return c
}

// release undoes acquire. If there are many caches it deletes an unused one; the
// usage is then measured again.
func (m *QuotaManager) release(dir string, c *usageCache) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.holders--; c.holders == 0 && len(m.caches) > maxUsageEntries {
		delete(m.caches, dir)
	}
}

// DiskUsage measures the workspace and updates the cached usage. With a SharedQuota it is
// what the holder has added. Call it after a program has run in it. It stops counting when the quota is exceeded. The error
// is permission_denied if a folder cannot be read.
func (d *Dir) DiskUsage(ctx context.Context) (Usage, error) {
	if d.Quota == nil {
		return Usage{Partial: true}, nil
	}
	c, unlock, err := d.Quota.lock(ctx)
	if err != nil {
		return Usage{Partial: true}, err
	}
	defer unlock()
	if d.Quota.isShared() {
		return d.Quota.shareUsage(ctx, c)
	}
	return d.measure(ctx, c)
}

// QuotaLimit returns the quota of the workspace, the zero Quota if Quota is nil.
func (d *Dir) QuotaLimit() Quota {
	if d.Quota == nil {
		return Quota{}
	}
	return d.Quota.quota
}

// CheckQuota is like DiskUsage, but the error is quota_exceeded if the workspace
// exceeds its quota.
func (d *Dir) CheckQuota(ctx context.Context) (Usage, error) {
	u, err := d.DiskUsage(ctx)
	if err == nil && !u.fits(d.QuotaLimit()) {
		if err = quotaError(u, Usage{}, d.QuotaLimit()); d.Quota != nil && d.Quota.isShared() {
			err = shareError(u, Usage{}, d.QuotaLimit())
		}
	}
	return u, err
}

// writeWithinQuota calls act if the quota allows the additional usage that plan
// returns. It excludes other writers meanwhile.
func (d *Dir) writeWithinQuota(ctx context.Context, plan func() (Usage, error), act func() error) error {
	if d.Quota == nil {
		return quotaError(Usage{}, Usage{Files: 1}, Quota{})
	}
	c, unlock, err := d.Quota.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	more, err := plan()
	if err == nil && d.Quota.isShared() {
		return d.Quota.writeWithinShare(ctx, c, more, act)
	}
	if err == nil {
		err = d.checkQuotaFor(ctx, c, more)
	}
	if err != nil {
		return err
	}
	c.usage = c.usage.plus(more)
	if err = act(); err != nil { // it may have written a part
		c.measured = time.Time{}
	}
	return err
}

// checkQuotaFor returns quota_exceeded if the quota does not allow more. It measures
// the workspace before it rejects, since the cached usage may be outdated.
func (d *Dir) checkQuotaFor(ctx context.Context, c *usageCache, more Usage) error {
	if more.Bytes <= 0 && more.Files <= 0 { // it reduces the usage, which is allowed even over the quota
		return nil
	}
	if c.isFresh() && c.usage.plus(more).fits(d.QuotaLimit()) {
		return nil
	}
	u, err := d.measure(ctx, c)
	if err == nil && !u.plus(more).fits(d.QuotaLimit()) {
		err = quotaError(u, more, d.QuotaLimit())
	}
	return err
}

// measure counts the contents of the workspace and updates c, whose sem must be
// held. It also removes temporary files that killed processes left.
func (d *Dir) measure(ctx context.Context, c *usageCache) (Usage, error) {
	start, quota := time.Now(), d.QuotaLimit()
	var u Usage
	walk := walker{ctx: ctx, root: d.Root, budget: quota.Files + 1, strict: true, visit: func(name string, info fs.FileInfo) error {
		if d.isStaleTemp(name, info) && d.Root.Remove(name) == nil {
			return nil
		}
		u = u.plus(Usage{Bytes: size(info), Files: 1})
		if !u.fits(quota) {
			u.Partial = true
			return fs.SkipAll
		}
		return nil
	}}
	err := walk.walk(".")
	u.Partial = u.Partial || walk.truncated || err != nil
	c.usage, c.measured, c.scanTime = u, time.Now(), time.Since(start)
	if u.Partial {
		c.measured = time.Time{}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = errUnreadable()
	}
	return u, err
}

// errUnreadable is the error for a workspace that cannot be measured.
func errUnreadable() error {
	return opError(errcode.PermissionDenied, "a folder of the workspace cannot be read, so its size is unknown; make it readable, or remove it")
}

// quotaError returns the error for a write of more bytes and files over the quota.
func quotaError(used, more Usage, q Quota) error {
	atLeast, needed := "", ""
	if used.Partial {
		atLeast = "at least "
	}
	if more != (Usage{}) {
		needed = fmt.Sprintf(", and this write needs %d bytes in %d more", more.Bytes, more.Files)
	}
	return errcode.New(errcode.QuotaExceeded,
		"the workspace has %s%d bytes in %d files and folders; its quota is %d bytes in %d%s; "+
			"write less, replace large files by short ones, or delete some with run_command if you have it",
		atLeast, used.Bytes, used.Files, q.Bytes, q.Files, needed).
		With("ok", false).With("used", used.Bytes).With("limit", q.Bytes).With("needed", more.Bytes).
		With("usedFiles", used.Files).With("limitFiles", q.Files).With("neededFiles", more.Files)
}

// staleTempAge is the age from which a temporary file counts as left behind.
const staleTempAge = 10 * time.Minute

// isStaleTemp reports whether a file is left from a write that never finished.
func (d *Dir) isStaleTemp(name string, info fs.FileInfo) bool {
	return !d.ReadOnly && isTempFile(name, info) && time.Since(info.ModTime()) > staleTempAge
}
