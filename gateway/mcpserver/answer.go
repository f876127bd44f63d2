package mcpserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Codes of the protocol that the SDK does not name.
const (
	codeNoSession = -32001 // no session of this id; the client begins anew
	codeBusy      = -32000 // too many of something at once
)

// outcome is what a call came to. The zero outcome is that there is no such
// tool.
type outcome struct {
	result *tool.Result // a success, or a failure for the model to read
	rows   bool         // the tool is one whose result may be rows
	fault  error        // of the machinery: nobody knows more than its code
}

// unknownTool is the one answer to a call of what is not the caller's, whether
// it is somebody's or nobody's. Of a name that is too long to be a tool's the
// beginning is repeated.
func unknownTool(name string) *jsonrpc.Error {
	if len(name) > tool.MaxName {
		name = name[:tool.MaxName] + "…"
	}
	return protocolError(jsonrpc.CodeInvalidParams, "Unknown tool: "+name)
}

func protocolError(code int64, message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: message}
}

// refused gives the protocol's error for an outcome that is no result, nil for
// one that is.
func (o outcome) refused(name string) *jsonrpc.Error {
	switch {
	case o.fault != nil:
		return protocolError(jsonrpc.CodeInternalError, errcode.Message(o.fault))
	case o.result == nil:
		return unknownTool(name)
	}
	return nil
}

// text is what a result says to those who read text alone.
func text(r *tool.Result) string {
	if r.Text == "" && len(r.Structured) > 0 {
		return string(r.Structured)
	}
	return r.Text
}

// object gives the structured part of a result if it is an object: before
// 2026-07-28 the protocol allows nothing else.
func object(r *tool.Result) json.RawMessage {
	structured := bytes.TrimLeft(r.Structured, " \t\r\n")
	if len(structured) == 0 || structured[0] != '{' {
		return nil
	}
	return structured
}

// asResult gives a result to the SDK.
func asResult(o outcome) *sdk.CallToolResult {
	result := &sdk.CallToolResult{Content: o.contents(), IsError: o.result.IsError}
	if structured := object(o.result); structured != nil {
		result.StructuredContent = structured
	}
	return result
}

// beginResult begins the answer to a request.
func beginResult(id string, size int) []byte {
	b := make([]byte, 0, size+len(id)+256)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	return append(b, id...)
}

// listAnswer answers tools/list from ready bytes, which are not copied.
func listAnswer(w http.ResponseWriter, id string, result []byte) {
	begin := append(beginResult(id, 0), `,"result":`...)
	writeHeader(w, http.StatusOK, len(begin)+len(result)+1)
	_, _ = w.Write(begin) // here and below: a peer that has gone is nobody's error
	_, _ = w.Write(result)
	_, _ = io.WriteString(w, "}")
}

// callAnswer answers tools/call with a result; about, when there is one, is the
// _meta and resultType of versions without sessions.
func callAnswer(id string, o outcome, about []byte) []byte {
	r := o.result
	b := append(beginResult(id, 2*len(r.Text)+3*len(r.Structured)+len(about)), `,"result":{`...)
	b = append(b, about...)
	b = append(b, `"content":[`...)
	for i, part := range o.parts() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"type":"text","text":`...)
		b = append(gjson.AppendJSONString(b, part), '}')
	}
	b = append(b, ']')
	if structured := object(r); structured != nil {
		b = append(append(b, `,"structuredContent":`...), structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, `}}`...)
}

// errorAnswer answers a request with an error; id is null when it is not known.
func errorAnswer(id string, e *jsonrpc.Error) []byte {
	if id == "" {
		id = "null"
	}
	b := append(beginResult(id, len(e.Message)), `,"error":{"code":`...)
	b = append(strconv.AppendInt(b, e.Code, 10), `,"message":`...)
	b = gjson.AppendJSONString(b, e.Message)
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	return append(b, `}}`...)
}

// write answers a request with one document.
func write(w http.ResponseWriter, status int, body []byte) {
	writeHeader(w, status, len(body))
	_, _ = w.Write(body) // a peer that has gone is nobody's error
}

// writeHeader begins an answer of so many bytes.
func writeHeader(w http.ResponseWriter, status, size int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(size))
	w.WriteHeader(status)
}

// refuse answers with an error of the protocol.
func refuse(w http.ResponseWriter, status int, id string, code int64, message string) {
	write(w, status, errorAnswer(id, protocolError(code, message)))
}
