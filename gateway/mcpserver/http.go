package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// How a POST is answered. servePOST checks the headers, reads the body
// (readBody) and passes the request on by three questions:
//
//	version has   session       simple     handler
//	sessions?     id given?     request?
//	-----------   -----------   --------   ------------------------------------
//	no            -             yes        handleStateless, answerSimple
//	no            -             no         handleStateless, forwardToSDK
//	yes           none          yes        handleSession, answerWithoutSession
//	yes           none          no         handleSession, answerWithoutSession; forwardToSDK (initialize, ping)
//	yes           known         yes        handleSession, answerInSession
//	yes           known         no         handleSession, forwardToSDK
//	yes           unknown       -          handleSession, writeSessionNotFound
//
// isStateless answers the first question, acquireSession the second, and
// request.simple the third: one tools/list, tools/call or cancellation that
// readRequest understands completely (request.go). Only simple requests are
// answered here, by answerSimple; both answerWithoutSession (toolbox.go) and
// answerInSession end there. The SDK answers the rest and comes back to the same
// functions for tool lists and calls (sdk.go).
//
// There are exceptions. A cancellation outside a session goes to the SDK. Some simple calls do, too. Such a call
// may ask the client or log (needsSDK), its client may resume the stream, or its headers do not repeat the body.
// Requests of an unknown method are rejected in every row. A batch outside a session is answered
// message by message (batch.go). A tools/list with the session of a role is also answered at one
// of the role's groups (isRoleSession), because clients of MCP Toolbox send it.

// HTTP headers of the MCP transport.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"

	lastEventHeader = "Last-Event-Id"
)

// Limits for one request.
const (
	maxBodyBytes = strictjson.MaxSize
	maxBatch     = 64  // messages
	maxEchoBytes = 100 // bytes of a client's text that an error message repeats
)

// acquireSlots counts n requests of sender until release is called. If the sender
// has too many in progress, it answers with an error and reports false.
func (s *Server) acquireSlots(w http.ResponseWriter, sender identity.Principal, n int) (release func(), ok bool) {
	release, err := s.limiter.acquire(sender, n)
	if err != nil {
		writeError(w, http.StatusTooManyRequests, "", codeBusy, errcode.Message(err))
	}
	return release, err == nil
}

// servePOST answers a POST request, which carries one message or a batch.
func (s *Server) servePOST(w http.ResponseWriter, r *http.Request, sc *clientScope) error {
	release, ok := s.acquireSlots(w, sc.sender, 1)
	if !ok {
		return nil
	}
	defer release()
	document, stream, anything := parseAccept(r.Header["Accept"])
	switch {
	case !document:
		writeError(w, http.StatusNotAcceptable, "", jsonrpc.CodeInvalidRequest, "the Accept header must include application/json and text/event-stream")
		return nil
	case !isJSON(r.Header.Get("Content-Type")):
		writeError(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "the Content-Type header must be application/json")
		return nil
	}
	sc.jsonOnly, sc.acceptsAnyType = !stream, anything
	q, releaseBody, ok := s.readBody(w, r, sc.sender)
	defer releaseBody()
	if !ok {
		return nil
	}
	if err := countBatch(r.Context(), q); err != nil {
		return err
	}
	if isStateless(r, q) {
		s.handleStateless(w, r, sc, q)
	} else {
		s.handleSession(w, r, sc, q)
	}
	return nil
}

// isJSON reports whether a Content-Type header names JSON.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// readBody reads and parses the body strictly. If it reports false, the request
// has been answered. The caller calls release in any case. The listener limits how
// long the body may take to arrive.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, sender identity.Principal) (_ *request, release func(), ok bool) {
	body, release, err := s.limiter.ReadBody(http.MaxBytesReader(WithoutWriteTimeout(w), r.Body, maxBodyBytes), sender, r.ContentLength, maxBodyBytes)
	if err != nil {
		writeBodyError(w, err)
		return nil, release, false
	}
	if err := strictjson.CheckKeys(body, nil); err != nil {
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeParseError, "the body is malformed or ambiguous JSON: "+err.Error())
		return nil, release, false
	}
	if envelopeTooLarge(body) {
		writeError(w, http.StatusRequestEntityTooLarge, "", jsonrpc.CodeInvalidRequest, envelopeError)
		return nil, release, false
	}
	q := readRequest(body)
	return q, release, !rejectEarly(w, r, q)
}

