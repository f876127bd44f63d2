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
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxArguments is the most bytes that the arguments of a call may have.
const maxArguments = 8 << 20

// toolboxRoutes are the HTTP API of MCP Toolbox: for a caller's own role, and
// for the role that the operator names. Their refusals are in its shape,
// {"status", "error"}, but for those of who is not let in.
func (a *api) toolboxRoutes() (list []route) {
	invoke := limitConcurrency(a.busy(), a.invoke)
	for _, at := range []string{"", "/roles/{role}"} {
		list = append(list,
			route{"GET", at + "/api/toolset", "", accessCaller, a.asToolbox(a.showToolset)},
			route{"GET", at + "/api/toolset/{name...}", "", accessCaller, a.asToolbox(a.showToolset)},
			route{"GET", at + "/api/tool/{name}", "", accessCaller, a.asToolbox(a.showDeclared)},
			route{"POST", at + "/api/tool/{name}/invoke", "", accessCaller, a.asToolbox(invoke)},
		)
	}
	return list
}

// busy counts the calls of each sender, together with what it asks over MCP.
func (a *api) busy() *mcpserver.ConcurrencyLimiter {
	if a.mcp == nil {
		return mcpserver.NewConcurrencyLimiter(0)
	}
	return a.mcp.Limiter()
}

// limitConcurrency gives an endpoint that each sender asks only so often at once.
func limitConcurrency(busy *mcpserver.ConcurrencyLimiter, serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		leave, err := busy.Acquire(sender(r))
		if err != nil {
			return err
		}
		defer leave()
		return serve(mcpserver.WithWriteTimeout(w, 0), r)
	}
}

// toolboxScope gives what the sender of a request reaches.
func (a *api) toolboxScope(r *http.Request) (toolboxScope, error) {
	by, role, err := mcpserver.ResolveCaller(a.org(), sender(r), r.PathValue("role"))
	if err != nil {
		return toolboxScope{}, err
	}
	return toolboxScope{api: a, by: by, role: role, snapshot: a.snapshot()}, nil
}

// toolboxScope is what one caller reaches through the HTTP API of Toolbox. Tools that
// take secure arguments are not there: it has no way to send any.
type toolboxScope struct {
	api      *api
	by       identity.Principal // a Caller
	role     org.Role
	snapshot *toolgroups.Snapshot
}

// offered yields the tools that are there in some workflow state.
func (b toolboxScope) offered(yield func(tool.Definition) bool) {
	for _, d := range b.api.rt.Gate().Subject(b.by).Listable() {
		if !isSecure(d) && !yield(d) {
			return
		}
	}
}

// offers finds a tool that is there.
func (b toolboxScope) offers(name string) (tool.Definition, bool) {
	for d := range b.offered {
		if d.Name == name {
			return d, true
		}
	}
	return tool.Definition{}, false
}

func isSecure(d tool.Definition) bool { return d.Auth != nil && d.Auth.SecureArgs }

// unknown is the one answer about a tool that is not there, whether it is
// another's or nobody's.
func unknown(name string) error {
	return errcode.New(errcode.UnknownTool, "invalid tool name: tool with name %q does not exist", name)
}

// invoke takes a call through the gate. Whatever the tool makes of it is
// answered 200.
func (a *api) invoke(w http.ResponseWriter, r *http.Request) error {
	b, err := a.toolboxScope(r)
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	args, err := argumentsOf(r)
	if err != nil {
		return b.bodyError(name, err)
	}
	result, err := b.call(r, name, args)
	if err != nil {
		return err
	}
	body := append([]byte(`{"result":`), gjson.AppendJSONString(nil, string(result))...)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, "}\n"...)) // a peer that has gone is nobody's error
	return nil
}

// bodyError gives the error of a body that cannot be read: as with Toolbox, that
// there is no such tool comes first.
func (b toolboxScope) bodyError(name string, err error) error {
	if _, ok := b.offers(name); !ok && errcode.Of(err) == errcode.InvalidArguments {
		return unknown(name)
	}
	return err
}

// call gives the text of a call's result.
func (b toolboxScope) call(r *http.Request, name string, args json.RawMessage) ([]byte, error) {
	var known tool.Definition
	if h, ok := b.snapshot.Lookup(name); ok {
		known = h.Definition
	}
	if isSecure(known) {
		return nil, unknown(name)
	}
	ctx := r.Context()
	if known.Auth != nil {
		ctx = tool.WithCredentials(ctx, tool.Credentials{Tokens: mcpserver.Tokens(r.Header, known.Auth)})
	}
	admitted, err := b.api.rt.Invoke(ctx, b.by, name, args)
	if err != nil {
		return nil, err
	}
	if err := b.refusal(admitted, name); err != nil {
		return nil, err
	}
	return resultText(&admitted.Result, known.Declared != nil), nil
}

// refusal gives the error of a call that is not answered with a result: there
// is no such tool, or nobody vouches for the caller. A tool that is offered in
// another workflow state says so in its result.
func (b toolboxScope) refusal(a *gate.Admission, name string) error {
	if !a.Decision.Allowed() {
		if _, ok := b.offers(name); !ok || a.Decision.Rule() != toolgroups.WrongState {
			return unknown(name)
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

// argumentsOf reads the body of a call: one JSON object, or null for an empty
// one.
func argumentsOf(r *http.Request) (json.RawMessage, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errcode.New(unsupportedMediaType, "the content type has to be application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxArguments))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		_, _ = io.CopyN(io.Discard, r.Body, maxRequest) // who is still sending reads no answer
		return nil, errcode.New(BodyTooLarge, "request body is over the limit of %d bytes", maxArguments)
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

// resultText gives a result as the API has it: JSON. A failure is {"error",
// "code"}.
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

// failureText says in a sentence why a call failed.
func failureText(r *tool.Result) string {
	if message := gjson.GetBytes(r.Structured, "message"); message.Type == gjson.String {
		return message.Str
	}
	if r.Text != "" {
		return r.Text
	}
	return string(r.Structured)
}
