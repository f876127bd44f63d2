package runtime

import (
	"cmp"
	"slices"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// delayedMessage is a message and when this process delivers it.
type delayedMessage struct {
	journal.Message
	at time.Time // on the monotonic clock, so that a step of the wall clock changes no delay
}

// schedule queues the delayed messages in a list for delivery when they are due. It ignores
// messages of tasks that are not tracked.
func (t *tracker) schedule(list []journal.Message) {
	if !slices.ContainsFunc(list, func(m journal.Message) bool { return !m.Due.IsZero() }) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wall, monotonic := t.now(), time.Now() // once, so that messages with one due time keep their order
	for _, m := range list {
		if !m.Due.IsZero() {
			t.scheduleOne(delayedMessage{m, monotonic.Add(remainingDelay(m, wall))})
		}
	}
}

// remainingDelay returns how long a message still has to wait. It is never longer than
// the delay of the message when it was sent. The wall clock may have been set back
// since another process sent the message.
func remainingDelay(m journal.Message, now time.Time) time.Duration {
	return max(0, min(m.Due.Sub(now), m.Due.Sub(m.CreatedAt)))
}

// scheduleOne must be called with mu held.
func (t *tracker) scheduleOne(m delayedMessage) {
	run := t.tasks[m.Task]
	if run == nil || run.ended || run.scheduled[m.Seq] {
		return
	}
	if _, ok := t.org.AgentByID(identity.AgentID(m.To)); !ok { // terminated since the send; its messages are purged then
		return
	}
	if run.scheduled == nil {
		run.scheduled = map[uint64]bool{}
	}
	run.scheduled[m.Seq] = true
	at, _ := slices.BinarySearchFunc(run.delayed, m, byDelivery)
	run.delayed = slices.Insert(run.delayed, at, m)
	if at == 0 {
		t.setTimer(run)
	}
}

// byDelivery orders messages by the time of their delivery, then by sequence number.
func byDelivery(a, b delayedMessage) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.Seq, b.Seq))
}

// setTimer sets the timer to the first delayed message. It must be called with
// mu held.
func (t *tracker) setTimer(run *taskRun) {
	run.stopTimer()
	if len(run.delayed) > 0 && !run.paused {
		run.timer = time.AfterFunc(time.Until(run.delayed[0].at), func() { t.deliver(run) })
	}
}

// stopTimer must be called with tracker.mu held.
func (run *taskRun) stopTimer() {
	if run.timer != nil {
		run.timer.Stop()
	}
}

// stopTimers stops the timer and the deadline. It must be called with tracker.mu held.
func (run *taskRun) stopTimers() {
	run.stopTimer()
	if run.deadline != nil {
		run.deadline.Stop()
	}
}

// takeDue removes the messages that are due from the queue, acquires the task
// and begins work for their delivery. It returns false if the task ends or has
// ended, or the runtime is closing.
func (t *tracker) takeDue(run *taskRun) ([]journal.Message, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.ended || run.paused || run.ending != nil || t.ctx.Err() != nil {
		return nil, false
	}
	var due []journal.Message
	for now := time.Now(); len(due) < len(run.delayed) && !run.delayed[len(due)].at.After(now); {
		m := run.delayed[len(due)]
		delete(run.scheduled, m.Seq)
		due = append(due, m.Message)
	}
	run.delayed = slices.Delete(run.delayed, 0, len(due))
	t.setTimer(run)
	run.refs++
	t.work.Add(1)
	return due, true
}

// delayedCount returns the number of delayed messages of a task.
func (t *tracker) delayedCount(id identity.TaskID) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		return len(run.delayed)
	}
	return 0
}

// dropDelayed drops the delayed messages of terminated agents.
func (t *tracker) dropDelayed(id identity.TaskID, gone map[identity.AgentID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[id]; run != nil {
		run.delayed = slices.DeleteFunc(run.delayed, func(m delayedMessage) bool {
			if gone[identity.AgentID(m.To)] {
				delete(run.scheduled, m.Seq)
				return true
			}
			return false
		})
		t.setTimer(run)
		t.signalStall(run)
	}
}
