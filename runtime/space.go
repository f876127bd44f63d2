package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// The default disk reserve is 256 MiB, or a quarter of a disk under 1 GiB. The outcome of
// a call is small. But the commit that writes it may copy large values that are stored
// next to it.
const (
	maxDefaultReserve   = 256 << 20
	defaultReserveShare = 4
)

const (
	spaceMaxAge  = 5 * time.Millisecond // how old a figure of the free space may be
	spacePoll    = time.Second          // how often resting agents look at the disk
	outcomeBytes = maxResult            // held for an outcome, before its size is known
)

// diskGuard refuses new work while the free space of the disk is below its reserve, or the
// organization has recorded as much as it may. So the outcomes of what runs still fit. All methods are safe for concurrent use.
type diskGuard struct {
	disk     journal.DiskStore // nil if the store is not on a disk
	recorded *recordedBytes
	limits   func() StorageLimits // the active limits
	log      *slog.Logger

	mu          sync.Mutex // guards the fields below
	spaceReadAt time.Time  // when space and err were read
	space       journal.DiskSpace
	err         error
	held        int64 // bytes that running work may still record
	released    int64 // bytes that were released since spaceReadAt
	low         bool  // the last request was refused
	warned      bool  // that the free space is not reported
}

func newDiskGuard(store journal.Store, recorded *recordedBytes, limits func() StorageLimits, log *slog.Logger) *diskGuard {
	disk, _ := store.(journal.DiskStore)
	return &diskGuard{disk: disk, recorded: recorded, limits: limits, log: log}
}

// tryReplace replaces the bytes that a holder has, in one step. If bytes do not fit, the former bytes
// stay held. Errors: storage_low.
func (g *diskGuard) tryReplace(former, bytes int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.checkRoom(bytes - former)
	g.logChange(err)
	if err == nil {
		g.replace(former, bytes)
	}
	return err
}

// release releases bytes that are held.
func (g *diskGuard) release(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.replace(bytes, 0)
}

// replace changes what is held. What is released may have been recorded since the
// space was read. It must be called with mu held.
func (g *diskGuard) replace(former, bytes int64) {
	g.held += bytes - former
	g.released += max(0, former-bytes)
}

// check returns an error if no work may begin now. Errors: storage_low.
func (g *diskGuard) check() error { return g.tryReplace(0, 0) }

// checkRoom returns an error unless there is room for bytes in the limit of the
// organization, and on the disk above the reserve. It must be called with mu held.
func (g *diskGuard) checkRoom(bytes int64) error {
	if used, limit := g.recorded.bytes(keyRecorded), g.limits().Recorded; !fits(used, g.held+bytes, limit) {
		cause := fmt.Errorf("%d bytes are recorded, %d are held by calls, %d are needed, and the limit is %d", used, g.held, bytes, limit)
		return errcode.Wrap(errcode.StorageLow, cause, "the organization has recorded all bytes that it may, so no new work begins; let the operator raise limits.recorded")
	}
	if g.disk == nil {
		return nil
	}
	g.refreshSpace()
	switch {
	case errors.Is(g.err, errors.ErrUnsupported):
		return nil
	case g.err != nil:
		return errcode.Wrap(errcode.StorageLow, g.err, "the free space of the disk cannot be read, so no new work begins; the log has the cause")
	}
	reserve := g.reserveBytes()
	if free := signedBytes(g.space.Free); free-g.held-g.released-bytes < reserve {
		cause := fmt.Errorf("%d bytes are free, %d are held by calls, %d are needed, and the reserve is %d", free, g.held, bytes, reserve)
		return errcode.Wrap(errcode.StorageLow, cause, "the disk has less free space than its reserve, so no new work begins; free some space on the disk of the data directory, or try again later")
	}
	return nil
}

// refreshSpace reads the space of the disk, unless it was read just before. It must be called
// with mu held.
func (g *diskGuard) refreshSpace() {
	now := time.Now()
	if !g.spaceReadAt.IsZero() && now.Sub(g.spaceReadAt) < spaceMaxAge {
		return
	}
	g.space, g.err = g.disk.DiskSpace()
	g.spaceReadAt, g.released = now, 0
	if errors.Is(g.err, errors.ErrUnsupported) && !g.warned {
		g.warned = true
		g.log.Warn("there is no disk reserve: the free space of the disk is not reported", "error", g.err)
	}
}

// reserveBytes returns the reserve. It must be called with mu held, after refreshSpace.
func (g *diskGuard) reserveBytes() int64 {
	if configured := g.limits().DiskReserve; configured > 0 {
		return configured
	}
	return min(maxDefaultReserve, signedBytes(g.space.Total)/defaultReserveShare)
}

