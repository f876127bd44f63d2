package mcpserver

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/tidwall/gjson"
)

// answerBatch answers a batch outside a session, which only version 2025-03-26 has. It
// answers one message after the other and sends each answer at once, so it keeps no more
// than one of them. A batch without requests has no answer.
func (s *Server) answerBatch(w http.ResponseWriter, r *http.Request, sc *clientScope, q *request) {
	messages := gjson.ParseBytes(q.body).Array()
	if len(messages) == 0 {
		writeError(w, http.StatusBadRequest, "", jsonrpc.CodeInvalidRequest, "the batch is empty")
		return
	}
	out := batchWriter{w: w}
	for _, message := range messages {
		if r.Context().Err() != nil {
			return // the client has disconnected
		}
		if body := s.answerInBatch(r, sc, readRequest([]byte(message.Raw))); body != nil {
			out.send(body)
		}
	}
	out.close()
}

// answerInBatch returns the answer to one message of a batch; nil if it has none.
func (s *Server) answerInBatch(r *http.Request, sc *clientScope, q *request) []byte {
	switch {
	case q.response:
		return nil
	case !q.jsonrpc2 || q.badID:
		return encodeError(q.id, newRPCError(jsonrpc.CodeInvalidRequest, "the message is not valid JSON-RPC 2.0"))
	case q.id == "": // requests without an id are not carried out
		return nil
	case q.isUnknownMethod():
		return encodeError(q.id, errMethodNotFound(q))
	case q.method == methodPing:
		return append(responsePrefix(q.id, 0), `,"result":{}}`...)
	case q.method == methodInitialize:
		return encodeError(q.id, newRPCError(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch"))
	case !q.simple || q.version != "":
		return encodeError(q.id, errNeedsSession(q))
	case q.invalid != "":
		return encodeError(q.id, newRPCError(jsonrpc.CodeInvalidParams, q.invalid))
	}
	q.sessionless = true
	if q.method == methodListTools {
		list := s.encodedListFor(sc, q, withSessions)
		return append(append(append(responsePrefix(q.id, len(list)), `,"result":`...), list...), '}')
	}
	_, body := s.encodeOutcome(s.callRecovered(r.Context(), s.callOf(sc, q, r.Header, withSessions)), q, sc.sender, withSessions)
	return body
}

// batchWriter writes the answers to a batch as one JSON array. The first answer sends
// the headers.
type batchWriter struct {
	w      http.ResponseWriter
	opened bool
}

// send writes one answer. A write error means that the client has disconnected.
func (b *batchWriter) send(body []byte) {
	separator := ","
	if !b.opened {
		b.opened, separator = true, "["
		b.w.Header().Set("Content-Type", "application/json")
		b.w.WriteHeader(http.StatusOK)
	}
	_, _ = b.w.Write([]byte(separator))
	_, _ = b.w.Write(body)
}

// close ends the array, or answers a batch without requests.
func (b *batchWriter) close() {
	if !b.opened {
		b.w.WriteHeader(http.StatusAccepted)
		return
	}
	_, _ = b.w.Write([]byte("]"))
}
