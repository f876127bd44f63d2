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

// maxCachedAgents bounds how many agents at rest are remembered; the others are read
// from their journals when they are needed.
const maxCachedAgents = 1024

// wake has an agent's goroutine look at its mail. Agents of tasks that are
// not worked on stay as they are.
func (rt *Runtime) wake(id identity.AgentID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a, ok := rt.active[id]; ok {
		a.hasNewMail = true
		return
	}
	agent, ok := rt.org.Agent(id)
	run := rt.tasks[agent.Task]
	if !ok || run == nil || run.ended || rt.ctx.Err() != nil {
		return
	}
	a := &actor{rt: rt, task: agent.Task, idleAgent: rt.takeCached(run, agent)}
	rt.active[id] = a
	run.live++
	rt.work.Go(func() { a.run(rt.ctx) })
}

// mayIdle says whether an agent may end its goroutine; mail that came since
// keeps it.
func (rt *Runtime) mayIdle(a *actor) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if a.hasNewMail {
		a.hasNewMail = false
		return false
	}
	return true
}

// agentStopped is called when an agent's goroutine ends. A task none of whose agents
// is at work has come to its end.
func (rt *Runtime) agentStopped(a *actor) {
	id := a.agent.ID // what is remembered belongs to whoever is woken next
	rt.mu.Lock()
	delete(rt.active, id)
	if a.cancel != nil {
		a.cancel(nil)
	}
	if a.idle && len(a.taken) == 0 && rt.ctx.Err() == nil {
		rt.cacheAgent(a.idleAgent)
	}
	late := a.hasNewMail // mail came between the last look and now
	rt.mu.Unlock()
	if late {
		rt.wake(id)
	}
	rt.release(a.task)
}

// idleAgent is what is remembered of an agent at rest, or one that has not begun.
type idleAgent struct {
	agent org.Agent // as stored
	state *state    // what its journal comes to
}

// cacheAgent is called with mu held.
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

// evictOne forgets an agent, whichever. It is called with mu held.
func (rt *Runtime) evictOne() {
	for _, run := range rt.tasks {
		for id := range run.cached {
			rt.evict(run, id)
			return
		}
	}
}

// evict is called with mu held.
func (rt *Runtime) evict(run *taskRun, id identity.AgentID) {
	if run.cached[id] != nil {
		delete(run.cached, id)
		rt.cachedAgents--
	}
}

// takeCached gives what is remembered of an agent whose task is worked on, and
// forgets it: from now on it is the actor's. It is called with mu held.
func (rt *Runtime) takeCached(run *taskRun, agent org.Agent) *idleAgent {
	a := run.cached[agent.ID]
	if a == nil {
		return &idleAgent{agent: agent}
	}
	rt.evict(run, agent.ID)
	a.agent.State = agent.State
	return a
}

// evictAgent forgets an agent that is no more.
func (rt *Runtime) evictAgent(task identity.TaskID, id identity.AgentID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[task]; run != nil {
		rt.evict(run, id)
	}
}

// untrackRun takes a task out of what is worked on. It is called with mu held.
func (rt *Runtime) untrackRun(run *taskRun) {
	run.stopTimer()
	rt.cachedAgents -= len(run.cached)
	delete(rt.tasks, run.id)
}

// hold keeps a task from ending until release; false when it is not worked on.
func (rt *Runtime) hold(id identity.TaskID) bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[id]
	if run == nil || run.ended {
		return false
	}
	run.live++
	return true
}

func (rt *Runtime) release(id identity.TaskID) {
	rt.mu.Lock()
	run := rt.tasks[id]
	if run == nil {
		rt.mu.Unlock()
		return
	}
	run.live--
	quiet := run.live == 0 && len(run.delayed) == 0 && !run.ended && rt.ctx.Err() == nil
	if quiet {
		run.ended, run.mailed = true, false
	}
	rt.mu.Unlock()
	if quiet {
		rt.finishTask(run)
	}
}

// markMailed remembers, in commit order, that mail was sent in a task.
func (rt *Runtime) markMailed(id identity.TaskID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[id]; run != nil {
		run.mailed = true
	}
}

// dropDelayed forgets the delayed mail of agents that are no more.
func (rt *Runtime) dropDelayed(id identity.TaskID, gone map[identity.AgentID]bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if run := rt.tasks[id]; run != nil {
		run.delayed = slices.DeleteFunc(run.delayed, func(m journal.Message) bool { return gone[identity.AgentID(m.To)] })
		rt.setTimer(run)
	}
}

// turn begins a turn that abort, termination or Close can end. Who was ended
// before there was a turn to stop begins none.
func (rt *Runtime) turn(ctx context.Context, a *actor) context.Context {
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

// interrupt ends the turn of an agent that is at work.
func (rt *Runtime) interrupt(id identity.AgentID, cause error) bool {
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

// logAgentError is for what the machinery could not do; the agent stays where it is
// until it is woken again.
func (rt *Runtime) logAgentError(a *actor, err error) {
	rt.log.Error("agent stopped", "agent", a.agent.ID, "task", a.agent.Task, "error", err)
}

// schedule delivers a delayed message when it is due, while its task is
// worked on.
func (rt *Runtime) schedule(m journal.Message) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	run := rt.tasks[m.Task]
	if run == nil || run.ended || !rt.agentExists(identity.AgentID(m.To)) { // who was ended since it was sent is behind undelay
		return
	}
	at, known := slices.BinarySearchFunc(run.delayed, m, byDue)
	if known {
		return
	}
	run.delayed = slices.Insert(run.delayed, at, m)
	rt.setTimer(run)
}

func byDue(a, b journal.Message) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
}

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

// deliver moves the delayed messages that are due to their inboxes, in order.
func (rt *Runtime) deliver(run *taskRun) {
	due, ok := rt.due(run)
	if !ok {
		return
	}
	defer rt.work.Done()
	if _, err := rt.commit(&journal.Batch{Deliver: due, Prepare: rt.dropUndeliverable}); err != nil {
		rt.log.Error("delayed messages not delivered", "task", run.id, "error", err)
	}
	rt.release(run.id)
}

// dropUndeliverable keeps what is due from waiting for agents that are no more, or whose
// task is over.
func (rt *Runtime) dropUndeliverable(b *journal.Batch) error {
	for _, m := range b.Deliver {
		if to := identity.AgentID(m.To); !rt.org.Active(to) {
			b.Purge = append(b.Purge, to)
		}
	}
	return nil
}

// due takes the messages that are due and holds the task for their delivery.
func (rt *Runtime) due(run *taskRun) ([]journal.Message, bool) {
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
	run.live++
	rt.work.Add(1)
	return due, true
}
