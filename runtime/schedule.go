package runtime

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// maxCachedAgents bounds how many idle agents are kept in memory. The others
// are read from their journals when they are woken.
const maxCachedAgents = 1024

// wake makes an agent read its inbox and starts its goroutine if it has none.
// It does nothing if this process is not working on the agent's task.
func (rt *Runtime) wake(id identity.AgentID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a, ok := rt.active[id]; ok {
		a.newMessages = true
		return
	}
	agent, ok := rt.org.Agent(id)
	run := rt.tasks[agent.Task]
	if !ok || run == nil || run.ended || rt.ctx.Err() != nil {
		return
	}
	a := &actor{rt: rt, task: agent.Task, idleAgent: rt.takeCached(run, agent)}
	rt.active[id] = a
	run.refs++
	rt.work.Go(func() { a.run(rt.ctx) })
}

// mayIdle reports whether an agent may end its goroutine. It returns false once
// after a new message.
func (rt *Runtime) mayIdle(a *actor) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a.newMessages {
		a.newMessages = false
		return false
	}
	return true
}

// agentStopped is called when an agent's goroutine ends. The task ends if this
// was its last active agent.
func (rt *Runtime) agentStopped(a *actor) {
	id := a.agent.ID // read first: after cacheAgent the idleAgent belongs to the next actor
	rt.mu.Lock()
	delete(rt.active, id)
	if a.cancel != nil {
		a.cancel(nil)
	}
	if a.markedIdle && len(a.received) == 0 && rt.ctx.Err() == nil {
		rt.cacheAgent(a.idleAgent)
	}
	late := a.newMessages // a message arrived after mayIdle
	rt.mu.Unlock()
	if late {
		rt.wake(id)
	}
	rt.releaseTask(a.task)
}

// idleAgent is the cached part of an agent that is idle or has not run yet.
type idleAgent struct {
	agent org.Agent // as stored
	state *state    // fold of its journal; nil if not loaded
}

// cacheAgent adds an agent to its task's cache. It must be called with mu held.
func (rt *Runtime) cacheAgent(a *idleAgent) {
	run := rt.tasks[a.agent.Task]
	if run == nil {
		return
	}
	if rt.cachedAgents >= maxCachedAgents {
		rt.evictOne()
	}
	if run.cached == nil {
		run.cached = map[identity.AgentID]*idleAgent{}
	}
	run.cached[a.agent.ID] = a
	rt.cachedAgents++
}

// evictOne drops an arbitrary agent from the caches. It must be called with mu
// held.
func (rt *Runtime) evictOne() {
	for _, run := range rt.tasks {
		for id := range run.cached {
			rt.evict(run, id)
			return
		}
	}
}

// evict drops an agent from the cache of its task. It must be called with mu
// held.
func (rt *Runtime) evict(run *taskRun, id identity.AgentID) {
	if run.cached[id] != nil {
		delete(run.cached, id)
		rt.cachedAgents--
	}
}

// takeCached removes an agent from the cache and returns it; the caller then
// owns it. It returns a new idleAgent if the agent is not cached. It must be
// called with mu held.
func (rt *Runtime) takeCached(run *taskRun, agent org.Agent) *idleAgent {
	a := run.cached[agent.ID]
	if a == nil {
		return &idleAgent{agent: agent}
	}
	rt.evict(run, agent.ID)
	a.agent.State = agent.State
	return a
}

// evictAgent drops a terminated agent from the cache of its task.
func (rt *Runtime) evictAgent(task identity.TaskID, id identity.AgentID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[task]; run != nil {
		rt.evict(run, id)
	}
}

// untrackRun stops tracking a task. It must be called with mu held.
func (rt *Runtime) untrackRun(run *taskRun) {
	run.stopTimer()
	rt.cachedAgents -= len(run.cached)
	delete(rt.tasks, run.id)
}

// acquireTask prevents a task from ending until releaseTask is called. It
// returns false if the task is not tracked or has ended.
func (rt *Runtime) acquireTask(id identity.TaskID) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[id]
	if run == nil || run.ended {
		return false
	}
	run.refs++
	return true
}

// releaseTask undoes an acquireTask or trackTask. It ends the task if no agent
// is active, no delivery is in progress and no delayed message is left.
func (rt *Runtime) releaseTask(id identity.TaskID) {
	rt.mu.Lock()
	run := rt.tasks[id]
	if run == nil {
		rt.mu.Unlock()
		return
	}
	run.refs--
	quiet := run.refs == 0 && len(run.delayed) == 0 && !run.ended && rt.ctx.Err() == nil
	if quiet {
		run.ended, run.newMessages = true, false
	}
	rt.mu.Unlock()
	if quiet {
		rt.finishTask(run)
	}
}

