package runtime

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// wake makes an agent read its inbox and starts its goroutine if it has none.
// It does nothing if this process is not working on the agent's task.
func (rt *Runtime) wake(id identity.AgentID) {
	a := rt.tracker.activate(rt, id)
	if a == nil {
		return
	}
	go func() {
		defer rt.tracker.work.Done()
		a.run(rt.ctx)
	}()
}

// agentStopped is called when an agent's goroutine ends, and after each step of a driver.
// It wakes the agent if a message has arrived. The task ends if it has become idle.
func (rt *Runtime) agentStopped(a *actor) {
	id := a.agent.ID // read first: after deactivate another goroutine may use the agent
	if rt.tracker.deactivate(a) {
		rt.wake(id)
	}
	rt.releaseOrEnd(a.taskRun)
}

// releaseOrEnd lets a task end that the tracker's acquire, track, takeDue or newActor kept from
// ending. It ends the task if it has become idle.
func (rt *Runtime) releaseOrEnd(run *taskRun) {
	if idle := rt.tracker.release(run); idle != nil {
		rt.finishTask(idle)
	}
}

// logAgentError logs an internal failure of an agent's loop. The agent stays as
// it is until it is woken again.
func (rt *Runtime) logAgentError(a *actor, err error) {
	rt.log.Error("agent stopped", "agent", a.agent.ID, "task", a.agent.Task, "error", err)
}

// deliverDue moves the messages that are due into their inboxes, in order.
func (rt *Runtime) deliverDue(run *taskRun) {
	due, ok := rt.tracker.takeDue(run)
	if !ok {
		return
	}
	defer rt.tracker.work.Done()
	if _, err := rt.commit(&journal.Batch{Deliver: due, Prepare: rt.purgeEndedRecipients}); err != nil {
		rt.log.Error("delayed messages not delivered", "task", run.id, "error", err)
	}
	rt.releaseOrEnd(run)
}

// purgeEndedRecipients purges the inboxes of recipients that are terminated or
// whose task is done. A task that failed or was cancelled may be retried.
func (rt *Runtime) purgeEndedRecipients(b *journal.Batch) error {
	for _, m := range b.Deliver {
		to := identity.AgentID(m.To)
		agent, ok := rt.org.AgentByID(to)
		if task, _ := rt.org.TaskByID(agent.Task); !ok || task.Status == org.Done {
			b.Purge = append(b.Purge, to)
		}
	}
	return nil
}
