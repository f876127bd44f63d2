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
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// What clients of MCP Toolbox do beyond the protocol, and how they are answered.

// secureExtension is stated by clients that keep secure arguments away from
// their model. To others a tool that takes them does not exist.
const secureExtension = "com.google.cloud/toolbox.v1"

// toolCall is one call of a client.
type toolCall struct {
	name   string
	args   json.RawMessage
	secure json.RawMessage // secure arguments; empty is none
	knows  bool            // the client states secureExtension
	header http.Header     // of the request; nil where there is none
}

// secureAllowed says whether a client of this kind may know of a tool.
func (c toolCall) secureAllowed(d tool.Definition) bool { return c.knows || !secure(d) }

// secure says whether a tool takes secure arguments.
func secure(d tool.Definition) bool { return d.Auth != nil && d.Auth.SecureArgs }

// shown gives a context with what the client shows to a tool that wants to see
// it.
func (c toolCall) shown(ctx context.Context, need *tool.Auth) context.Context {
	if need == nil {
		return ctx
	}
	return tool.WithCredentials(ctx, tool.Credentials{Tokens: Tokens(c.header, need), Secure: c.secure})
}

// Tokens gives, of a request's headers, the tokens of the services that a tool
// asks: NAME_token, in any case, holds that of the service NAME. A header that
// is there twice is as good as none. Authorization is not looked at: it says
// who sends the request, not who vouches for a call.
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

// parts gives the texts that an outcome is answered with: one, or of a tool
// whose result is rows one for each.
func (o outcome) parts() []string {
	if !o.rows {
		return []string{text(o.result)}
	}
	doc, ok := Rows(o.result)
	if !ok {
		return []string{text(o.result)}
	}
	list := []string{}
	gjson.ParseBytes(doc).ForEach(func(_, row gjson.Result) bool {
		if row.Type == gjson.String {
			list = append(list, row.Str)
		} else {
			list = append(list, row.Raw)
		}
		return true
	})
	return list
}

// Rows gives the JSON array that a declared tool's result is, its only or its
// structured part; false when it is none, and for failures.
func Rows(r *tool.Result) (json.RawMessage, bool) {
	doc, valid := r.Structured, true // the gate saw to that
	if len(doc) == 0 {
		doc = json.RawMessage(r.Text)
		valid = strings.HasPrefix(r.Text, "[") && json.Valid(doc)
	}
	return doc, valid && !r.IsError && gjson.ParseBytes(doc).IsArray()
}

// contents gives an outcome's parts to the SDK.
func (o outcome) contents() []sdk.Content {
	list := []sdk.Content{}
	for _, part := range o.parts() {
		list = append(list, &sdk.TextContent{Text: part})
	}
	return list
}

// withoutSession answers what clients of Toolbox send in a version that has
// sessions without being in one: they begin none, or list a toolset in the
// session of its role. Who sends a request is known for each, so that a session
// gives nobody more. False is what a session is needed for.
func (s *Server) withoutSession(w http.ResponseWriter, r *http.Request, d *clientScope, q *request) bool {
	switch {
	case q.method == "notifications/initialized" && q.id == "":
		w.WriteHeader(http.StatusAccepted)
		return true
	case q.unknown():
		noMethod(w, q, http.StatusOK)
		return true
	case !q.simple || q.id == "" || q.version != "" || !versionHeaderSupported(r.Header) || r.Header["Last-Event-Id"] != nil:
		return false
	}
	q.noSession = true
	s.answer(w, r, d, q, false)
	return true
}

// versionHeaderSupported says whether the headers name a version with sessions that is spoken,
// or none.
func versionHeaderSupported(header http.Header) bool {
	version := header.Get(versionHeader)
	return version == "" || slices.Contains(versions[1:], version)
}

// sameSender says whether a session is one of the same sender in the same role, and
// this is a question about one of the role's groups.
func (s *Server) sameSender(d *clientScope, id string, q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[id]
	if session == nil || session.sender != d.sender || session.by != d.by || session.endpoint.key != (key{role: d.endpoint.role}) || q.method != listTools {
		return false
	}
	session.used = time.Now()
	return true
}

// orEmptyObject gives arguments as the gate takes them: null is none.
func orEmptyObject(args json.RawMessage) json.RawMessage {
	if string(bytes.TrimSpace(args)) == "null" {
		return nil
	}
	return args
}

// noToolset answers a message to a group that is not the sender's, whether it is
// somebody's or nobody's.
func (s *Server) noToolset(w http.ResponseWriter, r *http.Request, sender identity.Principal) {
	leave, ok := s.admit(w, sender)
	if !ok {
		return
	}
	defer leave()
	if q, ok := readBody(w, r); ok {
		refuse(w, http.StatusOK, q.id, jsonrpc.CodeInvalidRequest, "toolset does not exist")
	}
}
