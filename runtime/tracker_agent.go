package runtime

import (
	"context"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// maxCachedAgents bounds how many idle agents are kept in memory. The others
// are read from their journals when they are woken.
const maxCachedAgents = 1024

// idleAgent is the cached part of an agent that is idle or has not run yet.
type idleAgent struct {
	agent org.Agent // as stored
	state *state    // fold of its journal; nil if not loaded
}

// activate makes an agent read its inbox. If the agent is idle, activate
// returns a new actor. The caller must run the actor, which counts as work.
// activate returns nil if the agent is active already, or if no work on its
// task begins.
func (t *tracker) activate(rt *Runtime, id identity.AgentID) *actor {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notifyDriver(id)
	if a, ok := t.active[id]; ok {
		a.newMessages = true
		return nil
	}
	agent, ok := t.org.AgentByID(id)
	run := t.tasks[agent.Task]
	if !ok || run == nil || run.ended || run.paused || t.ctx.Err() != nil || run.driven && agent.Parent == "" {
		return nil
	}
	delete(run.resting, id) // its first step tells whether it still is paused
	return t.newActor(rt, run, t.takeCached(run, agent))
}

// newActor makes an agent active, and counts it as work. It must be called with mu held.
func (t *tracker) newActor(rt *Runtime, run *taskRun, idle *idleAgent) *actor {
	a := &actor{rt: rt, task: run.id, taskRun: run, status: org.AgentStarting, idleAgent: idle, hold: diskHold{guard: rt.disk}}
	t.active[idle.agent.ID] = a
	run.refs++
	t.work.Add(1)
	return a
}

// tryIdle reports whether an agent may end its goroutine. After a new message it returns false
// once, and forgets the message.
func (t *tracker) tryIdle(a *actor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.newMessages {
		a.newMessages = false
		return false
	}
	return true
}

// deactivate is called when an agent's goroutine ends, and after each step of a driver. It reports
// whether a message has arrived since tryIdle. The agent's task must be released afterwards.
func (t *tracker) deactivate(a *actor) (newMessages bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.active, a.agent.ID)
	if a.cancel != nil {
		a.cancel(nil)
	}
	if a.markedIdle && len(a.received) == 0 && t.ctx.Err() == nil {
		t.cacheAgent(a.idleAgent)
	}
	return a.newMessages
}

// activeActor returns the actor of an agent that is calling a tool. Its state
// may be used: the actor's goroutine runs the call or waits for it.
func (t *tracker) activeActor(id identity.AgentID) (*actor, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.active[id]
	if !ok || a.status != org.AgentCalling { // the call is not by its goroutine
		return nil, errcode.New(errcode.AgentNotFound, "use the context of agent %q: the agent is not active", id)
	}
	return a, nil
}

// beginTurn starts a turn and returns its context, which abort, termination and
// Close cancel. For an agent that was terminated before, or whose task ends, the
// context is cancelled at once.
func (t *tracker) beginTurn(ctx context.Context, a *actor) context.Context {
	turn, cancel := context.WithCancelCause(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.cancel != nil {
		a.cancel(nil)
	}
	a.cancel = cancel
	switch run := t.tasks[a.task]; {
	case !t.org.IsActive(a.agent.ID):
		cancel(errTerminated)
	case run != nil && run.stops(a.agent.ID):
		cancel(errTaskEnding)
	}
	return turn
}

// cancelTurn cancels the turn of an active agent. It reports whether there was
// one.
func (t *tracker) cancelTurn(id identity.AgentID, cause error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.active[id]
	if !ok || a.cancel == nil {
		return false
	}
	a.cancel(cause)
	return true
}

// setRecovered sets the calls of an agent that an earlier process has started.
func (t *tracker) setRecovered(a *actor, calls map[identity.CallID]tool.Effect) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.recovered = calls
}

// isRecovered reports whether an earlier process has started a call of an
// active agent.
func (t *tracker) isRecovered(id identity.AgentID, call identity.CallID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.active[id]
	if a == nil {
		return false
	}
	_, ok := a.recovered[call]
	return ok
}

// markFirstRequest reports whether this is the first request of an agent since
// its task was started or resumed. It returns true once per agent.
func (t *tracker) markFirstRequest(a *actor) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	run := t.tasks[a.task]
	if run == nil || run.firstLogged[a.agent.ID] {
		return false
	}
	if run.firstLogged == nil {
		run.firstLogged = map[identity.AgentID]bool{}
	}
	run.firstLogged[a.agent.ID] = true
	return true
}

// cacheAgent adds an agent to its task's cache. It must be called with mu held.
func (t *tracker) cacheAgent(a *idleAgent) {
	run := t.tasks[a.agent.Task]
	if run == nil {
		return
	}
	if t.cached >= maxCachedAgents {
		t.evictOne()
	}
	if run.cached == nil {
		run.cached = map[identity.AgentID]*idleAgent{}
	}
	run.cached[a.agent.ID] = a
	t.cached++
}

// cachedState returns the state of an idle agent, or nil if it is not cached.
func (t *tracker) cachedState(task identity.TaskID, id identity.AgentID) *state {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[task]; run != nil && run.cached[id] != nil {
		return run.cached[id].state
	}
	return nil
}

// takeCached removes an agent from the cache and returns it; the caller then
// owns it. It returns a new idleAgent if the agent is not cached. It must be
// called with mu held.
func (t *tracker) takeCached(run *taskRun, agent org.Agent) *idleAgent {
	a := run.cached[agent.ID]
	if a == nil {
		return &idleAgent{agent: agent}
	}
	t.evict(run, agent.ID)
	a.agent.State = agent.State
	return a
}

// evictOne drops an arbitrary agent from the caches. It must be called with mu
// held.
func (t *tracker) evictOne() {
	for _, run := range t.tasks {
		for id := range run.cached {
			t.evict(run, id)
			return
		}
	}
}

// evict drops an agent from the cache of its task. It must be called with mu
// held.
func (t *tracker) evict(run *taskRun, id identity.AgentID) {
	if run.cached[id] != nil {
		delete(run.cached, id)
		t.cached--
	}
}

// evictAgent drops a terminated agent from its task.
func (t *tracker) evictAgent(task identity.TaskID, id identity.AgentID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if run := t.tasks[task]; run != nil {
		t.evict(run, id)
		delete(run.resting, id)
	}
}