// logChange logs when work begins to be refused, and when it is accepted again. It must
// be called with mu held.
func (g *diskGuard) logChange(err error) {
	switch {
	case err != nil && !g.low:
		g.log.Warn("new work is refused; agents wait until there is room", "error", err)
	case err == nil && g.low:
		g.log.Warn("there is room again; agents continue")
	}
	g.low = err != nil
}

// figures returns the free space and the reserve. Both are 0 if they are unknown.
func (g *diskGuard) figures() (free, reserve int64) {
	if g.disk == nil {
		return 0, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refreshSpace(); g.err != nil {
		return 0, 0
	}
	return signedBytes(g.space.Free), g.reserveBytes()
}

// freeForPrograms returns the free space that nothing holds, and the reserve. If the free space
// cannot be read, it is 0.
func (g *diskGuard) freeForPrograms() workspace.DiskSpace {
	if g.disk == nil {
		return workspace.DiskSpace{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refreshSpace()
	switch {
	case errors.Is(g.err, errors.ErrUnsupported):
		return workspace.DiskSpace{}
	case g.err != nil:
		return workspace.DiskSpace{Reserve: 1}
	}
	return workspace.DiskSpace{Free: signedBytes(g.space.Free) - g.held - g.released, Reserve: g.reserveBytes()}
}

// signedBytes converts a size, which no disk has beyond int64.
func signedBytes(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// How much space what is recorded may take, as a multiple of its size. The data file
// copies pages while it grows, so each copy counts twice.
const (
	argsFactor   = 4 // in the answer and the decision, and what the tool stores
	resultFactor = 4 // the artifact, or the event, beside other large values
	callsFactor  = 2 // an answer with calls: one event
	answerFactor = 6 // any other answer: its event, a message and an inbox
	inboxFactor  = 2 // a message that is read: one event
	taskFactor   = 8 // the text of a task: two events, an inbox and the task
	endFactor    = 4 // the result of a task: one event and the task
	sendFactor   = 4 // a message: one event and an inbox
)

// callBytes returns how much space calls may take. Each has room for a result that is not
// large.
func callBytes(requests []gate.CallRequest) (bytes int64) {
	for _, r := range requests {
		bytes += outcomeBytes + argsFactor*int64(len(r.Args))
	}
	return bytes
}

// maxEscape is how many bytes of JSON one byte of text takes at most.
const maxEscape = 6

// answerBytes returns how much space an answer may take.
func answerBytes(answer *model.Answer) int64 {
	size := len(answer.Value) + len(answer.Reasoning) + maxEscape*len(answer.Text)
	for _, line := range answer.Log {
		size += maxEscape * len(line)
	}
	for _, c := range answer.Calls {
		size += len(c.Args)
	}
	if answerFactor*size <= outcomeBytes {
		return outcomeBytes
	}
	if text, err := json.Marshal(answer); err == nil {
		size = len(text)
	}
	if answer.Finish == model.FinishToolCalls {
		return outcomeBytes + callsFactor*int64(size)
	}
	return outcomeBytes + answerFactor*int64(size)
}

// diskHold is what one piece of work holds: an agent's step, or a call. The zero diskHold
// holds nothing. It belongs to one goroutine.
type diskHold struct {
	guard *diskGuard
	bytes int64
}

// set changes the hold to bytes. A hold that does not grow always fits, since what runs
// must be recorded. If bytes do not fit, the hold stays as it was. Errors: storage_low.
func (h *diskHold) set(bytes int64) error {
	if 0 < bytes && bytes <= h.bytes {
		h.guard.release(h.bytes - bytes)
		h.bytes = bytes
		return nil
	}
	err := h.guard.tryReplace(h.bytes, bytes)
	if err == nil {
		h.bytes = bytes
	}
	return err
}

// grow holds bytes more. Errors: the errors of set.
func (h *diskHold) grow(bytes int64) error { return h.set(h.bytes + bytes) }

// wait blocks until set succeeds, or ctx ends. Its error is the cause of the end.
func (h *diskHold) wait(ctx context.Context, bytes int64) error {
	for {
		if err := h.set(bytes); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(spacePoll):
		}
	}
}

// end ends the hold, if there is one.
func (h *diskHold) end() {
	if h.bytes > 0 {
		h.guard.release(h.bytes)
		h.bytes = 0
	}
}

// CheckStorage returns an error with the code storage_low while no new work begins,
// because the free space of the disk is below its reserve.
func (rt *Runtime) CheckStorage() error { return rt.disk.check() }
