package mcpserver

import (
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"
)

// The methods of simple requests.
const (
	methodListTools = "tools/list"
	methodCallTool  = "tools/call"
	methodCancelled = "notifications/cancelled"
)

// methods lists the methods of all supported requests, whether they are answered
// here or by the SDK. notifications lists the notifications that are processed.
var (
	methods = []string{
		methodListTools, methodCallTool, "initialize", "ping", "server/discover", "subscriptions/listen",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
	}
	notifications = []string{methodCancelled, "notifications/initialized", "notifications/progress", "notifications/roots/list_changed"}
)

// request is a message received over HTTP, as far as this package parses it.
// The body has passed strictjson.CheckKeys, so the SDK parses it to the same
// values.
type request struct {
	body     []byte
	batch    bool
	method   string
	id       string // as written in the body; "" if absent or null
	badID    bool   // the id is neither a string nor a number
	jsonrpc2 bool   // it has the form of a JSON-RPC 2.0 request or notification

	// simple: the body is one tools/list, tools/call or cancellation, and the
	// fields below hold all of it. The SDK answers other requests.
	simple bool

	name     string // of the tool
	args     string // JSON; "" if absent
	token    string // the progress token, JSON; "" if absent
	version  string // the protocol version in _meta; "" if absent
	cancelID string // the id of the request to cancel

	secure       string // secure arguments, JSON; "" if absent
	hasSecureExt bool   // the client declares secureExtension
	sessionless  bool   // its version has sessions, but it is not part of one
}

// readRequest parses a body that has passed strictjson.CheckKeys.
func readRequest(body []byte) *request {
	q := &request{body: body, simple: true}
	doc := gjson.ParseBytes(body)
	q.batch = doc.IsArray()
	if !doc.IsObject() {
		q.simple = false
		return q
	}
	var params, tag, method gjson.Result
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "jsonrpc":
			tag = value
		case "id":
			q.id = idOf(value)
			q.badID = q.id == "" && value.Type != gjson.Null
			q.simple = q.id != "" && q.simple
		case "method":
			method = value
		case "params":
			params = value
		default:
			q.simple = false
		}
		return true
	})
	q.method, q.jsonrpc2 = method.Str, tag.Str == "2.0" && method.Type == gjson.String
	q.simple = q.simple && q.jsonrpc2 && (!params.Exists() || params.IsObject())
	q.readParams(params)
	return q
}

// idOf returns an id as written, or "" if v is neither a string nor a number.
func idOf(v gjson.Result) string {
	if v.Type == gjson.String || v.Type == gjson.Number {
		return v.Raw
	}
	return ""
}

// isUnknownMethod reports whether a request has a method that is not supported.
func (q *request) isUnknownMethod() bool {
	return q.jsonrpc2 && q.id != "" && !slices.Contains(methods, q.method)
}

// isNotification reports whether a message needs no processing and no answer:
// an unknown notification, or a request without an id.
func (q *request) isNotification() bool {
	return q.jsonrpc2 && q.id == "" && !q.badID && !slices.Contains(notifications, q.method)
}

// readParams reads the parameters of simple requests. Any other parameter makes
// the request not simple.
func (q *request) readParams(params gjson.Result) {
	switch q.method {
	case methodListTools:
		q.simple = q.simple && q.id != ""
	case methodCallTool:
		q.simple = q.simple && q.id != ""
	case methodCancelled:
		q.simple = q.simple && q.id == ""
	default:
		q.simple = false
		return
	}
	named := q.method != methodCallTool
	params.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "_meta":
			q.readMeta(value)
		case key.Str == "name" && q.method == methodCallTool:
			q.name, named = value.Str, value.Type == gjson.String
		case key.Str == "arguments" && q.method == methodCallTool:
			q.args = value.Raw
		case key.Str == "secureArguments" && q.method == methodCallTool:
			q.secure = value.Raw
		case key.Str == "requestId" && q.method == methodCancelled:
			q.cancelID = idOf(value)
		case key.Str == "reason" && q.method == methodCancelled:
		default:
			q.simple = false
		}
		return true
	})
	q.simple = q.simple && named && (q.method != methodCancelled || q.cancelID != "")
}

// readMeta reads _meta. Keys that do not change the answer are ignored.
func (q *request) readMeta(meta gjson.Result) {
	if !meta.IsObject() {
		q.simple = false
		return
	}
	capabilities := false
	meta.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "progressToken":
			q.token = value.Raw
			q.simple = q.simple && idOf(value) != ""
		case sdk.MetaKeyProtocolVersion:
			q.version = value.Str
			q.simple = q.simple && value.Type == gjson.String
		case sdk.MetaKeyClientCapabilities:
			capabilities = true
			q.simple = q.simple && value.IsObject()
			q.hasSecureExt = value.Get("extensions." + gjson.Escape(secureExtension)).IsObject()
		case sdk.MetaKeyClientInfo:
			q.simple = q.simple && isClientInfo(value)
		}
		return true
	})
	q.simple = q.simple && (q.version < statelessVersion || capabilities)
}

// isClientInfo reports whether v is a well-formed clientInfo without further
// fields.
func isClientInfo(v gjson.Result) bool {
	known := v.IsObject()
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "name", "version", "title":
			known = known && value.Type == gjson.String
		default:
			known = false
		}
		return known
	})
	return known
}
