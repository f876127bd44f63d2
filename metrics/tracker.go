package metrics

import (
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// agentTracker keeps the state of agents in running tasks that later events are
// measured against. It must be used with Metrics.mu held.
type agentTracker struct {
	tasks  map[identity.TaskID]map[identity.AgentID]*agent
	ended  recentlyEnded
	size   int // number of agents
	unread int // messages sent to these agents and not received yet
}

// agent is the tracked state of one agent. Times are Unix nanoseconds; 0 means
// unknown.
type agent struct {
	spawnSeen   bool       // its spawn was observed, so its mailbox is known from the start
	working     bool       // it is in a turn
	turnStart   int64      // when the turn started
	lastTurnEnd int64      // when the last turn ended
	state       string     // label of its workflow state; "" if unknown
	stateStart  int64      // when it entered that state
	tools       int        // number of tools at its last answer; -1 if unknown
	unread      int        // messages sent and not received
	openCalls   []openCall // allowed calls without an outcome
}

// openCall is a call that has been allowed and has not ended.
type openCall struct {
	id    identity.CallID
	tool  string // label
	start int64
}

// newAgentTracker returns a tracker without agents.
func newAgentTracker() agentTracker {
	return agentTracker{tasks: map[identity.TaskID]map[identity.AgentID]*agent{}, ended: recentlyEnded{ids: map[string]struct{}{}}}
}

// agentFor returns the tracked agent of an event and starts to track it if
// necessary. It returns nil for events without an agent and for agents that
// have ended.
func (t *agentTracker) agentFor(e journal.Event) *agent {
	if a := t.tasks[e.Task][e.Agent]; a != nil {
		return a
	}
	if e.Agent == "" || t.ended.has(string(e.Task)) || t.ended.has(string(e.Agent)) {
		return nil
	}
	if t.tasks[e.Task] == nil {
		t.tasks[e.Task] = map[identity.AgentID]*agent{}
	}
	a := &agent{tools: -1}
	t.tasks[e.Task][e.Agent] = a
	t.size++
	return a
}

// forget stops tracking an agent.
func (t *agentTracker) forget(task identity.TaskID, id identity.AgentID) {
	a := t.tasks[task][id]
	if a == nil {
		return
	}
	delete(t.tasks[task], id)
	t.size--
	t.unread -= a.unread
}

// addUnread changes the number of unread messages of an agent, if its mailbox
// is known from the start.
func (t *agentTracker) addUnread(a *agent, n int) {
	if a.spawnSeen {
		a.unread += n
		t.unread += n
	}
}

// beginTurn makes sure that the agent is in a turn. A turn without a received
// message continues with messages left unread, so it starts at the end of the
// last turn.
func (a *agent) beginTurn() {
	if !a.working {
		a.working, a.turnStart = true, a.lastTurnEnd
	}
}

// endTurn ends the turn and returns its duration. It reports false if the start
// is unknown.
func (a *agent) endTurn(at int64) (time.Duration, bool) {
	start := a.turnStart
	a.working, a.turnStart, a.lastTurnEnd, a.openCalls = false, 0, at, nil
	return time.Duration(max(0, at-start)), start != 0
}

// changeState sets the workflow state and returns the time spent in the
// previous one. It reports false if that is unknown.
func (a *agent) changeState(at int64, next string) (time.Duration, bool) {
	entered := a.stateStart
	a.state, a.stateStart = next, at
	return time.Duration(max(0, at-entered)), entered != 0
}

// closeCall removes and returns an open call.
func (a *agent) closeCall(id identity.CallID) (openCall, bool) {
	for i, c := range a.openCalls {
		if c.id == id {
			a.openCalls[i] = a.openCalls[len(a.openCalls)-1]
			a.openCalls = a.openCalls[:len(a.openCalls)-1]
			return c, true
		}
	}
	return openCall{}, false
}

// recentlyEnded remembers the last 4096 ids of ended tasks and agents. Streams
// are observed concurrently, so an event committed before an end may be
// observed after it.
type recentlyEnded struct {
	ids  map[string]struct{}
	ring [4096]string
	next int
}

// has reports whether an id has ended recently.
func (r *recentlyEnded) has(id string) bool {
	_, ok := r.ids[id]
	return ok
}

// add remembers an id and drops the oldest.
func (r *recentlyEnded) add(id string) {
	if r.has(id) {
		return
	}
	delete(r.ids, r.ring[r.next])
	r.ids[id] = struct{}{}
	r.ring[r.next] = id
	r.next = (r.next + 1) % len(r.ring)
}
