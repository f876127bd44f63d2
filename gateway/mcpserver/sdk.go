//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// transports are the SDK's HTTP handlers, indexed by transportIndex: [0] for
// clients that accept event streams, [1] for clients that accept only
// documents.
type transports struct{ stateful, stateless [2]http.Handler }

// newTransports returns handlers that use the SDK server of the request's
// endpoint. The listener checks Host and Origin, and expireIdle ends idle
// sessions, so the SDK does neither.
func newTransports(events *eventStore) transports {
	server := func(r *http.Request) *sdk.Server {
		if sc := scopeFrom(r.Context()); sc != nil {
			return sc.endpoint.server
		}
		return nil
	}
	var t transports
	for i := range 2 {
		o := sdk.StreamableHTTPOptions{JSONResponse: i == 1, MaxRequestBodyBytes: maxBodyBytes, DisableLocalhostProtection: true, PropagateRequestCancellation: true}
		if i == 0 {
			o.EventStore = events
		}
		t.stateful[i] = sdk.NewStreamableHTTPHandler(server, &o)
		o.Stateless, o.EventStore = true, nil
		t.stateless[i] = sdk.NewStreamableHTTPHandler(server, &o)
	}
	return t
}

// newSDKServer returns the SDK server of an endpoint. It has no tools: the
// middleware answers all requests for tools and prompts.
func (s *Server) newSDKServer(e *endpoint) *sdk.Server {
	server := sdk.NewServer(s.info, &sdk.ServerOptions{
		Capabilities:              &sdk.ServerCapabilities{Logging: &sdk.LoggingCapabilities{}, Tools: &sdk.ToolCapabilities{ListChanged: true}, Resources: &sdk.ResourceCapabilities{Subscribe: true}},
		SubscribeHandler:          s.subscribe,
		UnsubscribeHandler:        s.unsubscribe,
		SupportedProtocolVersions: versions[:],
		SetCacheable:              func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { *c = privateCache },
	})
	server.AddSendingMiddleware(s.notifyOnlyDue)
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		e.handle = next
		return func(ctx context.Context, method string, req sdk.Request) (_ sdk.Result, err error) {
			sc := scopeFrom(ctx)
			defer s.recoverRequest(sc, method, &err)
			if sc == nil || sc.endpoint != e {
				return nil, newRPCError(jsonrpc.CodeInternalError, "the request has no sender")
			}
			if sc.disconnect != nil {
				if err := sc.admitMessage(); err != nil {
					sc.disconnect()
					return nil, err
				}
			}
			ctx, done := s.carriers.untilDisconnected(ctx, method, req)
			defer done()
			return s.handleSDKRequest(ctx, sc, method, req, next)
		}
	})
	return server
}

// recoverRequest turns a panic, for example in a module's catalog, into an internal error of the
// request. The SDK runs requests in goroutines of its own, where a panic would end the process.
func (s *Server) recoverRequest(sc *clientScope, method string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	s.failures.LogFailure(slog.LevelError, "MCP request panicked", sc.sender.String(), fmt.Errorf("%v\n%s", p, debug.Stack()), "method", method)
	*err = newRPCError(jsonrpc.CodeInternalError, errcode.Message(errPanicked))
}

// handleSDKRequest answers a request that the SDK has decoded.
func (s *Server) handleSDKRequest(ctx context.Context, sc *clientScope, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	switch req := req.(type) {
	case *sdk.ListToolsRequest:
		if req.Params != nil && req.Params.Cursor != "" {
			return nil, newRPCError(jsonrpc.CodeInvalidParams, "invalid cursor: the list has a single page")
		}
		list := s.toolListFor(sc)
		return encodedResult{&sdk.ListToolsResult{}, ifElse(req.ProtocolVersion() < statelessVersion, list.sessionJSON, list.statelessJSON)}, nil
	case *sdk.CallToolRequest:
		return s.callFromSDK(ctx, sc, req)
	case *sdk.ListPromptsRequest:
		return s.listPrompts(ctx, sc, req)
	case *sdk.GetPromptRequest:
		return s.getPrompt(ctx, sc, req)
	case *sdk.ListResourcesRequest:
		return s.listResources(ctx, sc, req)
	case *sdk.ListResourceTemplatesRequest:
		return s.listTemplates(ctx, sc, req)
	case *sdk.ReadResourceRequest:
		return s.readResource(ctx, sc, req)
	case *sdk.ServerRequest[*sdk.SetLoggingLevelParams]:
		s.setLogLevel(req)
	case *sdk.CompleteRequest:
		return s.complete(ctx, sc, req)
	}
	sc.roots.observe(req)
	dropUnusedParams(req)
	next = s.withCapabilities(sc, next)
	if method == methodInitialize && !sc.lines {
		return s.initializeSession(ctx, sc, method, req, next)
	}
	return next(ctx, method, req)
}

