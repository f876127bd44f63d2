package gateway

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// connTable holds the open connections of a limitListener and decides which of
// them gives way to a new one. It is safe for concurrent use.
type connTable struct {
	limits func() ConnectionLimits

	mu        sync.Mutex // guards what follows, and the state of every trackedConn
	changed   sync.Cond  // a connection was closed, or may give way now
	conns     map[*trackedConn]struct{}
	all       connCounts
	addresses map[netip.Prefix]*connCounts
	closed    bool
}

func newConnTable(limits func() ConnectionLimits) *connTable {
	t := &connTable{limits: limits, conns: map[*trackedConn]struct{}{}, addresses: map[netip.Prefix]*connCounts{}}
	t.changed.L = &t.mu
	return t
}

// admit adds a new connection and closes connections that give way to it. It waits
// while none does. It returns nil if the share of the connection's address is used
// up, or when the table is closed.
func (t *connTable) admit(conn *net.TCPConn) *trackedConn {
	c := newTrackedConn(conn, t)
	for {
		limits := t.limits().orDefault()
		victim, decision := t.tryAdmit(c, limits)
		switch {
		case victim != nil:
			_ = victim.TCPConn.Close()
		case decision == admitConn:
			return c
		case decision == refuseConn:
			return nil
		}
	}
}

// admission is the decision about a new connection.
type admission uint8

const (
	retryConn  admission = iota // something has changed, decide again
	admitConn                   // it was added
	refuseConn                  // it must be closed
)

// tryAdmit adds a connection, or removes and returns the connection that gives way to it. It waits
// for a change if neither is possible.
func (t *connTable) tryAdmit(c *trackedConn, limits ConnectionLimits) (victim *trackedConn, decision admission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.viaProxy = limits.trusts(c.peer)
	among, full := t.findCandidates(c, limits)
	switch {
	case t.closed:
		return nil, refuseConn
	case !full:
		t.add(c)
		return nil, admitConn
	}
	victim, wait := t.pickVictim(among, limits.MinTime)
	switch {
	case victim != nil:
		t.drop(victim)
	case wait > 0:
		defer time.AfterFunc(wait, t.wake).Stop()
		t.changed.Wait()
	case among.address.IsValid(): // others must not wait for this address
		return nil, refuseConn
	default:
		t.changed.Wait()
	}
	return victim, retryConn
}

// candidates are the connections of which one must give way.
type candidates struct {
	address   netip.Prefix // only connections of this address; the zero Prefix is all
	anonymous bool         // only connections whose sender is not authenticated; else these come last
}

// include reports whether c is one of the candidates.
func (s candidates) include(c *trackedConn) bool {
	return (!s.address.IsValid() || c.address == s.address) && !(s.anonymous && c.authenticated)
}

// findCandidates returns the candidates to give way to a new connection if a limit is
// reached. The limit is the share of its address, or the limit of all connections.
// findCandidates must be called with mu held.
func (t *connTable) findCandidates(c *trackedConn, limits ConnectionLimits) (candidates, bool) {
	if !c.viaProxy {
		if anonymous, full := t.counts(c.address).reaches(limits.PerAddress); full {
			return candidates{address: c.address, anonymous: anonymous}, true
		}
	}
	anonymous, full := t.all.reaches(limits.Total)
	return candidates{anonymous: anonymous}, full
}

// connCounts counts connections.
type connCounts struct{ total, anonymous int }

// reaches reports whether one more anonymous connection exceeds a limit, or the part
// of it that is not reserved for authenticated senders.
func (c connCounts) reaches(limit int) (anonymous, full bool) {
	anonymous = c.anonymous >= limit-limit/reserveDivisor
	return anonymous, anonymous || c.total >= limit
}

// counts returns the connections of an address. It must be called with mu held.
func (t *connTable) counts(address netip.Prefix) connCounts {
	if n := t.addresses[address]; n != nil {
		return *n
	}
	return connCounts{}
}

// pickVictim returns the candidate that gives way first among those that have been
// open for minTime. Without one it returns after which time one will give way, 0 if
// none will. It must be called with mu held.
func (t *connTable) pickVictim(s candidates, minTime time.Duration) (first *trackedConn, wait time.Duration) {
	now := time.Now()
	for c := range t.conns {
		if c.rank() == rankNever || !s.include(c) {
			continue
		}
		if left := minTime - now.Sub(c.since); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		if first == nil || t.yieldsBefore(c, first) {
			first = c
		}
	}
	return first, wait
}

// yieldsBefore reports whether c gives way before o. Authenticated senders have more than
// their reserve when connections of both kinds are candidates, so theirs come first.
// After that the order is by yieldRank. Of equal ranks, connections of the address with
// the most connections come first, then the oldest connections. yieldsBefore must be
// called with mu held.
func (t *connTable) yieldsBefore(c, o *trackedConn) bool {
	if c.authenticated != o.authenticated {
		return c.authenticated
	}
	if a, b := c.rank(), o.rank(); a != b {
		return a < b
	}
	if a, b := t.weight(c), t.weight(o); a != b {
		return a > b
	}
	return c.since.Before(o.since)
}

// weight returns the number of connections of c's address, 1 for a trusted proxy. It
// must be called with mu held.
func (t *connTable) weight(c *trackedConn) int {
	if c.viaProxy {
		return 1
	}
	return t.counts(c.address).total
}

// evictOne closes the connection that gives way first. It reports whether there is
// one.
func (t *connTable) evictOne() bool {
	t.mu.Lock()
	victim, _ := t.pickVictim(candidates{}, 0)
	if victim != nil {
		t.drop(victim)
	}
	t.mu.Unlock()
	return victim != nil && victim.TCPConn.Close() == nil
}

// add adds a connection. It must be called with mu held.
func (t *connTable) add(c *trackedConn) {
	t.conns[c] = struct{}{}
	t.count(c, 1, 1)
}

// count adds to the counts of a connection. It must be called with mu held.
func (t *connTable) count(c *trackedConn, total, anonymous int) {
	n := t.addresses[c.address]
	if n == nil {
		n = &connCounts{}
		t.addresses[c.address] = n
	}
	for _, n := range []*connCounts{n, &t.all} {
		n.total += total
		n.anonymous += anonymous
	}
	if n.total == 0 {
		delete(t.addresses, c.address)
	}
}

// remove removes a connection that is closed.
func (t *connTable) remove(c *trackedConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(c)
}

// drop removes a connection, unless it was removed before. Further requests of it are
// not served. It must be called with mu held.
func (t *connTable) drop(c *trackedConn) {
	if c.gone {
		return
	}
	c.gone = true
	delete(t.conns, c)
	if c.authenticated {
		t.count(c, -1, 0)
	} else {
		t.count(c, -1, -1)
	}
	t.changed.Broadcast()
}

// setAuthenticated records whether the last request of a connection was authenticated. It
// must be called with mu held.
func (t *connTable) setAuthenticated(c *trackedConn, authenticated bool) {
	if c.gone || c.authenticated == authenticated {
		return
	}
	if c.authenticated = authenticated; authenticated {
		t.count(c, 0, -1)
	} else {
		t.count(c, 0, 1)
	}
	t.changed.Broadcast()
}

// wake lets waiting calls of admit decide again.
func (t *connTable) wake() {
	t.mu.Lock() // a call that is about to wait holds it
	defer t.mu.Unlock()
	t.changed.Broadcast()
}

// close ends waiting calls of admit.
func (t *connTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.changed.Broadcast()
}
