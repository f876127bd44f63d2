package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxArgumentBytes limits the arguments of a call.
const maxArgumentBytes = 8 << 20

// toolboxRoutes are the HTTP API of MCP Toolbox, for a caller's own role and
// for a role that the operator names. Errors have Toolbox's form {"status",
// "error"}, except for authentication errors.
func (a *api) toolboxRoutes() (list []route) {
	invoke := limitConcurrency(a.limiter(), a.invoke)
	for _, at := range []string{"", "/roles/{role}"} {
		list = append(list,
			route{"GET", at + "/api/toolset", "", auth.AccessCaller, a.toolboxEndpoint(a.showToolset)},
			route{"GET", at + "/api/toolset/{name...}", "", auth.AccessCaller, a.toolboxEndpoint(a.showToolset)},
			route{"GET", at + "/api/tool/{name}", "", auth.AccessCaller, a.toolboxEndpoint(a.showDeclared)},
			route{"POST", at + "/api/tool/{name}/invoke", "", auth.AccessCaller, a.toolboxEndpoint(invoke)},
		)
	}
	return list
}

// limiter returns the limiter of concurrent requests, which is shared with MCP.
func (a *api) limiter() *mcpserver.ConcurrencyLimiter {
	if a.mcp == nil {
		return mcpserver.NewConcurrencyLimiter(0)
	}
	return a.mcp.Limiter()
}

// limitConcurrency limits the concurrent requests of each sender to an
// endpoint.
func limitConcurrency(limiter *mcpserver.ConcurrencyLimiter, serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		release, err := limiter.Acquire(auth.Sender(r))
		if err != nil {
			return err
		}
		defer release()
		return serve(mcpserver.WithWriteTimeout(w, 0), r)
	}
}

// toolboxScope returns the scope of a request's sender.
func (a *api) toolboxScope(r *http.Request) (toolboxScope, error) {
	by, role, err := mcpserver.ResolveCaller(a.org(), auth.Sender(r), r.PathValue("role"))
	if err != nil {
		return toolboxScope{}, err
	}
	return toolboxScope{api: a, by: by, role: role, snapshot: a.snapshot()}, nil
}

// toolboxScope is what one caller can access through the HTTP API of Toolbox.
// It excludes tools with secure arguments, because the API has no way to send
// them.
type toolboxScope struct {
	api      *api
	by       identity.Principal // a Caller
	role     org.Role
	snapshot *toolgroups.Snapshot
}

// tools yields the tools that are available in some workflow state.
func (s toolboxScope) tools(yield func(tool.Definition) bool) {
	for _, d := range s.api.rt.Gate().Subject(s.by).Listable() {
		if !takesSecureArgs(d) && !yield(d) {
			return
		}
	}
}

// tool returns a tool that is available in some workflow state.
func (s toolboxScope) tool(name string) (tool.Definition, bool) {
	for d := range s.tools {
		if d.Name == name {
			return d, true
		}
	}
	return tool.Definition{}, false
}

// takesSecureArgs reports whether a tool has secure arguments.
func takesSecureArgs(d tool.Definition) bool { return d.Auth != nil && d.Auth.SecureArgs }

// unknownTool returns the error for a tool that the caller does not have,
// whether or not it exists.
func unknownTool(name string) error {
	return errcode.New(errcode.UnknownTool, "invalid tool name: tool with name %q does not exist", name)
}

// invoke runs a call through the gate. Every result of the tool, also a
// failure, is answered with 200.
func (a *api) invoke(w http.ResponseWriter, r *http.Request) error {
	s, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	args, err := readArguments(r)
	if err != nil {
		return s.bodyError(name, err)
	}
	result, err := s.call(r, name, args)
	if err != nil {
		return err
	}
	body := append([]byte(`{"result":`), gjson.AppendJSONString(nil, string(result))...)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, "}\n"...)) // an error means that the client has disconnected
	return nil
}

// bodyError returns the error for an invalid body. As in Toolbox, an unknown
// tool takes precedence.
func (s toolboxScope) bodyError(name string, err error) error {
	if _, ok := s.tool(name); !ok && errcode.Of(err) == errcode.InvalidArguments {
		return unknownTool(name)
	}
	return err
}

// call runs a call and returns the text of its result.
func (s toolboxScope) call(r *http.Request, name string, args json.RawMessage) ([]byte, error) {
	var known tool.Definition
	if h, ok := s.snapshot.Lookup(name); ok {
		known = h.Definition
	}
	if takesSecureArgs(known) {
		return nil, unknownTool(name)
	}
	ctx := r.Context()
	if known.Auth != nil {
		ctx = tool.WithCredentials(ctx, tool.Credentials{Tokens: mcpserver.Tokens(r.Header, known.Auth)})
	}
	admitted, err := s.api.rt.Invoke(ctx, s.by, name, args)
	if err != nil {
		return nil, err
	}
	if err := s.callError(admitted, name); err != nil {
		return nil, err
	}
	return resultText(&admitted.Result, known.Declared != nil), nil
}

// callError returns the error of a call that is not answered with a result: the
// tool is unknown, or the caller lacks a valid token. A tool of another
// workflow state is answered with a failure as its result.
func (s toolboxScope) callError(a *gate.Admission, name string) error {
	if !a.Decision.Allowed() {
		if _, ok := s.tool(name); !ok || a.Decision.Rule() != toolgroups.WrongState {
			return unknownTool(name)
		}
		return nil
	}
	switch code := a.Code(); {
	case code == errcode.Unauthenticated:
		return errcode.New(code, "tool invocation not authorized. Please make sure you specify correct auth headers: %s", failureText(&a.Result))
	case code == errcode.InsufficientPermissions && a.Err != nil:
		return errcode.New(code, "%s", failureText(&a.Result))
	}
	return nil
}

// readArguments reads the body of a call: one JSON object, or null for an empty
// one.
func readArguments(r *http.Request) (json.RawMessage, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errcode.New(unsupportedMediaType, "the content type must be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxArgumentBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, wire.MaxRequestBytes) // a client that is still sending does not read the answer
		return nil, errcode.New(wire.BodyTooLarge, "request body is over the limit of %d bytes", maxArgumentBytes)
	}
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidArguments, err, "request body could not be read")
	}
	if gjson.ParseBytes(body).Type == gjson.Null && json.Valid(body) {
		return json.RawMessage(`{}`), nil
	}
	if err := strictjson.Object(body, nil); err != nil {
		return nil, errcode.New(errcode.InvalidArguments, "request body was invalid JSON: %v", err)
	}
	return body, nil
}

// resultText returns a result as JSON. A failure is {"error", "code"}.
func resultText(r *tool.Result, declared bool) []byte {
	if r.IsError {
		text := gjson.AppendJSONString([]byte(`{"error":`), failureText(r))
		if code := gjson.GetBytes(r.Structured, "error"); code.Type == gjson.String {
			text = gjson.AppendJSONString(append(text, `,"code":`...), code.Str)
		}
		return append(text, '}')
	}
	if rows, ok := mcpserver.Rows(r); declared && ok {
		return rows
	}
	return r.JSON()
}

// failureText returns the message of a failed call.
func failureText(r *tool.Result) string {
	if message := gjson.GetBytes(r.Structured, "message"); message.Type == gjson.String {
		return message.Str
	}
	if r.Text != "" {
		return r.Text
	}
	return string(r.Structured)
}
