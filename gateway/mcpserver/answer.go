package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// JSON-RPC error codes that the SDK does not define.
const (
	codeNoSession = -32001 // no session has this id; the client must initialize again
	codeBusy      = -32000 // too many concurrent requests or sessions
)

// outcome is the result of a tool call. The zero outcome means that the tool
// does not exist for the caller.
type outcome struct {
	result   *tool.Result // a success, or a failure for the model to read
	rows     bool         // the tool's result may be an array of rows
	typed    bool         // the tool has an output schema
	err      error        // an internal error; the client sees only its code
	tokenErr error        // the token that the tool requires is missing or not valid

	input    *inputResult   // the call ends with questions, in versions without sessions
	rejected *jsonrpc.Error // the answers, or the capabilities, of the client are not those that the call needs
}

// unknownTool returns the error for a tool the caller may not call. It is the
// same whether or not the tool exists. A name that is too long for a tool is
// truncated.
func unknownTool(name string) *jsonrpc.Error {
	return newRPCError(jsonrpc.CodeInvalidParams, "Unknown tool: "+textutil.Truncate(name, tool.MaxName))
}

// newRPCError returns a JSON-RPC error without data.
func newRPCError(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// rpcError returns the JSON-RPC error for an outcome without a result and without questions, or nil. It logs the
// cause of an internal error.
func (s *Server) rpcError(o outcome, name string, sender identity.Principal) *jsonrpc.Error {
	switch {
	case o.err != nil:
		if !errors.Is(o.err, errPanicked) && !errors.Is(o.err, context.Canceled) { // logged, or not read
			s.failures.LogFailure(slog.LevelError, "MCP call failed", sender.String(), o.err, "tool", textutil.Truncate(name, tool.MaxName))
		}
		return newRPCError(jsonrpc.CodeInternalError, errcode.Message(o.err))
	case o.tokenErr != nil: // the code and the text of MCP Toolbox
		return newRPCError(jsonrpc.CodeInvalidRequest, "unauthorized Tool call: Please make sure you specify correct auth headers: "+errcode.Message(o.tokenErr))
	case o.rejected != nil:
		return o.rejected
	case o.input != nil:
		return nil
	case o.result == nil:
		return unknownTool(name)
	}
	return nil
}

// structured returns the structured part of a result if it is a JSON object, else nil.
// Protocol versions before 2026-07-28 allow only objects. Clients also compare the
// structured content of a failure with the output schema. So a failure of a tool with an
// output schema has only its text.
func (o outcome) structured() json.RawMessage {
	structured := bytes.TrimLeft(o.result.Structured, " \t\r\n")
	if len(structured) == 0 || structured[0] != '{' || o.typed && o.result.IsError {
		return nil
	}
	return structured
}

// sdkResult converts an outcome that has a result to the SDK's type.
func sdkResult(o outcome) *sdk.CallToolResult {
	result := &sdk.CallToolResult{Content: sdkContents(o.parts()), IsError: o.result.IsError}
	if structured := o.structured(); structured != nil {
		result.StructuredContent = structured
	}
	return result
}

// responsePrefix returns the start of a JSON-RPC response to the request with
// this id. size is the expected length of the rest, for the buffer's capacity.
func responsePrefix(id string, size int) []byte {
	b := make([]byte, 0, size+len(id)+256)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}

// writeToolList writes the response to tools/list. result is encoded JSON; it
// is written without copying.
func writeToolList(w http.ResponseWriter, id string, result []byte) {
	prefix := append(responsePrefix(id, 0), `,"result":`...)
	writeJSONHeader(w, http.StatusOK, len(prefix)+len(result)+1)
	_, _ = w.Write(prefix) // write errors are ignored here and below: the client has disconnected
	_, _ = w.Write(result)
	_, _ = io.WriteString(w, "}")
}

// encodeCallResult returns the response to tools/call for an outcome that has a
// result. resultMeta holds the _meta and resultType members of versions without
// sessions; it is nil for other versions.
func encodeCallResult(id string, o outcome, resultMeta []byte) []byte {
	r := o.result
	b := append(responsePrefix(id, 2*r.TextBytes()+len(r.Structured)+base64.StdEncoding.EncodedLen(r.DataBytes())+len(resultMeta)), `,"result":{`...)
	b = append(b, resultMeta...)
	b = append(b, `"content":[`...)
	for i, part := range o.parts() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendContent(b, part)
	}
	b = append(b, ']')
	if structured := o.structured(); structured != nil {
		b = append(append(b, `,"structuredContent":`...), structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, `}}`...)
}

// encodeError returns an error response. An empty id is encoded as null.
func encodeError(id string, e *jsonrpc.Error) []byte {
	if id == "" {
		id = "null"
	}
	b := append(responsePrefix(id, len(e.Message)), `,"error":{"code":`...)
	b = append(strconv.AppendInt(b, e.Code, 10), `,"message":`...)
	b = gjson.AppendJSONString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	return append(b, `}}`...)
}

// writeJSON writes a response of one JSON document.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeJSONHeader(w, status, len(body))
	_, _ = w.Write(body) // an error means that the client has disconnected
}

// writeJSONHeader writes the status and headers of a JSON response with a body
// of size bytes.
func writeJSONHeader(w http.ResponseWriter, status, length int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

// writeError writes a JSON-RPC error response.
func writeError(w http.ResponseWriter, status int, id string, code int64, message string) {
	writeJSON(w, status, encodeError(id, newRPCError(code, message)))
}