// writeBodyError answers a request whose body was not read.
func writeBodyError(w http.ResponseWriter, err error) {
	_, tooBig := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooBig:
		writeError(w, http.StatusRequestEntityTooLarge, "", jsonrpc.CodeInvalidRequest, fmt.Sprintf("the body has more than %d bytes", maxBodyBytes))
	case errcode.CodeOf(err) == errcode.RateLimited:
		writeError(w, http.StatusTooManyRequests, "", codeBusy, errcode.Message(err))
	case errcode.CodeOf(err) == errcode.Unauthenticated:
		writeError(w, http.StatusUnauthorized, "", codeNoSession, tokenInvalid)
	default:
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeParseError, "the body could not be read")
	}
}

// rejectEarly answers requests that are rejected, or ignored, whatever their
// sender and role. It reports whether it has answered.
func rejectEarly(w http.ResponseWriter, r *http.Request, q *request) bool {
	switch {
	case q.batch && !batchAllowed(r, q):
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, fmt.Sprintf("batches are supported only in version 2025-03-26, with at most %d messages", maxBatch))
	case q.batch && r.Header.Get(sessionHeader) != "" && q.countLists() > 1:
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "a batch of a session must not contain more than one tools/list")
	case q.badID:
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "the id must be a string or a number")
	case !versionSupported(r):
		writeUnsupportedVersion(w, r, q.id)
	case q.isNotification():
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// versionSupported reports whether the version header is absent or names a
// supported version.
func versionSupported(r *http.Request) bool {
	version := r.Header.Get(versionHeader)
	return version == "" || slices.Contains(versions[:], version)
}

// writeUnsupportedVersion rejects a request of an unsupported version and lists
// the supported ones.
func writeUnsupportedVersion(w http.ResponseWriter, r *http.Request, id string) {
	e := newRPCError(sdk.CodeUnsupportedProtocolVersion, "unsupported protocol version")
	e.Data = marshal(sdk.UnsupportedProtocolVersionData{Supported: versions[:], Requested: textutil.Truncate(r.Header.Get(versionHeader), maxEchoBytes)})
	writeJSON(w, http.StatusBadRequest, encodeError(id, e))
}

// writeMethodNotFound rejects a request of an unknown method. Callers in a
// session use status 200, because 404 means that the session has ended.
func writeMethodNotFound(w http.ResponseWriter, q *request, status int) {
	writeJSON(w, status, encodeError(q.id, errMethodNotFound(q)))
}

func errMethodNotFound(q *request) *jsonrpc.Error {
	return newRPCError(jsonrpc.CodeMethodNotFound, "there is no method "+textutil.Truncate(q.method, maxEchoBytes))
}

// batchAllowed reports whether the version allows batches and the batch is
// small enough.
func batchAllowed(r *http.Request, q *request) bool {
	version := r.Header.Get(versionHeader)
	if version != "" && version != "2025-03-26" {
		return false
	}
	n := 0
	gjson.ParseBytes(q.body).ForEach(func(_, _ gjson.Result) bool {
		n++
		return n <= maxBatch
	})
	return n <= maxBatch
}

// isStateless reports whether a request uses a protocol version without
// sessions.
func isStateless(r *http.Request, q *request) bool {
	return r.Header.Get(versionHeader) >= statelessVersion || q.version >= statelessVersion || q.method == "server/discover"
}

// handleStateless answers a request of a version without sessions.
func (s *Server) handleStateless(w http.ResponseWriter, r *http.Request, sc *clientScope, q *request) {
	if q.isUnknownMethod() {
		writeMethodNotFound(w, q, http.StatusNotFound)
		return
	}
	if how := s.paramHeaderMismatch(sc, r.Header, q); how != "" {
		writeError(w, http.StatusBadRequest, q.id, sdk.CodeHeaderMismatch, how)
		return
	}
	if q.simple && q.id != "" && headersMatchBody(r, q) {
		s.answerSimple(w, r, sc, q, noSessions)
		return
	}
	ctx := r.Context()
	if q.method == "subscriptions/listen" {
		var cancel context.CancelFunc
		ctx, cancel = s.config.Streaming(ctx)
		defer cancel()
		defer context.AfterFunc(sc.endpoint.ctx, cancel)()
	}
	oneDocument := sc.jsonOnly || q.method == methodCallTool && q.token == "" && !q.wantsLog
	s.forwardToSDK(s.transports.stateless[transportIndex(oneDocument)], w, r.WithContext(ctx), sc, q)
}

// headersMatchBody reports whether the Mcp-* headers repeat the version, method
// and tool of the body. Others are left to the SDK, which rejects a mismatch.
func headersMatchBody(r *http.Request, q *request) bool {
	return r.Header.Get(versionHeader) == statelessVersion && q.version == statelessVersion &&
		r.Header.Get(methodHeader) == q.method && (q.method == methodListTools || r.Header.Get(nameHeader) == q.name && q.name != "") &&
		r.Header[lastEventHeader] == nil
}

