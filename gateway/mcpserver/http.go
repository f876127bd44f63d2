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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/tool"
)

// Headers of the transport.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
)

// Limits of one request.
const (
	maxBody  = strictjson.MaxSize
	maxBatch = 64  // messages
	maxEcho  = 100 // bytes of a word that is nobody's, as a refusal repeats them
)

// admit counts a request of sender; false when it has too many under way, and
// that is answered.
func (s *Server) admit(w http.ResponseWriter, sender identity.Principal) (leave func(), ok bool) {
	leave, err := s.busy.Enter(sender)
	if err != nil {
		refuse(w, http.StatusTooManyRequests, "", codeBusy, errcode.Message(err))
	}
	return leave, err == nil
}

// post answers one POST: a message of the client.
func (s *Server) post(w http.ResponseWriter, r *http.Request, d *clientScope) error {
	leave, ok := s.admit(w, d.sender)
	if !ok {
		return nil
	}
	defer leave()
	document, stream, anything := accepted(r.Header["Accept"])
	switch {
	case !document:
		refuse(w, http.StatusNotAcceptable, "", jsonrpc.CodeInvalidRequest, "the request must accept application/json, and text/event-stream beside it")
		return nil
	case !isJSON(r.Header.Get("Content-Type")):
		refuse(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "the body must be application/json, and say so")
		return nil
	}
	d.json, d.any = !stream, anything
	q, ok := readBody(w, r)
	switch {
	case !ok:
	case isStateless(r, q):
		s.handleStateless(w, r, d, q)
	default:
		s.handleSession(w, r, d, q)
	}
	return nil
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && kind == "application/json"
}

// readBody reads the body: strict JSON, or the request is refused. How long it
// may take to arrive is a matter of whoever listens.
func readBody(w http.ResponseWriter, r *http.Request) (*request, bool) {
	buffer := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), 64<<10)+bytes.MinRead))
	_, err := buffer.ReadFrom(http.MaxBytesReader(unwrapWriter(w), r.Body, maxBody))
	if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
		refuse(w, http.StatusRequestEntityTooLarge, "", jsonrpc.CodeInvalidRequest, fmt.Sprintf("the body has more than %d bytes", maxBody))
		return nil, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "", jsonrpc.CodeParseError, "the body could not be read")
		return nil, false
	}
	if err := strictjson.Check(buffer.Bytes(), nil); err != nil {
		refuse(w, http.StatusBadRequest, "", jsonrpc.CodeParseError, "the body is no JSON that is safe to read: "+err.Error())
		return nil, false
	}
	q := readRequest(buffer.Bytes())
	return q, !rejectEarly(w, r, q)
}

// rejectEarly answers what needs no look at who asks, and at what.
func rejectEarly(w http.ResponseWriter, r *http.Request, q *request) bool {
	switch {
	case q.batch && !batchAllowed(r, q):
		refuse(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, fmt.Sprintf("batches are a part of 2025-03-26 alone, and have at most %d messages", maxBatch))
	case q.badID:
		refuse(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "the id must be a string or a number")
	case !versionSupported(r):
		otherVersion(w, r, q.id)
	case q.isNotification():
		w.WriteHeader(http.StatusAccepted)
	default:
		return false
	}
	return true
}

// versionSupported says whether a request is of a version that is spoken, or names none.
func versionSupported(r *http.Request) bool {
	version := r.Header.Get(versionHeader)
	return version == "" || slices.Contains(versions[:], version)
}

// otherVersion refuses a request of a version that is not spoken, and says which
// ones are.
func otherVersion(w http.ResponseWriter, r *http.Request, id string) {
	e := protocolError(sdk.CodeUnsupportedProtocolVersion, "unsupported protocol version")
	e.Data = marshal(sdk.UnsupportedProtocolVersionData{Supported: versions[:], Requested: short(r.Header.Get(versionHeader), maxEcho)})
	write(w, http.StatusBadRequest, errorAnswer(id, e))
}

// noMethod refuses a request of a method that nobody answers. In a session 404
// would say that the session has ended.
func noMethod(w http.ResponseWriter, q *request, status int) {
	refuse(w, status, q.id, jsonrpc.CodeMethodNotFound, "there is no method "+short(q.method, maxEcho))
}

// batchAllowed says whether a batch may be sent.
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

// isStateless says whether a request is one of a version without sessions.
func isStateless(r *http.Request, q *request) bool {
	return r.Header.Get(versionHeader) >= stateless || q.version >= stateless || q.method == "server/discover"
}

// handleStateless answers a request of a version without sessions.
func (s *Server) handleStateless(w http.ResponseWriter, r *http.Request, d *clientScope, q *request) {
	if q.unknown() {
		noMethod(w, q, http.StatusNotFound)
		return
	}
	if q.simple && q.id != "" && headersMatchBody(r, q) {
		s.answer(w, r, d, q, true)
		return
	}
	ctx := r.Context()
	if q.method == "subscriptions/listen" {
		var cancel context.CancelFunc
		ctx, cancel = s.config.Streaming(ctx)
		defer cancel()
		defer context.AfterFunc(d.endpoint.ctx, cancel)()
	}
	s.forwardToSDK(s.http.stateless[index(d.json)], w, r.WithContext(ctx), d, q)
}

