package mcpserver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
)

// session is a session of the SDK, bound to the sender, role and endpoint that
// started it. Other senders are answered as if it did not exist. Server.mu
// guards the fields that change.
type session struct {
	clientScope        // when the session started
	id          string // session id of the protocol
	sdk         *sdk.ServerSession
	lastUsed    time.Time // when its last request began or ended
	active      int       // requests in progress
	ended       bool
	wantsLog    bool                    // its client has set a log level
	calls       map[string]*sessionCall // calls that the SDK does not know, by canonicalID
	leftTasks   []leftTask              // tasks that go on after their calls were lost
}

// leftTask is a task whose call was lost.
type leftTask struct {
	call string // the id of the request, by canonicalID
	task identity.TaskID
}

// maxSessions limits the sessions of all senders together.
const maxSessions = 8192

// beginSession registers a session that the SDK has started. It reports false
// if there are too many and none is idle. A session on stdio is never idle.
func (s *Server) beginSession(sc *clientScope, ss *sdk.ServerSession, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifetime.Err() != nil || s.endpoints[sc.endpoint.endpointKey] != sc.endpoint || !s.makeRoomForSession(sc.sender) {
		return false
	}
	s.sessions[id] = &session{clientScope: *sc, id: id, sdk: ss, lastUsed: time.Now(), active: ifElse(sc.lines, 1, 0), calls: map[string]*sessionCall{}}
	return true
}

// forgetSession unregisters a session that has ended or failed to start.
func (s *Server) forgetSession(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// makeRoomForSession makes sure that a sender may have one more session. If it
// has to, it ends the sender's session that has been idle longest.
// makeRoomForSession must be called with mu held.
func (s *Server) makeRoomForSession(sender identity.Principal) bool {
	if len(s.sessions) >= maxSessions {
		return false
	}
	count := 0
	var oldest *session
	for _, session := range s.sessions {
		if session.sender != sender {
			continue
		}
		count++
		if session.active == 0 && (oldest == nil || session.lastUsed.Before(oldest.lastUsed)) {
			oldest = session
		}
	}
	if count < s.config.Sessions {
		return true
	}
	if oldest == nil {
		return false
	}
	s.endSession(oldest)
	return true
}

// endSession ends a session in the background; the SDK waits for its calls. It
// must be called with mu held.
func (s *Server) endSession(session *session) {
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

// acquireSession returns the session with this id and counts a request of it
// until release is called. It returns nil unless sender, role and endpoint are
// the same as at the start of the session.
func (s *Server) acquireSession(sc *clientScope, id string) (session *session, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session = s.sessions[id]
	if session == nil || session.sender != sc.sender || session.caller != sc.caller || session.endpoint.endpointKey != sc.endpoint.endpointKey {
		return nil, nil
	}
	session.active++
	session.lastUsed = time.Now()
	return session, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		session.active--
		session.lastUsed = time.Now()
	}
}

// beginCall registers a call of a session under its request id, so that it can
// be cancelled. It returns the context of the call, which has the call under callKey. It reports
// false if a call with the same id is in progress.
func (s *Server) beginCall(ctx context.Context, session *session, id string) (context.Context, *sessionCall, bool) {
	id = canonicalID(id)
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if session.calls[id] != nil {
		cancel()
		return nil, nil, false
	}
	call := &sessionCall{session: session, id: id, cancel: cancel}
	call.end = func() {
		s.mu.Lock()
		if session.calls[id] == call {
			delete(session.calls, id)
		}
		s.mu.Unlock()
		if call.held != nil {
			call.held.finish()
		}
	}
	session.calls[id] = call
	return context.WithValue(ctx, callKey{}, call), call, true
}

// sessionCall is a call that was registered by beginCall.
type sessionCall struct {
	session   *session
	id        string // by canonicalID
	cancel    context.CancelFunc
	cancelled bool        // by its client; guarded by Server.mu
	end       func()      // unregisters the call
	sdkOwns   atomic.Bool // the SDK carries it out, perhaps for longer than its HTTP request
	held      *heldCall   // nil if the client cannot resume its stream
}

// endRequest cancels the context of the call with its HTTP request. It also ends the call, unless the SDK carries
// it out and ends it.
func (c *sessionCall) endRequest() {
	c.cancel()
	if !c.sdkOwns.Load() {
		c.end()
	}
}

type callKey struct{}

// maxLeftTasks is the number of tasks that a session remembers after it lost their calls.
const maxLeftTasks = 16

// leaveTask lets the task of an ended call go on, unless the client has cancelled the
// call; it reports which. It remembers the task for a while, because many clients close
// the connection first and cancel the request then.
func (s *Server) leaveTask(ctx context.Context, sc *clientScope, task identity.TaskID) bool {
	call, ok := ctx.Value(callKey{}).(*sessionCall)
	if !ok {
		return sc.isConnected == nil || !sc.isConnected()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.cancelled {
		return false
	}
	call.session.leftTasks = append(call.session.leftTasks, leftTask{call.id, task})
	if n := len(call.session.leftTasks) - maxLeftTasks; n > 0 {
		call.session.leftTasks = call.session.leftTasks[n:]
	}
	delete(call.session.calls, call.id) // a cancellation from now on is for the task
	return true
}

// cancelLeftTask cancels the task of a call whose connection was lost. It reports false if
// there is none with this id.
func (s *Server) cancelLeftTask(ctx context.Context, session *session, id string) bool {
	s.mu.Lock()
	at := slices.IndexFunc(session.leftTasks, func(l leftTask) bool { return l.call == canonicalID(id) })
	if at < 0 {
		s.mu.Unlock()
		return false
	}
	task := session.leftTasks[at].task
	session.leftTasks = slices.Delete(session.leftTasks, at, at+1)
	s.mu.Unlock()
	s.cancelTask(ctx, task, "the call that started the task was cancelled")
	return true
}

// cancelCall cancels a call registered by beginCall. It reports false if there
// is none with this id.
func (s *Server) cancelCall(session *session, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := session.calls[canonicalID(id)]
	if call != nil {
		call.cancelled = true
		call.cancel()
	}
	return call != nil
}

// closeSession ends a session at its client's request and cancels its calls.
func (s *Server) closeSession(session *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range session.calls {
		call.cancel()
	}
	s.endSession(session)
}
