package runtime

import (
	"cmp"
	"slices"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// schedule queues a delayed message of a tracked task for delivery when it is
// due.
func (t *tracker) schedule(m journal.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[m.Task]
	if run == nil || run.ended {
		return
	}
	if _, ok := t.org.Agent(identity.AgentID(m.To)); !ok { // terminated since the send; its messages are purged then
		return
	}
	at, known := slices.BinarySearchFunc(run.delayed, m, byDue)
	if known {
		return
	}
	run.delayed = slices.Insert(run.delayed, at, m)
	t.setTimer(run)
}

// byDue orders messages by due time, then by sequence number.
func byDue(a, b journal.Message) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
}

// setTimer sets the timer to the first delayed message. It must be called with
// mu held.
func (t *tracker) setTimer(run *taskRun) {
	run.stopTimer()
	if len(run.delayed) > 0 {
		run.timer = time.AfterFunc(max(0, run.delayed[0].Due.Sub(t.now())), func() { t.deliver(run) })
	}
}

// stopTimer must be called with tracker.mu held.
func (run *taskRun) stopTimer() {
	if run.timer != nil {
		run.timer.Stop()
	}
}

// takeDue removes the messages that are due from the queue, acquires the task
// and begins work for their delivery. It returns false if the task has ended or
// the runtime is closing.
func (t *tracker) takeDue(run *taskRun) ([]journal.Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.ended || t.ctx.Err() != nil {
		return nil, false
	}
	n, now := 0, t.now()
	for n < len(run.delayed) && !run.delayed[n].Due.After(now) {
		n++
	}
	due := slices.Clone(run.delayed[:n])
	run.delayed = slices.Delete(run.delayed, 0, n)
	t.setTimer(run)
	run.refs++
	t.work.Add(1)
	return due, true
}

// dropDelayed drops the delayed messages of terminated agents.
func (t *tracker) dropDelayed(id identity.TaskID, gone map[identity.AgentID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.delayed = slices.DeleteFunc(run.delayed, func(m journal.Message) bool { return gone[identity.AgentID(m.To)] })
		t.setTimer(run)
	}
}
