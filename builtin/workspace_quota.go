package builtin

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

// Quota is how much a workspace may hold. The zero Quota is no room at all.
type Quota struct {
	Bytes int64 // of all files
	Files int64 // and folders, links and whatever else has a name
}

// Usage is how much a workspace holds. A file that has several names counts
// for each, one with holes as long as it is.
type Usage struct {
	Bytes   int64
	Files   int64
	Partial bool // it holds more than this: too much or too deep to count
}

// within says whether u fits into q.
func (u Usage) within(q Quota) bool {
	return !u.Partial && u.Bytes <= q.Bytes && u.Files <= q.Files
}

func (u Usage) plus(more Usage) Usage {
	sum := Usage{u.Bytes + more.Bytes, u.Files + more.Files, u.Partial}
	if sum.Bytes < 0 { // lengths of files with holes know no bounds
		sum.Bytes = math.MaxInt64
	}
	return sum
}

// QuotaManager lets the writes of one workspace happen one after the other, so that
// agents do not exceed its quota together, and remembers how much it held, so
// that not every write has to look at all of it. A process has one for all
// workspaces. The zero Spaces is ready; it is safe for concurrent use.
type QuotaManager struct {
	mu    sync.Mutex // guards known, and each book's holders
	known map[string]*usageCache
}

// WorkspaceQuota is the room of one workspace. A nil Space is no room.
type WorkspaceQuota struct {
	spaces *QuotaManager
	dir    string
	quota  Quota
}

// Of gives the space of a directory. One directory must always come by the
// same name.
func (s *QuotaManager) Of(dir string, q Quota) *WorkspaceQuota { return &WorkspaceQuota{s, dir, q} }

// usageCache is what is known of one directory.
type usageCache struct {
	holders  int           // who uses the book or waits for it
	turn     chan struct{} // holds one token while somebody has the turn, which guards what follows
	usage    Usage
	measured time.Time     // zero: usage is not known
	scanTime time.Duration // to measure it
}

// maxUsageEntries is how many directories are remembered that nobody writes to.
const maxUsageEntries = 1000

// A measured usage stands for this long, and while measuring takes no more
// than a small part of the time. Only programs change files behind our back.
const (
	usageTTL  = time.Second
	freshPart = 20
)

func (b *usageCache) current() bool {
	return !b.measured.IsZero() && time.Since(b.measured) < max(usageTTL, freshPart*b.scanTime)
}

// lock waits for the directory's turn. leave has to be called.
func (s *WorkspaceQuota) lock(ctx context.Context) (b *usageCache, leave func(), err error) {
	b = s.spaces.acquire(s.dir)
	select {
	case b.turn <- struct{}{}:
		return b, func() { <-b.turn; s.spaces.release(s.dir, b) }, nil
	case <-ctx.Done():
		s.spaces.release(s.dir, b)
		return nil, nil, ctx.Err()
	}
}

func (s *QuotaManager) acquire(dir string) *usageCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.known[dir]
	if !ok {
		b = &usageCache{turn: make(chan struct{}, 1)}
		if s.known == nil {
			s.known = map[string]*usageCache{}
		}
		s.known[dir] = b
	}
	b.holders++
	return b
}

// release forgets a book nobody holds when there are many: it is only measured
// again.
func (s *QuotaManager) release(dir string, b *usageCache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.holders--; b.holders == 0 && len(s.known) > maxUsageEntries {
		delete(s.known, dir)
	}
}

// Usage measures the workspace. Call it after a program has run in it: later
// writes go by what it finds. It stops counting when the quota is exceeded.
// The error is permission_denied when a folder of it cannot be read.
func (w *Workspace) Usage(ctx context.Context) (Usage, error) {
	if w.Space == nil {
		return Usage{Partial: true}, nil
	}
	b, leave, err := w.Space.lock(ctx)
	if err != nil {
		return Usage{Partial: true}, err
	}
	defer leave()
	return w.measure(ctx, b)
}

// Quota is how much the workspace may hold.
func (w *Workspace) Quota() Quota {
	if w.Space == nil {
		return Quota{}
	}
	return w.Space.quota
}

