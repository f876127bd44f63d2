package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// transports are the SDK's handlers, [0] for clients that take streams and [1]
// for those that take documents alone.
type transports struct{ stateful, stateless [2]http.Handler }

// newTransports makes handlers that find the SDK's server behind the door of
// the request. Host and Origin are looked at by whoever listens; idle sessions
// end by session.go.
func newTransports() transports {
	server := func(r *http.Request) *sdk.Server {
		if d := scopeFrom(r.Context()); d != nil {
			return d.endpoint.server
		}
		return nil
	}
	var t transports
	for i := range 2 {
		o := sdk.StreamableHTTPOptions{JSONResponse: i == 1, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true, PropagateRequestCancellation: true}
		t.stateful[i] = sdk.NewStreamableHTTPHandler(server, &o)
		o.Stateless = true
		t.stateless[i] = sdk.NewStreamableHTTPHandler(server, &o)
	}
	return t
}

// newServer makes the SDK's server of an endpoint. It has no tools of its own:
// what there is, is answered here.
func (s *Server) newServer(e *endpoint) *sdk.Server {
	server := sdk.NewServer(s.about, &sdk.ServerOptions{
		Capabilities:              &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		SupportedProtocolVersions: versions[:],
		SetCacheable:              func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = private },
	})
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			d := scopeFrom(ctx)
			if d == nil || d.endpoint != e {
				return nil, protocolError(jsonrpc.CodeInternalError, "nobody is behind this request")
			}
			if !d.stillAuthorized() {
				d.disconnect()
				return nil, protocolError(codeNoSession, "who asks is not let in any more")
			}
			return s.received(ctx, d, method, req, next)
		}
	})
	return server
}

// received answers a request that the SDK has read.
func (s *Server) received(ctx context.Context, d *clientScope, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	switch req := req.(type) {
	case *sdk.ListToolsRequest:
		if req.Params != nil && req.Params.Cursor != "" {
			return nil, protocolError(jsonrpc.CodeInvalidParams, "the list has one page, and no cursor leads to another")
		}
		return &sdk.ListToolsResult{Tools: s.toolListFor(d).tools, Cacheable: private}, nil
	case *sdk.CallToolRequest:
		return s.callFor(ctx, d, req)
	case *sdk.ListPromptsRequest:
		return s.listPrompts(d, req)
	case *sdk.GetPromptRequest:
		return s.getPrompt(d, req)
	}
	next = s.declaring(d, next)
	if method == "initialize" && !d.stdio {
		return s.initialize(ctx, d, method, req, next)
	}
	return next(ctx, method, req) // of resources, that there are none
}

// initialize begins a session.
func (s *Server) initialize(ctx context.Context, d *clientScope, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session.ID() == "" || session.InitializeParams() != nil {
		return next(ctx, method, req)
	}
	if !s.begin(d, session, session.ID()) {
		return nil, protocolError(codeBusy, fmt.Sprintf("no session can begin: there are %d of this client that are all at work", s.config.Sessions))
	}
	result, err := next(ctx, method, req)
	if err != nil {
		s.forget(session.ID())
	}
	return result, err
}

// callFor takes a call that the SDK has read through the gate.
func (s *Server) callFor(ctx context.Context, d *clientScope, req *sdk.CallToolRequest) (sdk.Result, error) {
	call := toolCall{name: req.Params.Name, args: orEmptyObject(req.Params.Arguments)}
	if req.Extra != nil {
		call.header = req.Extra.Header
	}
	run := func(ctx context.Context) outcome { return s.call(ctx, d, call) }
	token := req.Params.GetProgressToken()
	var o outcome
	if token == nil {
		o = s.guarded(ctx, run)
	} else {
		o = s.withProgress(ctx, func(p tool.Progress) { s.notify(ctx, req.Session, token, p) }, run)
	}
	if e := o.refused(req.Params.Name); e != nil {
		return nil, e
	}
	return asResult(o), nil
}

// notify tells a client how far its call is.
func (s *Server) notify(ctx context.Context, session *sdk.ServerSession, token any, p tool.Progress) {
	err := session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message})
	if err != nil {
		s.log.Debug("MCP progress not sent", "error", err)
	}
}

// signature is what results say of this server where there are no sessions.
func signature(about *sdk.Implementation) []byte {
	text := marshal(struct {
		ResultType string         `json:"resultType"`
		Meta       map[string]any `json:"_meta"`
	}{"complete", map[string]any{sdk.MetaKeyServerInfo: about}})
	return append(json.RawMessage(text[1:len(text)-1]), ',')
}