// markNewMessages notes that a message was sent in a task. Calls are in commit
// order.
func (rt *Runtime) markNewMessages(id identity.TaskID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[id]; run != nil {
		run.newMessages = true
	}
}

// dropDelayed drops the delayed messages of terminated agents.
func (rt *Runtime) dropDelayed(id identity.TaskID, gone map[identity.AgentID]bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[id]; run != nil {
		run.delayed = slices.DeleteFunc(run.delayed, func(m journal.Message) bool { return gone[identity.AgentID(m.To)] })
		rt.setTimer(run)
	}
}

// beginTurn starts a turn and returns its context, which abort, termination and
// Close cancel. For an agent that was terminated before, the context is
// cancelled at once.
func (rt *Runtime) beginTurn(ctx context.Context, a *actor) context.Context {
	turn, cancel := context.WithCancelCause(ctx)
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a.cancel != nil {
		a.cancel(nil)
	}
	a.cancel = cancel
	if !rt.org.Active(a.agent.ID) {
		cancel(errTerminated)
	}
	return turn
}

// cancelTurn cancels the turn of an active agent. It reports whether there was
// one.
func (rt *Runtime) cancelTurn(id identity.AgentID, cause error) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	a, ok := rt.active[id]
	if !ok || a.cancel == nil {
		return false
	}
	a.cancel(cause)
	return true
}

func (rt *Runtime) agentExists(id identity.AgentID) bool {
	_, ok := rt.org.Agent(id)
	return ok
}

// logAgentError logs an internal failure of an agent's loop. The agent stays as
// it is until it is woken again.
func (rt *Runtime) logAgentError(a *actor, err error) {
	rt.log.Error("agent stopped", "agent", a.agent.ID, "task", a.agent.Task, "error", err)
}

// schedule queues a delayed message of a tracked task for delivery when it is
// due.
func (rt *Runtime) schedule(m journal.Message) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[m.Task]
	if run == nil || run.ended || !rt.agentExists(identity.AgentID(m.To)) { // the recipient may have been terminated since the send; its messages are purged then
		return
	}
	at, known := slices.BinarySearchFunc(run.delayed, m, byDue)
	if known {
		return
	}
	run.delayed = slices.Insert(run.delayed, at, m)
	rt.setTimer(run)
}

// byDue orders messages by due time, then by sequence number.
func byDue(a, b journal.Message) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
}

// setTimer sets the timer to the first delayed message. It must be called with
// mu held.
func (rt *Runtime) setTimer(run *taskRun) {
	run.stopTimer()
	if len(run.delayed) > 0 {
		run.timer = time.AfterFunc(max(0, run.delayed[0].Due.Sub(rt.now())), func() { rt.deliver(run) })
	}
}

func (run *taskRun) stopTimer() {
	if run.timer != nil {
		run.timer.Stop()
	}
}

// deliver moves the messages that are due into their inboxes, in order.
func (rt *Runtime) deliver(run *taskRun) {
	due, ok := rt.takeDue(run)
	if !ok {
		return
	}
	defer rt.work.Done()
	if _, err := rt.commit(&journal.Batch{Deliver: due, Prepare: rt.dropUndeliverable}); err != nil {
		rt.log.Error("delayed messages not delivered", "task", run.id, "error", err)
	}
	rt.releaseTask(run.id)
}

// dropUndeliverable purges the inboxes of recipients that are terminated or
// whose task has ended.
func (rt *Runtime) dropUndeliverable(b *journal.Batch) error {
	for _, m := range b.Deliver {
		if to := identity.AgentID(m.To); !rt.org.Active(to) {
			b.Purge = append(b.Purge, to)
		}
	}
	return nil
}

// takeDue removes the messages that are due from the queue and holds the task
// for their delivery. It returns false if the task has ended or the runtime is
// closing.
func (rt *Runtime) takeDue(run *taskRun) ([]journal.Message, bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run.ended || rt.ctx.Err() != nil {
		return nil, false
	}
	n, now := 0, rt.now()
	for n < len(run.delayed) && !run.delayed[n].Due.After(now) {
		n++
	}
	due := slices.Clone(run.delayed[:n])
	run.delayed = slices.Delete(run.delayed, 0, n)
	rt.setTimer(run)
	run.refs++
	rt.work.Add(1)
	return due, true
}
