package runtime

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// AgentStatus returns what an agent is doing now, for its record or org.Agent.
func (rt *Runtime) AgentStatus(agent org.Agent) org.AgentStatus {
	if agent.Status != org.Active {
		return org.AgentTerminated
	}
	if status, ok := rt.tracker.agentStatus(agent.ID); ok {
		return status
	}
	if rt.tracker.isResting(agent.Task, agent.ID) {
		return org.AgentPaused
	}
	if task, ok := rt.org.TaskByID(agent.Task); !ok || task.Status.Ended() {
		return org.AgentFinished
	}
	return org.AgentWaiting
}

// TaskStatus returns the current status of a task, for a record that was read before. If the task
// had ended, this is the status of the record. Else it is Running, Waiting, Paused or Interrupted.
func (rt *Runtime) TaskStatus(task org.Task) org.TaskStatus {
	if task.Status.Ended() {
		return task.Status
	}
	if rt.org.PauseOf(task.ID) != nil {
		return org.Paused
	}
	if status, ok := rt.tracker.taskStatus(task.ID); ok {
		return status
	}
	if now, ok := rt.org.TaskByID(task.ID); ok && now.Status.Ended() {
		return org.Running // it ended after the record was read
	}
	return org.Interrupted
}

// agentStatus returns the status of an active agent, and false for any other agent.
func (t *tracker) agentStatus(id identity.AgentID) (org.AgentStatus, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.active[id]
	if !ok {
		return "", false
	}
	return a.status, true
}

// taskStatus returns the status of a tracked task, and false for any other task.
func (t *tracker) taskStatus(id identity.TaskID) (org.TaskStatus, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	run, ok := t.tasks[id]
	if !ok {
		return "", false
	}
	return run.status(), true
}

// status returns the status of a task that has not ended. It must be called with
// tracker.mu held.
func (run *taskRun) status() org.TaskStatus {
	switch {
	case run.refs > 0 || run.ended:
		return org.Running
	case len(run.resting) > 0:
		return org.Paused
	}
	return org.Waiting
}

// setStatus sets the status of an active agent.
func (t *tracker) setStatus(a *actor, status org.AgentStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.status = status
}