// handleSession answers a request of a version with sessions.
func (s *Server) handleSession(w http.ResponseWriter, r *http.Request, sc *clientScope, q *request) {
	id := r.Header.Get(sessionHeader)
	if id == "" && s.answerWithoutSession(w, r, sc, q) {
		return
	}
	if id == "" { // initialize starts a session
		s.forwardToSDK(s.transports.stateful[transportIndex(sc.jsonOnly)], w, r, sc, q)
		return
	}
	session, release := s.acquireSession(sc, id)
	if session == nil {
		if !s.isRoleSession(sc, id, q) || !s.answerWithoutSession(w, r, sc, q) {
			writeSessionNotFound(w, q.id)
		}
		return
	}
	defer release()
	if q.batch { // the SDK runs its requests at once
		release, ok := s.acquireSlots(w, sc.sender, q.countRequests()-1)
		if !ok {
			return
		}
		defer release()
	}
	if s.answerInSession(w, r, session, sc, q) {
		return
	}
	s.forwardInSession(w, r, session, sc, q)
}

// forwardInSession passes a request of a session to the SDK.
func (s *Server) forwardInSession(w http.ResponseWriter, r *http.Request, session *session, sc *clientScope, q *request) {
	if sc.jsonOnly && !session.jsonOnly && !sc.acceptsAnyType {
		writeError(w, http.StatusNotAcceptable, q.id, jsonrpc.CodeInvalidRequest, "the session was started with text/event-stream accepted; each of its requests must accept it")
		return
	}
	sc.jsonOnly = sc.jsonOnly || session.jsonOnly
	s.forwardToSDK(s.transports.stateful[transportIndex(session.jsonOnly)], w, r, sc, q)
}

// writeSessionNotFound answers 404, after which clients initialize a new
// session.
func writeSessionNotFound(w http.ResponseWriter, id string) {
	writeError(w, http.StatusNotFound, id, codeNoSession, "there is no such session; initialize a new one")
}

// answerInSession answers a simple request of a session. It reports false,
// without answering, for requests that the SDK must answer.
func (s *Server) answerInSession(w http.ResponseWriter, r *http.Request, session *session, sc *clientScope, q *request) bool {
	if q.isUnknownMethod() {
		writeMethodNotFound(w, q, http.StatusOK)
		return true
	}
	if !q.simple || q.version != "" || !versionHeaderSupported(r.Header) || r.Header[lastEventHeader] != nil {
		return false
	}
	switch q.method {
	case methodCancelled:
		if !s.cancelCall(session, q.cancelID) && !s.cancelLeftTask(r.Context(), session, q.cancelID) {
			return false
		}
		w.WriteHeader(http.StatusAccepted)
		return true
	case methodCallTool:
		if s.isResumable(r, sc, session, q) {
			s.answerHeldCall(w, r, session, sc, q)
			return true
		}
		ctx, call, ok := s.beginCall(r.Context(), session, q.id)
		if !ok {
			writeDuplicateID(w, q)
			return true
		}
		defer call.endRequest()
		r = r.WithContext(ctx)
		if s.needsSDK(sc, session, q) {
			s.forwardInSession(w, r, session, sc, q)
			return true
		}
	}
	s.answerSimple(w, r, sc, q, withSessions)
	return true
}

// needsSDK reports whether the SDK has to send questions or log messages during a call of a session.
func (s *Server) needsSDK(sc *clientScope, session *session, q *request) bool {
	return s.mayAskClient(sc, session, q.name) || !session.jsonOnly && s.sessionWantsLog(session)
}

// idInProgress is the error for a request with the id of another request that is in progress.
const idInProgress = "a request with this id is already in progress"

// writeDuplicateID rejects a call with the id of another call that is in progress.
func writeDuplicateID(w http.ResponseWriter, q *request) {
	writeError(w, http.StatusBadRequest, q.id, jsonrpc.CodeInvalidRequest, idInProgress)
}

// Values of stateless: whether the version of the protocol has no sessions.
const (
	noSessions   = true
	withSessions = false
)

// answerSimple answers a simple tools/list or tools/call with one document. It
// answers with an event stream if the client asked for progress and the tool
// reports progress.
func (s *Server) answerSimple(w http.ResponseWriter, r *http.Request, sc *clientScope, q *request, stateless bool) {
	switch {
	case q.invalid != "":
		writeError(w, ifElse(stateless, http.StatusBadRequest, http.StatusOK), q.id, jsonrpc.CodeInvalidParams, q.invalid)
		return
	case q.method == methodListTools:
		writeToolList(w, q.id, s.encodedListFor(sc, q, stateless))
		return
	}
	run := s.callOf(sc, q, r.Header, stateless)
	out := eventWriter{w: w}
	var o outcome
	if q.token == "" || sc.jsonOnly {
		o = run(r.Context())
	} else {
		o = s.runWithProgress(r.Context(), func(p tool.Progress) { out.send(progressNotification(q.token, p)) }, run)
	}
	status, body := s.encodeOutcome(o, q, sc.sender, stateless)
	if out.opened {
		out.send(body)
		return
	}
	writeJSON(w, status, body)
}

