package script

import (
	"container/list"
	"sync"

	"github.com/rolecall/rolecall/identity"
)

// How many agents a cache has by default: in worker processes, whose memory is bounded, and in
// this process.
const (
	defaultCacheSize   = 1024
	inProcessCacheSize = 64
)

// cache holds the runs of the agents that were asked most recently. A run is removed while
// it is used, so two requests never share one. It is safe for concurrent use.
type cache struct {
	size int

	mu      sync.Mutex // guards the fields below
	recent  *list.List // of cacheEntry, the most recently used first
	byAgent map[identity.AgentID]*list.Element
}

type cacheEntry struct {
	agent identity.AgentID
	run   *run
}

// newCache returns a cache of size runs, none if it is negative.
func newCache(size int) *cache {
	return &cache{size: max(size, 0), recent: list.New(), byAgent: make(map[identity.AgentID]*list.Element)}
}

// take removes an agent's run from the cache and returns it, nil if there is none.
func (c *cache) take(agent identity.AgentID) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byAgent[agent]; e != nil {
		return c.remove(e)
	}
	return nil
}

// put adds an agent's run and closes the runs that it displaces.
func (c *cache) put(agent identity.AgentID, r *run) {
	for _, displaced := range c.insert(agent, r) {
		displaced.close()
	}
}

// insert adds a run. It returns the runs that were removed: an older one of the same agent,
// and the least recently used.
func (c *cache) insert(agent identity.AgentID, r *run) (removed []*run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byAgent[agent]; e != nil {
		removed = append(removed, c.remove(e))
	}
	c.byAgent[agent] = c.recent.PushFront(cacheEntry{agent, r})
	for c.recent.Len() > c.size {
		removed = append(removed, c.remove(c.recent.Back()))
	}
	return removed
}

// drop removes a run whose virtual machine is lost, if it is not used.
func (c *cache) drop(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byAgent[r.agent]; e != nil && e.Value.(cacheEntry).run == r {
		c.remove(e)
	}
}

// clear closes all runs.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.recent.Len() > 0 {
		c.remove(c.recent.Back()).close()
	}
}

// remove must be called with mu held.
func (c *cache) remove(e *list.Element) *run {
	entry := c.recent.Remove(e).(cacheEntry)
	delete(c.byAgent, entry.agent)
	return entry.run
}