// CheckQuota is Usage; the error is quota_exceeded when it is over the quota.
func (w *Workspace) CheckQuota(ctx context.Context) (Usage, error) {
	u, err := w.Usage(ctx)
	if err == nil && !u.within(w.Quota()) {
		err = quotaError(u, Usage{}, w.Quota())
	}
	return u, err
}

// writeWithinQuota has act change the workspace when there is room for what plan says it
// adds. Nobody else writes meanwhile.
func (w *Workspace) writeWithinQuota(ctx context.Context, plan func() (Usage, error), act func() error) error {
	if w.Space == nil {
		return quotaError(Usage{}, Usage{Files: 1}, Quota{})
	}
	b, leave, err := w.Space.lock(ctx)
	if err != nil {
		return err
	}
	defer leave()
	more, err := plan()
	if err == nil {
		err = w.hasQuota(ctx, b, more)
	}
	if err != nil {
		return err
	}
	b.usage = b.usage.plus(more)
	if err = act(); err != nil { // some of it may be there
		b.measured = time.Time{}
	}
	return err
}

// hasQuota says whether there is room for more. What is remembered may be too
// much by now: it refuses nothing.
func (w *Workspace) hasQuota(ctx context.Context, b *usageCache, more Usage) error {
	if more.Bytes <= 0 && more.Files <= 0 { // makes room, also where there is none
		return nil
	}
	if b.current() && b.usage.plus(more).within(w.Quota()) {
		return nil
	}
	u, err := w.measure(ctx, b)
	if err == nil && !u.plus(more).within(w.Quota()) {
		err = quotaError(u, more, w.Quota())
	}
	return err
}

// measure counts what the workspace holds, and takes away what a process that
// was killed left of its writes.
func (w *Workspace) measure(ctx context.Context, b *usageCache) (Usage, error) {
	began, quota := time.Now(), w.Quota()
	var u Usage
	walk := walker{ctx: ctx, root: w.Root, left: quota.Files + 1, strict: true, visit: func(name string, info fs.FileInfo) error {
		if w.isStaleDraft(name, info) && w.Root.Remove(name) == nil {
			return nil
		}
		u = u.plus(Usage{Bytes: size(info), Files: 1})
		if !u.within(quota) {
			u.Partial = true
			return fs.SkipAll
		}
		return nil
	}}
	err := walk.walk(".")
	u.Partial = u.Partial || walk.cut || err != nil
	b.usage, b.measured, b.scanTime = u, time.Now(), time.Since(began)
	if u.Partial {
		b.measured = time.Time{}
	}
	if errors.Is(err, fs.ErrPermission) {
		err = refused(errcode.PermissionDenied, "a folder of the workspace cannot be read, so that nobody knows how much is in it; make it readable again, or remove it")
	}
	return u, err
}

// quotaError refuses what there is no room for.
func quotaError(used, more Usage, q Quota) error {
	atLeast, needed := "", ""
	if used.Partial {
		atLeast = "at least "
	}
	if more != (Usage{}) {
		needed = fmt.Sprintf(", and %d bytes in %d more are needed", more.Bytes, more.Files)
	}
	return errcode.New(errcode.QuotaExceeded,
		"the workspace holds %s%d bytes in %d files and folders; it may hold %d bytes in %d%s; "+
			"write less, replace large files by short ones, or delete some with run_command if you have it",
		atLeast, used.Bytes, used.Files, q.Bytes, q.Files, needed).
		With("ok", false).With("used", used.Bytes).With("limit", q.Bytes).With("needed", more.Bytes).
		With("usedFiles", used.Files).With("limitFiles", q.Files).With("neededFiles", more.Files)
}

// draftAge is after how long a draft is nobody's any more.
const draftAge = 10 * time.Minute

// isStaleDraft says whether a file is a draft of a write that never ended.
func (w *Workspace) isStaleDraft(name string, info fs.FileInfo) bool {
	return !w.ReadOnly && isDraft(name, info) && time.Since(info.ModTime()) > draftAge
}
