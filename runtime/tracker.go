package runtime

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// tracker tracks what this process is working on: the tasks it has taken up,
// their agents in memory and their delayed messages. It is kept in memory only;
// ResumeTask builds it again from the store. All methods are safe for concurrent
// use, and none does I/O.
type tracker struct {
	org     *org.Org
	ctx     context.Context    // once it has ended no work begins
	now     func() time.Time   // current time
	deliver func(run *taskRun) // called, on a goroutine of its own, when a delayed message of the task is due

	hasRequests func(id identity.TaskID, beside identity.AgentID) bool // reports whether calls of a task wait for people, beside those of an agent

	work sync.WaitGroup // agents, deliveries and external calls; Add only with mu held and ctx not ended

	// mu guards the fields below, the fields of each taskRun except id and done,
	// and the fields recovered, newMessages and cancel of each actor. Methods of
	// org may be called with mu held.
	mu     sync.Mutex
	active map[identity.AgentID]*actor
	driven map[identity.AgentID]*driverMail // agents with a Driver
	tasks  map[identity.TaskID]*taskRun
	ended  map[identity.TaskID]*taskRun    // tasks that have ended, while agents of them stop; not in tasks
	limits map[identity.TaskID]*time.Timer // of unfinished tasks that are not in tasks; each fires when the task's time is over
	cached int                             // idle agents in the caches of all tasks
}

// taskRun is the state of a task that this process is working on.
type taskRun struct {
	id          identity.TaskID
	record      *org.Task        // as stored; nil if it must be read from the store
	spent       taskUsage        // by the task's models
	turns       int              // that its agents have ended
	questions   int              // questions of its tools
	refs        int              // active agents, deliveries in progress, and who records the end
	delayed     []delayedMessage // sorted by byDelivery
	scheduled   map[uint64]bool  // the sequence numbers of delayed
	timer       *time.Timer      // fires when the first of delayed is due
	deadline    *time.Timer      // fires when the task's time is over; nil for no limit
	ending      *taskEnding      // set while the first agent ends the task
	open        bool             // it does not end when it becomes idle
	driven      bool             // a Driver of the embedding program answers for its first agent, in place of a model
	ended       bool
	resting     map[identity.AgentID]bool // its agents that are paused (Org.PauseReason) and have work; no goroutine runs them
	paused      bool                      // an error has paused the task (pauseTask): its agents stop before their next step
	newMessages bool                      // a message was sent since the task became idle
	done        chan struct{}             // closed when the run is no longer in tracker.tasks
	stopped     chan struct{}             // closed when no agent of the ended task is active; nil unless the run is in tracker.ended

	firstLogged map[identity.AgentID]bool       // tool-gated agents whose first request was logged
	cached      map[identity.AgentID]*idleAgent // some of its idle agents
}

func newTracker(ctx context.Context, o *org.Org, now func() time.Time, deliver func(*taskRun)) *tracker {
	return &tracker{
		org: o, ctx: ctx, now: now, deliver: deliver, hasRequests: func(identity.TaskID, identity.AgentID) bool { return false },
		active: map[identity.AgentID]*actor{},
		driven: map[identity.AgentID]*driverMail{},
		tasks:  map[identity.TaskID]*taskRun{},
		ended:  map[identity.TaskID]*taskRun{},
		limits: map[identity.TaskID]*time.Timer{},
	}
}

// beginWork makes wait wait until work.Done is called. It fails with the cause
// if ctx has ended.
func (t *tracker) beginWork() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cause := context.Cause(t.ctx); cause != nil {
		return cause
	}
	t.work.Add(1)
	return nil
}

// wait stops all timers and waits for all work. ctx must have ended.
func (t *tracker) wait() {
	t.mu.Lock()
	for _, run := range t.tasks {
		run.stopTimers()
	}
	for _, timer := range t.limits {
		timer.Stop()
	}
	t.mu.Unlock()
	t.work.Wait()
}

// figures returns the current load, without the number of commits.
func (t *tracker) figures() LoadFigures {
	t.mu.Lock()
	defer t.mu.Unlock()
	var l LoadFigures
	for _, run := range t.tasks {
		l.Delayed += len(run.delayed)
		if run.status() == org.Waiting {
			l.WaitingTasks++
		} else {
			l.RunningTasks++
		}
	}
	for _, a := range t.active {
		switch a.status {
		case org.AgentThinking:
			l.Thinking++
		case org.AgentCalling:
			l.Calling++
		default:
			l.Starting++
		}
	}
	return l
}

// track starts tracking a task and keeps it from ending until release. It
// returns nil if the task is tracked already.
func (t *tracker) track(id identity.TaskID) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[id] != nil {
		return nil
	}
	t.dropLimit(id)
	run := &taskRun{id: id, refs: 1, done: make(chan struct{})}
	t.tasks[id] = run
	return run
}

// setOpen says whether a task is open, and whether it is driven. Such a task does not end when it
// becomes idle.
func (t *tracker) setOpen(id identity.TaskID, open, driven bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.open, run.driven = open || driven, driven
	}
}

// untrack stops tracking a task that could not be started or resumed. Goroutines that wait for
// it read the stored record.
func (t *tracker) untrack(run *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[run.id] == run {
		run.record = nil
		t.drop(run)
	}
}

