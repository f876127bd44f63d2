package runtime

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// driverMail is what the tracker tells the driver of an agent.
type driverMail struct {
	ready  chan struct{} // receives when there may be messages to read, and when none will come
	unread bool          // a message has arrived since the inbox was last read; guarded by tracker.mu
}

// signal wakes the driver that waits, or the next driver that waits.
func (m *driverMail) signal() {
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// addDriver registers the driver of an agent and returns its mail. It returns nil if the
// agent has a driver.
func (t *tracker) addDriver(id identity.AgentID) *driverMail {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driven[id] != nil {
		return nil
	}
	t.driven[id] = &driverMail{ready: make(chan struct{}, 1)}
	return t.driven[id]
}

// removeDriver removes the driver with this mail, and reports whether it was there.
func (t *tracker) removeDriver(id identity.AgentID, mail *driverMail) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driven[id] != mail {
		return false
	}
	delete(t.driven, id)
	return true
}

func (t *tracker) hasDriver(id identity.AgentID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driven[id] != nil
}

// isDriver reports whether a driver of an agent was not removed.
func (t *tracker) isDriver(id identity.AgentID, mail *driverMail) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driven[id] == mail
}

// notifyDriver tells the driver of an agent, if it has one, that there is mail. It must be
// called with mu held.
func (t *tracker) notifyDriver(id identity.AgentID) {
	if mail := t.driven[id]; mail != nil {
		mail.unread = true
		mail.signal()
	}
}

// markRead notes that a driver reads the messages that have arrived.
func (t *tracker) markRead(mail *driverMail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	mail.unread = false
}

// signalStall wakes the driver of a task in which nothing happens any more. It must be called
// with mu held.
func (t *tracker) signalStall(run *taskRun) {
	if !run.driven || !run.isQuiet() || t.waitsForPeople(run) {
		return
	}
	if mail := t.driven[org.TopAgentID(run.id)]; mail != nil {
		mail.signal()
	}
}

// isQuiet reports whether no agent of a task is at work and no message is on its way. It
// must be called with tracker.mu held.
func (run *taskRun) isQuiet() bool { return run.refs == 0 && len(run.delayed) == 0 }

// isStalled reports whether no message to a driver will arrive unless the driver, or the
// operator, writes to an agent first.
func (t *tracker) isStalled(d *Driver) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[d.task]
	if run == nil || !run.isQuiet() || t.waitsForPeople(run) || d.mail.unread {
		return false
	}
	d.mail.signal() // for others that wait
	return true
}

// errDriverBusy is the error for a step while one of the driver before has not ended.
var errDriverBusy = errcode.New(errcode.Conflict, "a step of the driver before has not ended; try again")

// activateDriven makes the first agent of a driven task active for one step of its driver,
// which must call deactivate. It returns nil if no work on the task begins, or if d is not
// the driver of the agent.
func (t *tracker) activateDriven(d *Driver) (*actor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	agent, ok := t.org.AgentByID(d.top)
	run := t.tasks[d.task]
	if !ok || run == nil || !run.driven || run.ended || run.paused || t.driven[d.top] != d.mail || t.ctx.Err() != nil {
		return nil, nil
	}
	if t.active[d.top] != nil {
		return nil, errDriverBusy
	}
	if why := t.org.PauseReason(d.top); why != "" {
		return nil, pausedError(d.task, why)
	}
	idle := t.takeCached(run, agent)
	if d.agent != nil {
		idle, d.agent.agent.State = d.agent, agent.State
	}
	return t.newActor(d.rt, run, idle), nil
}

// endTurn releases the context of the turn of an agent that is still active.
func (t *tracker) endTurn(a *actor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.cancel != nil {
		a.cancel(nil)
		a.cancel = nil
	}
}

// checkHasDriver rejects a driven task without a driver in this process, unless it is done:
// nothing would run its first agent.
func (rt *Runtime) checkHasDriver(task org.Task) error {
	if !task.Driven || task.Status == org.Done || rt.tracker.hasDriver(task.Top) {
		return nil
	}
	return errNotDriven(task.ID)
}
