package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// This file and toolbox_list.go support extensions that clients of MCP Toolbox
// use (docs/toolbox.md).

// secureExtension is the capability of clients that keep secure arguments from
// their model. To other clients, tools with secure arguments do not exist.
const secureExtension = "com.google.cloud/toolbox.v1"

// toolCall is one call of a tool by a client.
type toolCall struct {
	name         string
	args         json.RawMessage
	secure       json.RawMessage // secure arguments; empty if there are none
	hasSecureExt bool            // the client declares secureExtension
	header       http.Header     // of the request; nil on stdio

	rounds *roundParams     // answers to questions, in versions without sessions; nil otherwise
	input  tool.InputSource // what the call asks, in a session; nil if the client cannot be asked
}

// secureAllowed reports whether the tool exists for this client.
func (c toolCall) secureAllowed(d tool.Definition) bool { return c.hasSecureExt || !takesSecureArgs(d) }

// takesSecureArgs reports whether a tool has secure arguments.
func takesSecureArgs(d tool.Definition) bool { return d.Auth != nil && d.Auth.SecureArgs }

// withCredentials returns a context with the client's tokens and secure
// arguments, if the tool requires credentials.
func (c toolCall) withCredentials(ctx context.Context, need *tool.Auth) context.Context {
	if need == nil {
		return ctx
	}
	return tool.WithCredentials(ctx, tool.Credentials{Tokens: Tokens(c.header, need), Secure: c.secure})
}

// Tokens returns the tokens in a request's headers for the auth services of a
// tool, by service. The header NAME_token, in any case, holds the token of the
// service NAME. A header that occurs twice is ignored. Authorization is never
// read: it authenticates the sender of the request, not the user a tool acts
// for.
func Tokens(header http.Header, need *tool.Auth) map[string]string {
	var tokens map[string]string
	for _, service := range need.Services() {
		values := header.Values(service + "_token")
		if len(values) != 1 || values[0] == "" {
			continue
		}
		if tokens == nil {
			tokens = map[string]string{}
		}
		tokens[service] = values[0]
	}
	return tokens
}

// parts returns the contents for the client. If the result is an array of rows, it returns a text
// for each row. Else it returns the parts of the result.
func (o outcome) parts() []tool.Content {
	if !o.rows {
		return o.result.Parts()
	}
	doc, ok := Rows(o.result)
	if !ok {
		return o.result.Parts()
	}
	list := []tool.Content{}
	gjson.ParseBytes(doc).ForEach(func(_, row gjson.Result) bool {
		text := row.Raw
		if row.Type == gjson.String {
			text = row.Str
		}
		list = append(list, tool.Content{Type: tool.TextContent, Text: text})
		return true
	})
	return list
}

// Rows returns the result of a declared tool if it is a JSON array: its
// structured part, or else its text. It reports false for other results and for
// failures.
func Rows(r *tool.Result) (json.RawMessage, bool) {
	doc, valid := r.Structured, true // the gate has checked structured results
	if len(doc) == 0 {
		doc = json.RawMessage(r.Text)
		valid = strings.HasPrefix(r.Text, "[") && json.Valid(doc)
	}
	return doc, valid && !r.IsError && gjson.ParseBytes(doc).IsArray()
}

// answerWithoutSession answers requests that clients of MCP Toolbox send outside
// a session although their version has sessions. Some clients never start a
// session. Some list a group in the session of its role. This grants nothing
// more, because every request is authenticated. Requests that need a session are
// rejected. It reports false, without answering, for initialize, ping and what is
// no request, which the SDK answers.
func (s *Server) answerWithoutSession(w http.ResponseWriter, r *http.Request, sc *clientScope, q *request) bool {
	switch {
	case q.method == "notifications/initialized" && q.id == "":
		w.WriteHeader(http.StatusAccepted)
		return true
	case q.isUnknownMethod():
		writeMethodNotFound(w, q, http.StatusOK)
		return true
	case q.batch:
		s.answerBatch(w, r, sc, q)
		return true
	case !q.jsonrpc2 || q.id == "" || q.method == methodInitialize || q.method == methodPing:
		return false
	case !q.simple || q.version != "" || !versionHeaderSupported(r.Header) || r.Header[lastEventHeader] != nil:
		writeJSON(w, http.StatusBadRequest, encodeError(q.id, errNeedsSession(q)))
		return true
	}
	q.sessionless = true
	s.answerSimple(w, r, sc, q, withSessions)
	return true
}

// errNeedsSession returns the error for a request outside a session.
func errNeedsSession(q *request) *jsonrpc.Error {
	return newRPCError(jsonrpc.CodeInvalidRequest, "this "+q.method+" needs a session: send initialize first")
}

// versionHeaderSupported reports whether the version header is absent or names
// a supported version with sessions.
func versionHeaderSupported(header http.Header) bool {
	version := header.Get(versionHeader)
	return version == "" || slices.Contains(versions[1:], version)
}

// isRoleSession reports whether id is a session of the same sender at the whole role. Also q must
// list the tools of one of the role's groups.
func (s *Server) isRoleSession(sc *clientScope, id string, q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[id]
	if session == nil || session.sender != sc.sender || session.caller != sc.caller || session.endpoint.endpointKey != (endpointKey{role: sc.endpoint.role, within: sc.endpoint.within}) || q.method != methodListTools {
		return false
	}
	session.lastUsed = time.Now()
	return true
}

// orEmptyObject returns nil for null arguments, which the gate reads as an
// empty object.
func orEmptyObject(args json.RawMessage) json.RawMessage {
	if string(bytes.TrimSpace(args)) == "null" {
		return nil
	}
	return args
}

// answerUnknownToolset answers a message to a group that the sender does not
// have, whether or not the group exists.
func (s *Server) answerUnknownToolset(w http.ResponseWriter, r *http.Request, sender identity.Principal) {
	release, ok := s.acquireSlots(w, sender, 1)
	if !ok {
		return
	}
	defer release()
	q, releaseBody, ok := s.readBody(w, r, sender)
	defer releaseBody()
	if ok {
		writeError(w, http.StatusOK, q.id, jsonrpc.CodeInvalidRequest, "toolset does not exist")
	}
}
