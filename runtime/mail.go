package runtime

import (
	"context"
	"sync"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// waitingMail counts the messages that wait for each agent, in its inbox or delayed. The
// counts come from the store at start and follow the commits afterwards. All methods are
// safe for concurrent use.
type waitingMail struct {
	limit func() int // the active limit of messages that wait for one agent

	mu     sync.Mutex
	agents map[identity.AgentID]*mailCount // those with messages; guarded by mu
}

// mailCount counts the messages that wait for one agent.
type mailCount struct {
	total    int
	bySender map[string]int
}

// loadMail counts the messages in the store. Damaged messages are logged and not counted:
// their recipient cannot read them either.
func (rt *Runtime) loadMail(ctx context.Context, limit func() int) (*waitingMail, error) {
	w := &waitingMail{limit: limit, agents: map[identity.AgentID]*mailCount{}}
	delayed, err := rt.delayedMessages(ctx)
	if err != nil {
		return nil, err
	}
	w.apply(&journal.Batch{Send: delayed})
	runnable, err := rt.runnableAgents(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range runnable {
		inbox, err := rt.store.ReadInbox(ctx, id)
		if err := rt.logDamaged(err, "damaged messages not counted"); err != nil {
			return nil, err
		}
		w.apply(&journal.Batch{Send: inbox}) // one inbox at a time: messages may be large
	}
	return w, nil
}

// follow makes the counts follow a batch, in commit order.
func (w *waitingMail) follow(b *journal.Batch) {
	decide := b.Prepare
	b.Prepare = func(b *journal.Batch) error {
		if decide != nil {
			if err := decide(b); err != nil {
				return err
			}
		}
		w.apply(b)
		return nil
	}
}

// apply changes the counts as a batch changes the inboxes.
func (w *waitingMail) apply(b *journal.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range b.Send {
		w.add(identity.AgentID(m.To), m.From)
	}
	for _, e := range b.Events {
		if received, ok := e.Body.(journal.MessageReceived); ok {
			w.remove(b.Stream, received.Message.From)
		}
	}
	for _, id := range b.Purge {
		delete(w.agents, id)
	}
}

// add must be called with mu held.
func (w *waitingMail) add(to identity.AgentID, from string) {
	c := w.agents[to]
	if c == nil {
		c = &mailCount{bySender: map[string]int{}}
		w.agents[to] = c
	}
	c.total++
	c.bySender[from]++
}

// remove must be called with mu held.
func (w *waitingMail) remove(to identity.AgentID, from string) {
	c := w.agents[to]
	if c == nil || c.bySender[from] == 0 { // a damaged message that was not counted
		return
	}
	c.total--
	if c.bySender[from]--; c.bySender[from] == 0 {
		delete(c.bySender, from)
	}
	if c.total == 0 {
		delete(w.agents, to)
	}
}

// waiting returns how many messages wait for an agent.
func (w *waitingMail) waiting(id identity.AgentID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.agents[id]; c != nil {
		return c.total
	}
	return 0
}

// checkRoom returns an error with the code LimitExceeded if one more message may not wait for
// its recipient. One sender takes at most half of the places, rounded up, so that the others have the
// rest. That holds for senders whose messages are never refused, too. It is called within
// the commit.
func (w *waitingMail) checkRoom(m model.Message) error {
	limit := w.limit()
	share := senderShare(limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.agents[identity.AgentID(m.To)]
	if c == nil {
		return nil
	}
	if n := c.bySender[m.From]; n >= share {
		return mailError(m.To, limit, "%d of your messages wait for it, and at most %d of one sender may", n, share)
	}
	if n := c.placesTaken(limit); n >= limit {
		return mailError(m.To, limit, "%d messages of all senders wait for it, and at most %d may", n, limit)
	}
	return nil
}

// senderShare returns how many messages of one sender may wait for an agent.
func senderShare(limit int) int { return limit - limit/2 }

// placesTaken returns how many places the waiting messages take. Those of one sender take
// no more than its share.
func (c *mailCount) placesTaken(limit int) int {
	if c.total < limit { // the usual case, without looking at each sender
		return c.total
	}
	taken := 0
	for _, n := range c.bySender {
		taken += min(n, senderShare(limit))
	}
	return taken
}

// mailError returns the error of a message that is refused.
func mailError(to string, limit int, format string, n, most int) error {
	return errcode.New(errcode.LimitExceeded, "send to agent %q: "+format+"; send again when it has read some, or send one message that says it all", to, n, most).
		With("to", to).With("limit", limit)
}
