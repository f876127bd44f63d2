package mcpserver

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
)

// session is a conversation that the SDK keeps, bound to who began it and at
// what: to anybody else its id is that of no session. All of it is guarded by
// Server.mu but what does not change.
type session struct {
	clientScope        // as it was when the session began
	id          string // of the protocol
	sdk         *sdk.ServerSession
	used        time.Time // when its last request began or ended
	busy        int       // requests under way
	ended       bool
	calls       map[string]context.CancelFunc // calls under way that the SDK does not know, by what their id means
}

// maxSessions bounds the sessions of all senders.
const maxSessions = 8192

// begin notes a session that the SDK has begun; false when there are too many
// and none is idle.
// One on lines is never idle.
func (s *Server) begin(d *clientScope, ss *sdk.ServerSession, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil || s.endpoints[d.endpoint.key] != d.endpoint || !s.makeRoomForSession(d.sender) {
		return false
	}
	s.sessions[id] = &session{clientScope: *d, id: id, sdk: ss, used: time.Now(), busy: cond(d.stdio, 1, 0), calls: map[string]context.CancelFunc{}}
	return true
}

// forget forgets a session that has ended, or did not begin.
func (s *Server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// makeRoomForSession makes room for one more session of a sender: its session that has been
// idle longest ends. With mu held.
func (s *Server) makeRoomForSession(sender identity.Principal) bool {
	if len(s.sessions) >= maxSessions {
		return false
	}
	own := 0
	var oldest *session
	for _, session := range s.sessions {
		if session.sender != sender {
			continue
		}
		own++
		if session.busy == 0 && (oldest == nil || session.used.Before(oldest.used)) {
			oldest = session
		}
	}
	if own < s.config.Sessions {
		return true
	}
	if oldest == nil {
		return false
	}
	s.end(oldest)
	return true
}

// end ends a session. The SDK waits for its calls. With mu held.
func (s *Server) end(session *session) {
	if session.ended {
		return
	}
	session.ended = true
	delete(s.sessions, session.id)
	s.work.Go(func() {
		if err := session.sdk.Close(); err != nil {
			s.log.Debug("MCP session closed", "error", err)
		}
	})
}

// find gives the session of this id, if it was begun through such a door, and
// counts a request of it until leave is called.
func (s *Server) find(d *clientScope, id string) (session *session, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session = s.sessions[id]
	if session == nil || session.sender != d.sender || session.by != d.by || session.endpoint.key != d.endpoint.key {
		return nil, nil
	}
	session.busy++
	session.used = time.Now()
	return session, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		session.busy--
		session.used = time.Now()
	}
}

// calling notes a call of a session under its request's id, so that it can be
// cancelled; false when the id is that of another call under way. It gives the
// context of the call, which also ends when done is called.
func (s *Server) calling(ctx context.Context, session *session, id string) (_ context.Context, done func(), ok bool) {
	id = meant(id)
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.calls[id] != nil {
		cancel()
		return nil, nil, false
	}
	session.calls[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(session.calls, id)
		s.mu.Unlock()
		cancel()
	}, true
}

// cancel ends a call that calling noted; false when there is none of this id.
func (s *Server) cancel(session *session, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end := session.calls[meant(id)]
	if end != nil {
		end()
	}
	return end != nil
}

// close ends a session because its client says so, and its calls with it.
func (s *Server) close(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, end := range session.calls {
		end()
	}
	s.end(session)
}
