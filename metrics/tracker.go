package metrics

import (
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
)

// agentTracker remembers, of the agents of tasks that have not ended, what a later
// event is held against. It is used with Metrics.mu held.
type agentTracker struct {
	tasks  map[identity.TaskID]map[identity.AgentID]*agent
	gone   recentlyEnded
	size   int // agents in tasks
	unread int // messages that they have not taken
}

// agent is what is remembered of one. Times are Unix nanoseconds; 0 is a time
// that is not known.
type agent struct {
	spawnSeen bool       // its spawn was seen
	working   bool       // it is in a turn
	turn      int64      // when the turn began
	lastIdle  int64      // when the last turn ended
	state     string     // the label of its workflow state; "" when it is not known
	entered   int64      // when it came into that state
	tools     int        // how many it saw with its last answer; -1 when it is not known
	unread    int        // messages sent and not taken
	open      []openCall // allowed and without outcome
}

type openCall struct {
	id    identity.CallID
	tool  string // its label
	began int64
}

func newCrowd() agentTracker {
	return agentTracker{tasks: map[identity.TaskID]map[identity.AgentID]*agent{}, gone: recentlyEnded{ids: map[string]struct{}{}}}
}

// agentFor gives what is remembered of the agent that an event is about, nil of one
// that is no more.
func (c *agentTracker) agentFor(e journal.Event) *agent {
	if a := c.tasks[e.Task][e.Agent]; a != nil {
		return a
	}
	if e.Agent == "" || c.gone.has(string(e.Task)) || c.gone.has(string(e.Agent)) {
		return nil
	}
	if c.tasks[e.Task] == nil {
		c.tasks[e.Task] = map[identity.AgentID]*agent{}
	}
	a := &agent{tools: -1}
	c.tasks[e.Task][e.Agent] = a
	c.size++
	return a
}

// drop forgets an agent.
func (c *agentTracker) drop(task identity.TaskID, id identity.AgentID) {
	a := c.tasks[task][id]
	if a == nil {
		return
	}
	delete(c.tasks[task], id)
	c.size--
	c.unread -= a.unread
}

// mail counts messages of an agent whose mailbox was seen from its beginning.
func (c *agentTracker) mail(a *agent, n int) {
	if a.spawnSeen {
		a.unread += n
		c.unread += n
	}
}

// begin says that the agent is in a turn. One that has unread mail begins the
// next turn when the last one ends.
func (a *agent) begin() {
	if !a.working {
		a.working, a.turn = true, a.lastIdle
	}
}

// end ends the turn and gives how long it took, if that is known.
func (a *agent) end(at int64) (time.Duration, bool) {
	began := a.turn
	a.working, a.turn, a.lastIdle, a.open = false, 0, at, nil
	return time.Duration(max(0, at-began)), began != 0
}

// leave gives how long the agent was in its state, if that is known, and
// enters another.
func (a *agent) leave(at int64, next string) (time.Duration, bool) {
	entered := a.entered
	a.state, a.entered = next, at
	return time.Duration(max(0, at-entered)), entered != 0
}

// close takes an open call out.
func (a *agent) close(id identity.CallID) (openCall, bool) {
	for i, c := range a.open {
		if c.id == id {
			a.open[i] = a.open[len(a.open)-1]
			a.open = a.open[:len(a.open)-1]
			return c, true
		}
	}
	return openCall{}, false
}

// recentlyEnded remembers the last ids that ended: an event that was committed before
// an end may be observed after it.
type recentlyEnded struct {
	ids  map[string]struct{}
	ring [4096]string
	at   int
}

func (g *recentlyEnded) has(id string) bool {
	_, ok := g.ids[id]
	return ok
}

func (g *recentlyEnded) add(id string) {
	if g.has(id) {
		return
	}
	delete(g.ids, g.ring[g.at])
	g.ids[id] = struct{}{}
	g.ring[g.at] = id
	g.at = (g.at + 1) % len(g.ring)
}
