package mcpserver

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"
)

// resumableVersion is the first protocol version in which a client can resume a stream before its first message.
const resumableVersion = "2025-11-25"

// heldCall is a call of a session whose client may lose the stream and resume it. The call ends when no client has
// read its stream for the time of the window. Until then the HTTP request that began it is not over: the call counts to
// the limits of its sender. It is safe for concurrent use.
type heldCall struct {
	ctx    context.Context // ends when the window has passed
	cancel context.CancelFunc
	window time.Duration
	ended  chan struct{} // closed when the call has ended
	finish func()        // closes ended; may be called twice

	mu     sync.Mutex // guards what follows
	reader *streamReader
	timer  *time.Timer // runs while there is no reader
}

// streamReader is the HTTP request to which the stream of a call is written.
type streamReader struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when it does not write any more
}

// holdCall returns a call that has no reader yet. ctx has its values, and does not end it.
func holdCall(ctx context.Context, window time.Duration) *heldCall {
	h := &heldCall{window: window, ended: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	h.finish = sync.OnceFunc(func() { close(h.ended) })
	return h
}

// read makes an HTTP request the only reader of the stream until done is called. The one before ends first: its
// connection may be lost without a sign. The context ends also when another request takes the stream.
func (h *heldCall) read(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	if h == nil {
		return ctx, cancel
	}
	own := &streamReader{cancel, make(chan struct{})}
	h.mu.Lock()
	before := h.reader
	h.reader = own
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	if before != nil {
		before.cancel()
		<-before.done
	}
	return ctx, func() {
		cancel()
		close(own.done)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.reader == own {
			h.reader = nil
			h.timer = time.AfterFunc(h.window, h.cancel)
		}
	}
}

// wait returns when the call has ended, or until, or when no client has resumed the stream in time.
func (h *heldCall) wait(until context.Context) {
	select {
	case <-h.ended:
	case <-h.ctx.Done():
	case <-until.Done():
	}
}

// close ends what the call holds.
func (h *heldCall) close() {
	h.cancel()
	h.finish()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
	}
}

// hasEnded reports whether the call has ended.
func (h *heldCall) hasEnded() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

type heldCallKey struct{}

// heldCallOf returns the held call of a request; nil if there is none.
func heldCallOf(ctx context.Context) *heldCall {
	h, _ := ctx.Value(heldCallKey{}).(*heldCall)
	return h
}

// isResumable reports whether a call of a session is answered with a stream that its client can resume.
func (s *Server) isResumable(r *http.Request, sc *clientScope, session *session, q *request) bool {
	version := r.Header.Get(versionHeader)
	if sc.jsonOnly || session.jsonOnly || version < resumableVersion || version >= statelessVersion {
		return false
	}
	return s.needsSDK(sc, session, q) || q.token != "" && q.secure == "" && (q.token[0] == '"' || isExactNumber(q.token))
}

// answerHeldCall passes a call of a session to the SDK. Its client may resume the stream.
func (s *Server) answerHeldCall(w http.ResponseWriter, r *http.Request, session *session, sc *clientScope, q *request) {
	held := holdCall(r.Context(), s.config.ResumeWindow)
	defer held.close()
	ctx, call, ok := s.beginCall(held.ctx, session, q.id)
	if !ok {
		writeDuplicateID(w, q)
		return
	}
	call.held = held
	defer call.endRequest()
	r.Header = maps.Clone(r.Header)
	defer s.carriers.add(ctx, r.Header)()
	reading, done := held.read(r.Context())
	s.forwardInSession(w, r.WithContext(context.WithValue(reading, heldCallKey{}, held)), session, sc, q)
	lost := reading.Err() != nil
	done()
	if !lost {
		return
	}
	until, stop := s.config.Streaming(context.WithoutCancel(r.Context()))
	defer stop()
	defer context.AfterFunc(s.lifetime, stop)()
	held.wait(until)
}
