package script

import (
	"bytes"
	"container/list"
	"slices"
	"sync"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
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
	brain *brain
}

func newCache(keep int) *cache {
	if keep == 0 {
		keep = defaultKeep
	}
	return &cache{most: max(keep, 0), order: list.New(), found: make(map[identity.AgentID]*list.Element)}
}

// take removes an agent's brain from the cache and gives it, nil if there is
// none.
func (c *cache) take(agent identity.AgentID) *brain {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.found[agent]; e != nil {
		return c.drop(e)
	}
	return nil
}

// put gives an agent's brain to the cache, which closes what has no room.
func (c *cache) put(agent identity.AgentID, b *brain) {
	for _, out := range c.insert(agent, b) {
		out.close()
	}
}

// insert gives the brains that have to go: an older one of the same agent, and
// those used longest ago.
func (c *cache) insert(agent identity.AgentID, b *brain) (out []*brain) {
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
func (c *cache) drop(e *list.Element) *brain {
	out := c.order.Remove(e).(entry)
	delete(c.found, out.agent)
	return out.brain
}

// remember notes how far b has come.
func (b *brain) remember(c *conversation) {
	b.fed = append(b.fed, c.items[len(b.fed):]...)
	b.self = c.self
}

// fits reports whether b stands exactly where feeding all of c would bring it
// on the way: the conversation it came through is the beginning of c, c is
// still in the same run, and the step b is in is recorded, or asked for, with
// what b saw in it.
func (b *brain) fits(c *conversation) bool {
	now := c.self
	now.State = b.self.State
	if b.vm == nil || now != b.self || len(b.fed) > len(c.items) {
		return false
	}
	if c.first > b.next || !b.sawAs(c) {
		return false
	}
	return slices.EqualFunc(b.fed, c.items[:len(b.fed)], sameItem)
}

// sawAs reports whether the step b is in has the view and the reading of c.
func (b *brain) sawAs(c *conversation) bool {
	if a := c.recorded(b.next); a != nil && a.entry.Read != b.read {
		return false
	}
	if b.next >= len(c.views) {
		return false
	}
	v := c.views[b.next]
	return v.state == b.seen.state && slices.Equal(v.tools, b.seen.tools)
}

// sameItem compares what a brain can read of two items. A runtime that keeps
// its items gives the same pointers again, which is the fast way.
func sameItem(a, b model.Item) bool {
	if a == b {
		return true
	}
	switch {
	case a.Message != nil && b.Message != nil:
		return sameMessage(a.Message, b.Message)
	case a.Answer != nil && b.Answer != nil:
		return sameAnswer(a.Answer, b.Answer)
	case a.Result != nil && b.Result != nil:
		return sameResult(a.Result, b.Result)
	}
	return false
}

func sameMessage(a, b *model.Message) bool {
	return a.ID == b.ID && a.From == b.From && a.Task == b.Task &&
		bytes.Equal(a.Payload, b.Payload) && a.CreatedAt.Equal(b.CreatedAt)
}

func sameAnswer(a, b *model.Answer) bool {
	return a.Finish == b.Finish && a.Read == b.Read && a.Text == b.Text && a.State == b.State &&
		(a.Tools == nil) == (b.Tools == nil) && slices.Equal(a.Tools, b.Tools) &&
		slices.EqualFunc(a.Calls, b.Calls, sameCall)
}

func sameCall(a, b model.Call) bool {
	return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
}

func sameResult(a, b *model.Result) bool {
	return a.Call == b.Call && a.Tool == b.Tool && a.IsError == b.IsError && bytes.Equal(a.Content, b.Content)
}