// headersMatchBody says whether the headers surely say what the body does.
func headersMatchBody(r *http.Request, q *request) bool {
	return r.Header.Get(versionHeader) == stateless && q.version == stateless &&
		r.Header.Get(methodHeader) == q.method && (q.method == listTools || r.Header.Get(nameHeader) == q.name && q.name != "") &&
		r.Header["Last-Event-Id"] == nil
}

// handleSession answers a request of a version with sessions.
func (s *Server) handleSession(w http.ResponseWriter, r *http.Request, d *clientScope, q *request) {
	id := r.Header.Get(sessionHeader)
	if id == "" && s.withoutSession(w, r, d, q) {
		return
	}
	if id == "" { // a new one begins
		s.forwardToSDK(s.http.stateful[index(d.json)], w, r, d, q)
		return
	}
	session, leave := s.find(d, id)
	if session == nil {
		if !s.sameSender(d, id, q) || !s.withoutSession(w, r, d, q) {
			noSession(w, q.id)
		}
		return
	}
	defer leave()
	if s.answerInSession(w, r, session, d, q) {
		return
	}
	if d.json && !session.json && !d.any {
		refuse(w, http.StatusNotAcceptable, q.id, jsonrpc.CodeInvalidRequest, "the session was begun by a client that accepts text/event-stream, and must go on so")
		return
	}
	s.forwardToSDK(s.http.stateful[index(session.json)], w, r, d, q)
}

func noSession(w http.ResponseWriter, id string) {
	refuse(w, http.StatusNotFound, id, codeNoSession, "there is no such session; initialize a new one")
}

// answerInSession answers a plain request of a session; false when it is the SDK's.
func (s *Server) answerInSession(w http.ResponseWriter, r *http.Request, session *session, d *clientScope, q *request) bool {
	if q.unknown() {
		noMethod(w, q, http.StatusOK)
		return true
	}
	if !q.simple || q.version != "" || !versionHeaderSupported(r.Header) || r.Header["Last-Event-Id"] != nil {
		return false
	}
	switch q.method {
	case cancelled:
		if !s.cancel(session, q.target) {
			return false
		}
		w.WriteHeader(http.StatusAccepted)
		return true
	case callTool:
		within, done, ok := s.calling(r.Context(), session, q.id)
		if !ok {
			refuse(w, http.StatusBadRequest, q.id, jsonrpc.CodeInvalidRequest, "a request of this id is under way")
			return true
		}
		defer done()
		r = r.WithContext(within)
	}
	s.answer(w, r, d, q, false)
	return true
}

// answer answers a plain request: with one document or, when progress is asked
// for and made, with a stream.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d *clientScope, q *request, alone bool) {
	if q.method == listTools {
		listAnswer(w, q.id, s.listFor(d, q, alone))
		return
	}
	call := toolCall{name: q.name, args: orEmptyObject([]byte(q.args)), secure: []byte(q.secure), knows: alone && q.hasSecureExt, header: r.Header}
	run := func(ctx context.Context) outcome { return s.call(ctx, d, call) }
	out := events{w: w}
	var o outcome
	if q.token == "" || d.json {
		o = run(r.Context())
	} else {
		o = s.withProgress(r.Context(), func(p tool.Progress) { out.send(progressNote(q.token, p)) }, run)
	}
	status, body := s.encodeOutcome(o, q, alone)
	if out.opened {
		out.send(body)
		return
	}
	write(w, status, body)
}

// encodeOutcome puts an outcome into an answer.
func (s *Server) encodeOutcome(o outcome, q *request, alone bool) (status int, body []byte) {
	if e := o.refused(q.name); e != nil {
		if alone && e.Code == jsonrpc.CodeInvalidParams {
			return http.StatusBadRequest, errorAnswer(q.id, e)
		}
		return http.StatusOK, errorAnswer(q.id, e)
	}
	return http.StatusOK, callAnswer(q.id, o, cond(alone, s.signature, nil))
}

func cond[T any](yes bool, a, b T) T {
	if yes {
		return a
	}
	return b
}

func index(json bool) int { return cond(json, 1, 0) }

// forwardToSDK gives a request to the SDK: it comes through the door, its body is
// read already, and the answer may be of any kind, since there is a handler for
// each.
func (s *Server) forwardToSDK(to http.Handler, w http.ResponseWriter, r *http.Request, d *clientScope, q *request) {
	body := s.ids.encode(q.body)
	r = r.WithContext(d.with(r.Context()))
	r.Header = maps.Clone(r.Header)
	r.Header["Accept"] = []string{"application/json, text/event-stream"}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	to.ServeHTTP(&idRestoringWriter{ResponseWriter: w, ids: s.ids, id: q.id}, r)
}

// stream answers what is no POST: the stream of a session, or its end.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, d *clientScope) {
	ctx, cancel := s.config.Streaming(d.with(r.Context()))
	defer cancel()
	if !versionSupported(r) {
		otherVersion(w, r, "")
		return
	}
	w = &idRestoringWriter{ResponseWriter: w, ids: s.ids}
	id := r.Header.Get(sessionHeader)
	if id == "" || r.Header.Get(versionHeader) >= stateless || r.Method != http.MethodGet && r.Method != http.MethodDelete {
		s.http.stateless[0].ServeHTTP(w, r.WithContext(ctx)) // takes POST alone, and says so
		return
	}
	session, leave := s.find(d, id)
	if session == nil {
		noSession(w, "")
		return
	}
	defer leave()
	if r.Method == http.MethodDelete {
		s.close(session)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.http.stateful[index(session.json)].ServeHTTP(w, r.WithContext(ctx))
}
