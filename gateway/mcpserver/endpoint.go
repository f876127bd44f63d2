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

// endpointKey identifies what clients connect to: a role, the limit of its caller, and the
// tool group that narrows it, "" for none.
type endpointKey struct {
	role    identity.RoleID
	within  string // identity.Principal.Within
	toolset toolgroups.GroupID
}

// caller returns the caller of an endpoint as which the server reads its tools without a
// client request.
func (k endpointKey) caller() identity.Principal {
	p := identity.ByCaller(systemUser, k.role)
	p.Within = k.within
	return p
}

// endpoint serves the clients of one role and group. It caches their tool list,
// and is notified of changes as long as it is in use.
type endpoint struct {
	endpointKey
	server   *sdk.Server
	handle   sdk.MethodHandler // of server, without the middleware of this package
	ctx      context.Context   // ends when the role or group has been removed
	cancel   context.CancelFunc
	lastUsed atomic.Int64 // unix seconds
	active   atomic.Int64 // requests in progress

	mu      sync.Mutex // held while listing is rebuilt
	listing atomic.Pointer[listing]
}

// maxEndpoints limits the number of cached endpoints.
const maxEndpoints = 4096

// sweepInterval is how often idle sessions and endpoints are removed.
const sweepInterval = time.Minute

// systemUser is the user name under which the server reads a role's tools when
// it refreshes an endpoint without a client request.
const systemUser = "mcp"

// acquireEndpoint returns the endpoint of a role and group, which must exist.
// It counts a request in progress; the caller must call release when the
// request ends.
func (s *Server) acquireEndpoint(k endpointKey) *endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.endpoints[k]
	if e == nil {
		s.evictOldest()
		e = &endpoint{endpointKey: k}
		e.ctx, e.cancel = context.WithCancel(s.lifetime)
		e.server = s.newSDKServer(e)
		s.endpoints[k] = e
	}
	e.active.Add(1)
	if !s.watching && s.lifetime.Err() == nil {
		s.watching = true
		s.work.Go(s.watchEndpoints)
	}
	return e
}

// release ends a request that acquireEndpoint counted.
func (e *endpoint) release() {
	e.lastUsed.Store(time.Now().Unix())
	e.active.Add(-1)
}

// evictOldest removes the least recently used endpoint without sessions if the
// limit is reached. It must be called with mu held.
func (s *Server) evictOldest() {
	if len(s.endpoints) < maxEndpoints {
		return
	}
	inUse := s.endpointsInUse()
	var oldest *endpoint
	for _, e := range s.endpoints {
		if !inUse[e] && e.active.Load() == 0 && (oldest == nil || e.lastUsed.Load() < oldest.lastUsed.Load()) {
			oldest = e
		}
	}
	if oldest != nil {
		s.removeEndpoint(oldest)
	}
}

// removeEndpoint deletes an endpoint and cancels its context. It must be called
// with mu held.
func (s *Server) removeEndpoint(e *endpoint) {
	if s.endpoints[e.endpointKey] == e {
		delete(s.endpoints, e.endpointKey)
	}
	e.cancel()
}

// endpointsInUse returns the endpoints that have sessions. It must be called
// with mu held.
func (s *Server) endpointsInUse() map[*endpoint]bool {
	inUse := map[*endpoint]bool{}
	for _, session := range s.sessions {
		inUse[session.endpoint] = true
	}
	return inUse
}

// watchEndpoints refreshes the endpoints when the organization changes: it notifies
// clients of changed tool lists and closes endpoints of removed roles. It also
// expires idle sessions and endpoints. It returns when there is no endpoint
// left.
func (s *Server) watchEndpoints() {
	tick := time.NewTicker(min(sweepInterval, s.config.SessionTimeout))
	defer tick.Stop()
	for {
		changed := s.rt.Org().EpochChanged()
		if !s.refreshAll() {
			return
		}
		select {
		case <-changed:
		case now := <-tick.C:
			s.expireIdle(now)
		case <-s.lifetime.Done():
		}
	}
}

// refreshAll refreshes every endpoint once. It reports false and stops the watch when there is no
// endpoint, or when the server is closed.
func (s *Server) refreshAll() bool {
	s.mu.Lock()
	list := make([]*endpoint, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		list = append(list, e)
	}
	if len(list) == 0 || s.lifetime.Err() != nil {
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

// refresh rebuilds the tool list of an endpoint, or closes the endpoint if its
// role or group has been removed.
func (s *Server) refresh(e *endpoint) {
	role, ok := s.rt.Org().RoleByID(e.role)
	if !ok || role.Status != org.Active || e.toolset != "" && !s.rt.Org().CallerHasGroup(e.caller(), e.toolset) {
		s.closeEndpoint(e)
		return
	}
	s.cachedListing(e, s.rt.Gate().Subject(e.caller()).ListableTools())
}

// closeEndpoint removes an endpoint and ends its sessions. Calls in progress
// run to their end.
func (s *Server) closeEndpoint(e *endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeEndpoint(e)
	for _, session := range s.sessions {
		if session.endpoint == e {
			s.endSession(session)
		}
	}
}

// expireIdle ends idle sessions and removes endpoints that are not used.
func (s *Server) expireIdle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.active == 0 && now.Sub(session.lastUsed) >= s.config.SessionTimeout {
			s.endSession(session)
		}
	}
	inUse := s.endpointsInUse()
	for _, e := range s.endpoints {
		if !inUse[e] && e.active.Load() == 0 && now.Unix()-e.lastUsed.Load() >= int64(s.config.SessionTimeout/time.Second) {
			s.removeEndpoint(e)
		}
	}
}

// toolListFor returns the tool list of a caller now.
func (s *Server) toolListFor(sc *clientScope) *listing {
	offered := s.rt.Gate().Subject(sc.caller).ListableTools()
	if len(offered) == 0 { // perhaps only this caller, because of its workflow state
		return s.newListing(sc.endpoint.toolset, nil, s.taskRightOf(sc.caller))
	}
	return s.cachedListing(sc.endpoint, offered)
}

// cachedListing returns the tool list for what the gate offers. It is built
// once for each View and taskRight; clients are notified when it differs from the previous
// one.
func (s *Server) cachedListing(e *endpoint, offered []tool.Definition) *listing {
	tasks := s.taskRightOf(e.caller())
	if l := e.listing.Load(); l != nil && l.builtFrom(offered, tasks) {
		return l
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.listing.Load()
	if before != nil && before.builtFrom(offered, tasks) {
		return before
	}
	l := s.newListing(e.toolset, offered, tasks)
	e.listing.Store(l)
	if before != nil && !bytes.Equal(before.statelessJSON, l.statelessJSON) {
		e.notifyListChanged()
	}
	return l
}

// notifyListChanged makes the SDK notify all sessions that the list has
// changed, which the SDK does when a tool is added. The added tool is never
// listed or called, because the server answers tools/list and tools/call itself
// (sdk.go).
func (e *endpoint) notifyListChanged() {
	e.server.AddTool(&sdk.Tool{Name: "changed", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
}
