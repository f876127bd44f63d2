package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// key names what clients connect to: a role, and the group that narrows it, ""
// for none.
type key struct {
	role    identity.RoleID
	toolset toolgroups.GroupID
}

// endpoint is what clients connect to. It is kept ready, and told when its
// tools change, while it is in use.
type endpoint struct {
	key
	server *sdk.Server
	ctx    context.Context // ends when the role or group has gone
	cancel context.CancelFunc
	used   atomic.Int64 // when, in unix seconds
	busy   atomic.Int64 // requests under way

	mu      sync.Mutex // guards making listing anew
	listing atomic.Pointer[listing]
}

// maxEndpoints bounds how many are kept ready.
const maxEndpoints = 4096

// sweepInterval is how often idle sessions and endpoints are looked for.
const sweepInterval = time.Minute

// systemUser is the user in whose name the tools of a role are looked at when no
// client asks.
const systemUser = "mcp"

// endpoint gives the endpoint of a role and group that exist, for a request
// that is under way until leave.
func (s *Server) endpoint(k key) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[k]
	if e == nil {
		s.evictOldest()
		e = &endpoint{key: k}
		e.ctx, e.cancel = context.WithCancel(s.life)
		e.server = s.newServer(e)
		s.endpoints[k] = e
	}
	e.busy.Add(1)
	if !s.watching && s.life.Err() == nil {
		s.watching = true
		s.work.Go(s.watch)
	}
	return e
}

// leave says that a request has ended.
func (e *endpoint) leave() {
	e.used.Store(time.Now().Unix())
	e.busy.Add(-1)
}

// evictOldest makes room for an endpoint: of those without a session the one that was
// used longest ago goes. With mu held.
func (s *Server) evictOldest() {
	if len(s.endpoints) < maxEndpoints {
		return
	}
	held := s.inUse()
	var oldest *endpoint
	for _, e := range s.endpoints {
		if !held[e] && e.busy.Load() == 0 && (oldest == nil || e.used.Load() < oldest.used.Load()) {
			oldest = e
		}
	}
	if oldest != nil {
		s.removeEndpoint(oldest)
	}
}

// removeEndpoint lets go of an endpoint. With mu held.
func (s *Server) removeEndpoint(e *endpoint) {
	if s.endpoints[e.key] == e {
		delete(s.endpoints, e.key)
	}
	e.cancel()
}

// inUse lists the endpoints that have sessions. With mu held.
func (s *Server) inUse() map[*endpoint]bool {
	held := map[*endpoint]bool{}
	for _, session := range s.sessions {
		held[session.endpoint] = true
	}
	return held
}

// watch tells clients when the tools of their role have changed, ends the
// sessions of roles that are gone, and lets go of what is idle. It ends with
// the last endpoint.
func (s *Server) watch() {
	tick := time.NewTicker(min(sweepInterval, s.config.SessionTimeout))
	defer tick.Stop()
	for {
		changed := s.rt.Org().Changed()
		if !s.refreshAll() {
			return
		}
		select {
		case <-changed:
		case now := <-tick.C:
			s.expireIdle(now)
		case <-s.life.Done():
		}
	}
}

// refreshAll looks at every endpoint once; false when there is none any more.
func (s *Server) refreshAll() bool {
	s.mu.Lock()
	list := make([]*endpoint, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		list = append(list, e)
	}
	if len(list) == 0 || s.life.Err() != nil {
		s.watching = false
		s.mu.Unlock()
		return false
	}
	s.mu.Unlock()
	for _, e := range list {
		s.refresh(e)
	}
	return true
}

func (s *Server) refresh(e *endpoint) {
	role, ok := s.rt.Org().Role(e.role)
	if !ok || role.Status != org.Active || e.toolset != "" && !s.holds(role, e.toolset) {
		s.closeEndpoint(e)
		return
	}
	s.listed(e, s.rt.Gate().Subject(identity.ByCaller(systemUser, e.role)).Listable())
}

// closeEndpoint forgets an endpoint that is gone, with its sessions. Calls that run end
// as they would.
func (s *Server) closeEndpoint(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeEndpoint(e)
	for _, session := range s.sessions {
		if session.endpoint == e {
			s.end(session)
		}
	}
}

// expireIdle ends the sessions that are idle, and forgets endpoints that nobody
// uses.
func (s *Server) expireIdle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.busy == 0 && now.Sub(session.used) >= s.config.SessionTimeout {
			s.end(session)
		}
	}
	held := s.inUse()
	for _, e := range s.endpoints {
		if !held[e] && e.busy.Load() == 0 && now.Unix()-e.used.Load() >= int64(s.config.SessionTimeout/time.Second) {
			s.removeEndpoint(e)
		}
	}
}

// toolListFor gives what is listed to a caller now.
func (s *Server) toolListFor(d *clientScope) *listing {
	offered := s.rt.Gate().Subject(d.by).Listable()
	if len(offered) == 0 { // of this caller perhaps, while others of the role are offered more
		return s.newListing(d.endpoint.toolset, nil)
	}
	return s.listed(d.endpoint, offered)
}

// listed gives the listing of what the gate offers, which is made once for
// each View; its clients are told when it is another than before.
func (s *Server) listed(e *endpoint, offered []tool.Definition) *listing {
	if l := e.listing.Load(); l != nil && l.of(offered) {
		return l
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.listing.Load()
	if before != nil && before.of(offered) {
		return before
	}
	l := s.newListing(e.toolset, offered)
	e.listing.Store(l)
	if before != nil && !bytes.Equal(before.old, l.old) {
		e.notifyListChanged()
	}
	return l
}

// notifyListChanged has the SDK tell all sessions that the list has changed: it does so
// when it is given a tool. Nobody sees this one, and nobody can call it, since
// the SDK is asked for neither (sdk.go).
func (e *endpoint) notifyListChanged() {
	e.server.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
}
