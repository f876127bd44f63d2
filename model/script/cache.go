package script

import (
	"container/list"
	"sync"

	"github.com/rolecall/rolecall/identity"
)

// defaultKeep is how many brains are kept when nothing is said.
const defaultKeep = 64

// cache keeps the brains of the agents that were asked last. A brain that is
// taken out belongs to who took it until it is put back, so no two requests
// share one. Safe for concurrent use.
type cache struct {
	most int

	mu    sync.Mutex // guards the two below
	order *list.List // of entry, the last used in front
	found map[identity.AgentID]*list.Element
}

type entry struct {
	agent identity.AgentID
	brain *run
}

func newCache(keep int) *cache {
	if keep == 0 {
		keep = defaultKeep
	}
	return &cache{most: max(keep, 0), order: list.New(), found: make(map[identity.AgentID]*list.Element)}
}

// take removes an agent's brain from the cache and gives it, nil if there is
// none.
func (c *cache) take(agent identity.AgentID) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[agent]; e != nil {
		return c.drop(e)
	}
	return nil
}

// put gives an agent's brain to the cache, which closes what has no room.
func (c *cache) put(agent identity.AgentID, b *run) {
	for _, out := range c.insert(agent, b) {
		out.close()
	}
}

// insert gives the brains that have to go: an older one of the same agent, and
// those used longest ago.
func (c *cache) insert(agent identity.AgentID, b *run) (out []*run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[agent]; e != nil {
		out = append(out, c.drop(e))
	}
	c.found[agent] = c.order.PushFront(entry{agent, b})
	for c.order.Len() > c.most {
		out = append(out, c.drop(c.order.Back()))
	}
	return out
}

// clear closes all brains.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.order.Len() > 0 {
		c.drop(c.order.Back()).close()
	}
}

// drop needs c.mu.
func (c *cache) drop(e *list.Element) *run {
	out := c.order.Remove(e).(entry)
	delete(c.found, out.agent)
	return out.brain
}