// initializeSession answers initialize and registers the session that it
// starts.
func (s *Server) initializeSession(ctx context.Context, sc *clientScope, method string, req sdk.Request, next sdk.MethodHandler) (sdk.Result, error) {
	session, ok := req.GetSession().(*sdk.ServerSession)
	if !ok || session.ID() == "" || session.InitializeParams() != nil {
		return next(ctx, method, req)
	}
	if !s.beginSession(sc, session, session.ID()) {
		return nil, newRPCError(codeBusy, fmt.Sprintf("too many sessions: this client has %d, and all of them are busy", s.config.Sessions))
	}
	result, err := next(ctx, method, req)
	if err != nil {
		s.forgetSession(session.ID())
	}
	return result, err
}

// callFromSDK answers a tools/call that the SDK has decoded.
func (s *Server) callFromSDK(ctx context.Context, sc *clientScope, req *sdk.CallToolRequest) (sdk.Result, error) {
	call := toolCall{name: req.Params.Name, args: orEmptyObject(req.Params.Arguments)}
	if req.Extra != nil {
		call.header = req.Extra.Header
	}
	s.addInput(sc, &call, req)
	run := func(ctx context.Context) outcome {
		return s.runWithLog(ctx, req.Session, call.name, func(ctx context.Context) outcome { return s.call(ctx, sc, call) })
	}
	token := req.Params.GetProgressToken()
	var o outcome
	if token == nil {
		o = s.callRecovered(ctx, run)
	} else {
		o = s.runWithProgress(ctx, func(p tool.Progress) { s.notifyProgress(ctx, req.Session, token, p) }, run)
	}
	if e := s.rpcError(o, req.Params.Name, sc.sender); e != nil {
		return nil, e
	}
	if o.input != nil {
		return encodedResult{&sdk.CallToolResult{}, o.input.encode(s.info)}, nil
	}
	return completeResultOf(sdkResult(o), req.ProtocolVersion()), nil
}

// addInput sets how a call asks its client. Clients that accept only documents cannot be asked.
func (s *Server) addInput(sc *clientScope, call *toolCall, req *sdk.CallToolRequest) {
	switch {
	case req.ProtocolVersion() >= statelessVersion:
		call.rounds = &roundParams{abilities: abilitiesOf(req.ClientCapabilities()), state: req.Params.RequestState, responses: map[string]json.RawMessage{}}
		for name, response := range req.Params.InputResponses {
			call.rounds.responses[name] = marshal(response)
		}
	case !sc.jsonOnly && abilitiesOfSession(req.Session).any():
		call.input = &sessionInput{req.Session, sc.sender.String(), s.config.QuestionTimeout}
	}
}

// encodedResult is a result that has been encoded already.
type encodedResult struct {
	sdk.Result
	text []byte
}

// MarshalJSON implements json.Marshaler.
func (r encodedResult) MarshalJSON() ([]byte, error) { return r.text, nil }

// completeResult adds the resultType that versions without sessions require.
type completeResult struct{ sdk.Result }

// completeResultOf returns a result that is not empty, as a protocol version requires it.
func completeResultOf(result sdk.Result, version string) sdk.Result {
	if version < statelessVersion {
		return result
	}
	return completeResult{result}
}

// MarshalJSON implements json.Marshaler.
func (c completeResult) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(c.Result)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"complete",`), text[1:]...), nil
}

// notifyProgress sends a progress notification. Errors are logged.
func (s *Server) notifyProgress(ctx context.Context, session *sdk.ServerSession, token any, p tool.Progress) {
	err := session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message})
	if err != nil {
		s.log.Debug("MCP progress not sent", "error", err)
	}
}

// encodeResultMeta returns the members that versions without sessions add to
// every result, with a comma at the end.
func encodeResultMeta(info *sdk.Implementation) []byte {
	text := marshal(struct {
		ResultType string         `json:"resultType"`
		Meta       map[string]any `json:"_meta"`
	}{"complete", map[string]any{sdk.MetaKeyServerInfo: info}})
	return append(json.RawMessage(text[1:len(text)-1]), ',')
}