// setDeadline calls cancel on a goroutine of its own after d. It does not call cancel if the task
// has ended by then, if this process has taken it up, or if the runtime is closing.
func (t *tracker) setDeadline(id identity.TaskID, d time.Duration, cancel func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	timer := time.AfterFunc(d, func() {
		if t.beginWork() == nil {
			defer t.work.Done()
			cancel()
		}
	})
	if run := t.tasks[id]; run != nil {
		if run.deadline != nil {
			run.deadline.Stop()
		}
		run.deadline = timer
		return
	}
	t.dropLimit(id)
	t.limits[id] = timer
}

// dropLimit stops the timer of a task that is not tracked. It must be called with mu held.
func (t *tracker) dropLimit(id identity.TaskID) {
	if timer := t.limits[id]; timer != nil {
		timer.Stop()
		delete(t.limits, id)
	}
}

// drop stops tracking a task and wakes goroutines that wait for it. It must be called with mu held.
func (t *tracker) drop(run *taskRun) {
	run.stopTimers()
	t.cached -= len(run.cached)
	delete(t.tasks, run.id)
	close(run.done)
}

// run returns a tracked task, or nil.
func (t *tracker) run(id identity.TaskID) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks[id]
}

// record returns the record of a task, or nil if it must be read from the
// store.
func (t *tracker) record(run *taskRun) *org.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return run.record
}

// cacheNew caches the record and the top agent of a new task, which runs next. Its models have
// used nothing.
func (t *tracker) cacheNew(task *org.Task, top org.Agent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tasks[task.ID].record, t.tasks[task.ID].spent.loaded = task, true
	t.cacheAgent(&idleAgent{top, &state{}})
}

// isTracked reports whether this process works on a task, or an agent of it is still active after
// its end.
func (t *tracker) isTracked(id identity.TaskID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks[id] != nil || t.ended[id] != nil
}

// acquire prevents a task from ending until release is called. It returns nil
// if the task is not tracked or has ended.
func (t *tracker) acquire(id identity.TaskID) *taskRun {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[id]
	if run == nil || run.ended {
		return nil
	}
	run.refs++
	return run
}

// release undoes an acquire, a track or a takeDue. It returns the task if it has become idle. Then
// no agent is active, no delivery is in progress and no delayed message is left. No call waits for
// people, and no agent rests in a pause. A task that is kept open never becomes idle. An idle task
// is marked as ended and acquired for the caller, who must record its end or reopen it, and
// release it afterwards. A retry waits for that release.
func (t *tracker) release(run *taskRun) (idle *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run.refs--
	if t.tasks[run.id] != run { // a retry may have begun another one
		t.releaseEnded(run)
		return nil
	}
	run.signalQuiet()
	t.signalStall(run)
	if run.paused && run.refs == 0 && !run.ended {
		t.drop(run) // its last agent has stopped
		return nil
	}
	if run.refs != 0 || run.open || len(run.delayed) > 0 || run.ended || t.ctx.Err() != nil || t.waitsForPeople(run) {
		return nil
	}
	run.ended, run.newMessages, run.refs = true, false, 1
	return run
}

// waitsForPeople reports whether a task has work that waits for people: to approve a call, or to end a
// pause. A driver repeats its own calls, so they do not count. It must be called with mu held.
func (t *tracker) waitsForPeople(run *taskRun) bool {
	var driven identity.AgentID
	if run.driven {
		driven = org.TopAgentID(run.id)
	}
	return len(run.resting) > 0 || t.hasRequests(run.id, driven)
}

// releaseEnded forgets a task that has ended when none of its agents is active any more. It must be
// called with mu held.
func (t *tracker) releaseEnded(run *taskRun) {
	if run.refs == 0 && t.ended[run.id] == run {
		delete(t.ended, run.id)
		close(run.stopped)
	}
}

// stoppedOf returns a channel that is closed when no agent of a task that has ended is active. It
// returns nil if no such agent is active now.
func (t *tracker) stoppedOf(id identity.TaskID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.ended[id]; run != nil {
		return run.stopped
	}
	return nil
}

// reopen undoes the end of a task that had become idle, unless its end was recorded since.
func (t *tracker) reopen(run *taskRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tasks[run.id] == run {
		run.ended = false
	}
}

// markNewMessages notes that a message was sent in a task. Calls are in commit
// order.
func (t *tracker) markNewMessages(id identity.TaskID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.newMessages = true
	}
}

// hasNewMessages reports whether a message was sent since the task became idle.
func (t *tracker) hasNewMessages(run *taskRun) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return run.newMessages
}

// end stops the work on a task and wakes goroutines that wait for it. run was tracked when the end was
// recorded; nil if the task was not tracked. A run that a retry has begun since goes on. ended is the
// record of the end if the caller's commit wrote it, else nil.
func (t *tracker) end(id identity.TaskID, run *taskRun, ended *org.Task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropLimit(id)
	if run == nil || t.tasks[id] != run {
		return
	}
	run.ended = true
	run.record = nil
	if ended != nil && ended.Status.Ended() {
		run.record = ended
	}
	t.drop(run)
	if run.refs == 0 { // none of its agents is active
		return
	}
	run.stopped = make(chan struct{})
	t.ended[id] = run
	for _, a := range t.active {
		if a.task == id && a.cancel != nil {
			a.cancel(errTerminated)
		}
	}
}
