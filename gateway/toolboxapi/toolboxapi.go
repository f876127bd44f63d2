// Package toolboxapi serves the HTTP API of MCP Toolbox for Databases, so that its
// clients can list and call the tools of a role.
//
//	api, err := toolboxapi.New(toolboxapi.Config{Runtime: rt})
//	mux.HandleFunc("GET /api/toolset/{name...}", api.ServeToolset)
//	mux.HandleFunc("GET /api/tool/{name}", api.ServeTool)
//	mux.HandleFunc("POST /api/tool/{name}/invoke", api.Invoke)
//
// A toolset is a tool group. A tool of another role and a tool that does not
// exist are answered with the same error. The package does not authenticate
// senders (auth), does not decide permissions (org, gate) and does not run agents
// (runtime).
package toolboxapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxArgumentBytes limits the arguments of a call.
const maxArgumentBytes = 8 << 20

// Config configures an API. Runtime is required.
type Config struct {
	Runtime *runtime.Runtime
	// Limiter limits the concurrent calls of each sender. It may be shared with
	// other protocols, see mcpserver.Server.Limiter. Nil allows 64.
	Limiter   *mcpserver.ConcurrencyLimiter
	Log       *slog.Logger       // nil discards
	Version   string             // of this program; "" is "unknown"
	OnRefused func(errcode.Code) // called with the code of each error response; may be nil
}

// API serves the requests of Toolbox clients. A request must have been admitted
// by an auth.Authenticator. A caller has the tools of its own role. The
// operator must name a role in the path value role. All methods are safe for
// concurrent use.
//
// Errors have Toolbox's form {"status", "error"}.
type API struct {
	config   Config
	failures *failurelog.Log
}

// New returns an API. The error names the field of Config that is missing.
func New(config Config) (*API, error) {
	if config.Runtime == nil {
		return nil, errors.New("toolboxapi: Config.Runtime is missing")
	}
	if config.Limiter == nil {
		config.Limiter = mcpserver.NewConcurrencyLimiter(0)
	}
	if config.OnRefused == nil {
		config.OnRefused = func(errcode.Code) {}
	}
	config.Version = cmp.Or(config.Version, "unknown")
	return &API{config, failurelog.New(config.Log)}, nil
}

// Invoke runs a call through the gate. The path value name is the tool, the body
// its arguments. Every result of the tool, also a failure, is answered with 200.
func (a *API) Invoke(w http.ResponseWriter, r *http.Request) {
	w = mcpserver.WithWriteTimeout(w, 0)
	release, err := a.config.Limiter.Acquire(auth.SenderOf(r))
	if err != nil {
		a.respondError(w, r, err)
		return
	}
	defer release()
	if err := a.invoke(w, r); err != nil {
		a.respondError(w, r, err)
	}
}

// scopeFor returns the scope of a request's sender.
func (a *API) scopeFor(r *http.Request) (scope, error) {
	rt := a.config.Runtime
	by, role, err := mcpserver.ResolveCaller(rt.Org(), auth.SenderOf(r), r.PathValue("role"))
	if err != nil {
		return scope{}, err
	}
	return scope{rt: rt, by: by, role: role, snapshot: rt.GroupManager().CurrentSnapshot()}, nil
}

// scope is what one caller can access. It excludes tools with secure arguments,
// because the API has no way to send them.
type scope struct {
	rt       *runtime.Runtime
	by       identity.Principal // a Caller
	role     org.Role
	snapshot *toolgroups.Snapshot
}

// tools yields the tools that are available in some workflow state.
func (s scope) tools(yield func(tool.Definition) bool) {
	for _, d := range s.rt.Gate().Subject(s.by).ListableTools() {
		if !takesSecureArgs(d) && !yield(d) {
			return
		}
	}
}

// tool returns a tool that is available in some workflow state.
func (s scope) tool(name string) (tool.Definition, bool) {
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

// invoke answers a call with its result, or returns an error and has written
// nothing.
func (a *API) invoke(w http.ResponseWriter, r *http.Request) error {
	s, err := a.scopeFor(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	args, release, err := a.readArguments(r)
	defer release()
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
func (s scope) bodyError(name string, err error) error {
	if _, ok := s.tool(name); !ok && errcode.CodeOf(err) == errcode.InvalidArguments {
		return unknownTool(name)
	}
	return err
}

// CallResult is the answer to a call. Result is the result of the tool as JSON in a text.
type CallResult struct {
	Result string `json:"result"`
}

// call runs a call and returns the text of its result.
func (s scope) call(r *http.Request, name string, args json.RawMessage) ([]byte, error) {
	var known tool.Definition
	if h, ok := s.snapshot.LookupTool(name); ok {
		known = h.Definition
	}
	suspended := s.rt.Gate().Subject(s.by).AuthorizeTool(name).Suspended() != "" // then all names have the same answer
	if !suspended && takesSecureArgs(known) {
		return nil, unknownTool(name)
	}
	ctx := r.Context()
	if known.Auth != nil {
		ctx = tool.WithCredentials(ctx, tool.Credentials{Tokens: mcpserver.Tokens(r.Header, known.Auth)})
	}
	admitted, err := s.rt.InvokeTool(ctx, s.by, name, args)
	if err != nil {
		return nil, err
	}
	if err := s.callError(admitted, name); err != nil {
		return nil, err
	}
	return resultText(&admitted.Result, known.Declared != nil), nil
}

// callError returns the error of a call that is not answered with a result. The tool is
// unknown, or the caller lacks a valid token. A tool of another workflow state, and any tool
// in a suspended role, is answered with a failure as its result.
func (s scope) callError(a *gate.Admission, name string) error {
	if !a.Decision.Allowed() {
		if a.Decision.Suspended() != "" {
			return nil
		}
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
// one. The caller calls release in any case.
func (a *API) readArguments(r *http.Request) (_ json.RawMessage, release func(), err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, func() {}, errcode.New(unsupportedMediaType, "the content type must be application/json")
	}
	body, release, err := a.config.Limiter.ReadBody(http.MaxBytesReader(nil, r.Body, maxArgumentBytes), auth.SenderOf(r), r.ContentLength, maxArgumentBytes)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, wire.MaxRequestBytes) // a client that is still sending does not read the answer
		return nil, release, errcode.New(wire.BodyTooLarge, "request body is over the limit of %d bytes", maxArgumentBytes)
	}
	if code := errcode.CodeOf(err); code == errcode.RateLimited || code == errcode.Unauthenticated {
		return nil, release, err
	}
	if err != nil {
		return nil, release, errcode.Wrap(errcode.InvalidArguments, err, "request body could not be read")
	}
	if gjson.ParseBytes(body).Type == gjson.Null && json.Valid(body) {
		return json.RawMessage(`{}`), release, nil
	}
	if err := strictjson.CheckObject(body, nil); err != nil {
		return nil, release, errcode.New(errcode.InvalidArguments, "request body was invalid JSON: %v", err)
	}
	return body, release, nil
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
