package runtime

import (
	"time"

	"github.com/rolecall/rolecall/journal"
)

// LoadFigures is a snapshot of the work in progress.
type LoadFigures struct {
	RunningTasks int // that this process works on
	WaitingTasks int // of which only delayed messages are left
	PausedTasks  int // of the organization, whether or not this process works on them; at most maxPausedCount
	Starting     int // agents in a turn, see org.AgentStatus
	Thinking     int
	Calling      int
	Delayed      int    // delayed messages of those tasks
	Commits      uint64 // since the Runtime was created

	DiskFree, DiskReserve int64 // bytes; both 0 if the free space of the disk is unknown
	Recorded              int64 // bytes that the organization has recorded

	WaitingApprovals int           // calls that wait for people
	OldestApproval   time.Duration // how long the first of them has waited
}

// maxPausedCount bounds the paused tasks that CurrentLoad counts.
const maxPausedCount = 1000

// CurrentLoad returns the current load. It reads no records.
func (rt *Runtime) CurrentLoad() LoadFigures {
	l := rt.tracker.figures()
	l.PausedTasks = len(rt.Org().PausedTasks(maxPausedCount))
	l.Commits = rt.commits.Load()
	l.DiskFree, l.DiskReserve = rt.disk.figures()
	l.Recorded = rt.recorded.bytes(keyRecorded)
	waiting, oldest := rt.approvals.figures()
	if l.WaitingApprovals = waiting; waiting > 0 {
		l.OldestApproval = max(0, rt.now().Sub(oldest))
	}
	return l
}

// observe counts a commit and passes its events to Config.Observe.
func (rt *Runtime) observe(events []journal.Event) {
	rt.commits.Add(1)
	if rt.config.Observe == nil {
		return
	}
	for _, e := range events {
		rt.config.Observe(e)
	}
}
