package runtime

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// addDriver registers the driver of an agent and returns the channel that receives when the
// agent has mail. It returns nil if the agent has a driver.
func (t *tracker) addDriver(id identity.AgentID) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.driven[id] != nil {
		return nil
	}
	t.driven[id] = make(chan struct{}, 1)
	return t.driven[id]
}

// removeDriver removes the driver with this channel, and reports whether it was there.
func (t *tracker) removeDriver(id identity.AgentID, mail chan struct{}) bool {
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

// isDriver reports whether a driver of an agent was not closed; mail is its channel.
func (t *tracker) isDriver(id identity.AgentID, mail chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.driven[id] == mail
}

// notifyDriver tells the driver of an agent, if it has one, that there is mail. It must be
// called with mu held.
func (t *tracker) notifyDriver(id identity.AgentID) {
	select {
	case t.driven[id] <- struct{}{}: // blocks for a nil channel
	default:
	}
}

// activateDriven makes the first agent of a driven task active for one step of its driver,
// which must call deactivate. It returns nil if no work on the task begins, or if d is not
// the driver of the agent.
func (t *tracker) activateDriven(d *Driver) *actor {
	t.mu.Lock()
	defer t.mu.Unlock()
	agent, ok := t.org.AgentByID(d.top)
	run := t.tasks[d.task]
	if !ok || run == nil || !run.driven || run.ended || run.paused || t.driven[d.top] != d.mail || t.ctx.Err() != nil {
		return nil
	}
	idle := t.takeCached(run, agent)
	if d.agent != nil {
		idle, d.agent.agent.State = d.agent, agent.State
	}
	return t.begin(d.rt, run, idle)
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

// checkDriven rejects a driven task without a driver in this process, unless it is done:
// nothing would run its first agent.
func (rt *Runtime) checkDriven(task org.Task) error {
	if !task.Driven || task.Status == org.Done || rt.tracker.hasDriver(task.Top) {
		return nil
	}
	return errNotDriven(task.ID)
}