// callOf returns the function that runs the tool call of a request.
func (s *Server) callOf(sc *clientScope, q *request, header http.Header, stateless bool) func(context.Context) outcome {
	call := toolCall{name: q.name, args: orEmptyObject([]byte(q.args)), secure: []byte(q.secure), hasSecureExt: stateless && q.hasSecureExt, header: header}
	if stateless {
		call.rounds = &q.rounds
	}
	return func(ctx context.Context) outcome { return s.call(ctx, sc, call) }
}

// encodeOutcome returns the status and body of the response to a tool call.
func (s *Server) encodeOutcome(o outcome, q *request, sender identity.Principal, stateless bool) (status int, body []byte) {
	if e := s.rpcError(o, q.name, sender); e != nil {
		switch {
		case o.tokenErr != nil:
			return http.StatusUnauthorized, encodeError(q.id, e)
		case stateless && (e.Code == jsonrpc.CodeInvalidParams || e.Code == sdk.CodeMissingRequiredClientCapabilities):
			return http.StatusBadRequest, encodeError(q.id, e)
		}
		return http.StatusOK, encodeError(q.id, e)
	}
	if o.input != nil {
		return http.StatusOK, append(append(append(responsePrefix(q.id, 0), `,"result":`...), o.input.encode(s.info)...), '}')
	}
	return http.StatusOK, encodeCallResult(q.id, o, ifElse(stateless, s.resultMeta, nil))
}

// ifElse returns a if yes, else b.
func ifElse[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

// transportIndex returns the index of the SDK handler in transports.
func transportIndex(jsonOnly bool) int { return ifElse(jsonOnly, 1, 0) }

// maxListTurn is how long a request has its turn to encode a list at most.
const maxListTurn = 2 * time.Second

// forwardToSDK passes a request to an SDK handler. The body has been read
// already, so it is replaced. The Accept header is replaced too: there is a
// handler for each kind of answer, and the caller has chosen one.
func (s *Server) forwardToSDK(to http.Handler, w http.ResponseWriter, r *http.Request, sc *clientScope, q *request) {
	body := s.ids.encode(q.body)
	if heldCallOf(r.Context()) == nil { // else the call has a carrier already
		r.Header = maps.Clone(r.Header)
		defer s.carriers.add(r.Context(), r.Header)()
	}
	r = r.WithContext(sc.attach(r.Context()))
	r.Header["Accept"] = []string{"application/json, text/event-stream"}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out := &idRestoringWriter{ResponseWriter: w, ids: s.ids, id: q.id}
	if q.listsTools() {
		release, err := s.limiter.AcquireList(r.Context(), sc.sender)
		if err != nil {
			return // the client has disconnected
		}
		out.encoded = sync.OnceFunc(release)
		defer out.encoded()
		defer time.AfterFunc(maxListTurn, out.encoded).Stop() // another request of a batch may keep the answer waiting
	}
	to.ServeHTTP(out, r)
}

// serveNonPOST answers requests other than POST: GET opens the event stream of a
// session, DELETE ends the session.
func (s *Server) serveNonPOST(w http.ResponseWriter, r *http.Request, sc *clientScope) {
	ctx, cancel := s.config.Streaming(sc.attach(r.Context()))
	defer cancel()
	if !versionSupported(r) {
		writeUnsupportedVersion(w, r, "")
		return
	}
	w = &idRestoringWriter{ResponseWriter: w, ids: s.ids}
	id := r.Header.Get(sessionHeader)
	if id == "" || r.Header.Get(versionHeader) >= statelessVersion || r.Method != http.MethodGet && r.Method != http.MethodDelete {
		s.transports.stateless[0].ServeHTTP(w, r.WithContext(ctx)) // answers 405, since it allows only POST
		return
	}
	session, release := s.acquireSession(sc, id)
	if session == nil {
		writeSessionNotFound(w, "")
		return
	}
	defer release()
	if r.Method == http.MethodDelete {
		s.closeSession(session)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if last := r.Header.Get(lastEventHeader); last != "" && !session.jsonOnly {
		held, ok := s.events.resume(session.id, last)
		if !ok {
			writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "the stream cannot be resumed: the events after this one are not kept; send the request again if that is safe")
			return
		}
		var done func()
		ctx, done = held.read(ctx)
		defer done()
	}
	s.transports.stateful[transportIndex(session.jsonOnly)].ServeHTTP(w, r.WithContext(ctx))
}
