//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpserver

import (
	"cmp"
	"encoding/json"
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

// Further methods that this package treats on their own.
const (
	methodInitialize = "initialize"
	methodPing       = "ping"
	methodGetPrompt  = "prompts/get"

	methodUnsubscribe = "resources/unsubscribe"
)

// methods lists the methods of all supported requests, whether they are answered
// here or by the SDK. notifications lists the notifications that are processed.
var (
	methods = []string{
		methodListTools, methodCallTool, methodInitialize, methodPing, "server/discover", "subscriptions/listen",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", methodUnsubscribe,
		"prompts/list", methodGetPrompt, "completion/complete", "logging/setLevel",
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
	response bool   // it has the form of a JSON-RPC 2.0 response

	// simple: the body is one tools/list, tools/call or cancellation, and the
	// fields below hold all that matters of it. The SDK answers other requests.
	simple  bool
	invalid string // why the parameters of a simple request are rejected; "" if they are not

	name     string // of the tool
	args     string // JSON; "" if absent
	token    string // the progress token, JSON; "" if absent
	version  string // the protocol version in _meta; "" if absent
	wantsLog bool   // _meta has a log level
	cancelID string // the id of the request to cancel

	rounds roundParams // answers to questions of the call

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
		case "result", "error":
			q.response = true
		default:
			q.simple = false
		}
		return true
	})
	q.response = q.response && !method.Exists()
	q.method, q.jsonrpc2 = method.Str, tag.Str == "2.0" && method.Type == gjson.String
	q.simple = q.simple && q.jsonrpc2
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

// listsTools reports whether a request, or a message of a batch, asks for the list of tools.
func (q *request) listsTools() bool {
	return q.method == methodListTools || q.batch && q.countLists() > 0
}

// countLists returns how many messages of a batch ask for the list of tools.
func (q *request) countLists() int {
	return q.countMessages(func(m gjson.Result) bool { return m.Get("method").Str == methodListTools })
}

// countRequests returns how many messages of a batch are requests.
func (q *request) countRequests() int {
	return q.countMessages(func(m gjson.Result) bool { return m.Get("method").Exists() && m.Get("id").Exists() })
}

// countMessages returns how many messages of a batch are of a kind.
func (q *request) countMessages(of func(gjson.Result) bool) (n int) {
	gjson.ParseBytes(q.body).ForEach(func(_, message gjson.Result) bool {
		if of(message) {
			n++
		}
		return true
	})
	return n
}

// isNotification reports whether a message needs no processing and no answer:
// an unknown notification, or a request without an id.
func (q *request) isNotification() bool {
	return q.jsonrpc2 && q.id == "" && !q.badID && !slices.Contains(notifications, q.method)
}

// readParams reads the parameters of simple requests. Parameters that the protocol
// does not define for the method are ignored.
func (q *request) readParams(params gjson.Result) {
	switch q.method {
	case methodListTools, methodCallTool:
		q.simple = q.simple && q.id != ""
	case methodCancelled:
		q.simple = q.simple && q.id == ""
	default:
		q.simple = false
		return
	}
	if params.Exists() && !params.IsObject() {
		q.reject("params must be an object")
		return
	}
	named := false
	params.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "_meta":
			q.readMeta(value)
		case q.method == methodListTools:
			q.readListParam(key.Str, value)
		case q.method == methodCallTool:
			named = named || key.Str == "name"
			q.readCallParam(key.Str, value)
		case key.Str == "requestId":
			q.cancelID = idOf(value)
		}
		return true
	})
	if q.method == methodCallTool && !named {
		q.reject("params has no name")
	}
	q.simple = q.simple && (q.method != methodCancelled || q.cancelID != "")
}

// reject sets why the parameters are rejected. The first reason stays.
func (q *request) reject(reason string) { q.invalid = cmp.Or(q.invalid, reason) }

// readListParam reads a parameter of tools/list.
func (q *request) readListParam(name string, value gjson.Result) {
	if name == "cursor" && (value.Type != gjson.String || value.Str != "") {
		q.reject("invalid cursor: the list has a single page")
	}
}

// readCallParam reads a parameter of tools/call. Answers to questions are used in versions without
// sessions only.
func (q *request) readCallParam(name string, value gjson.Result) {
	switch name {
	case "name":
		if q.name = value.Str; value.Type != gjson.String {
			q.reject("name must be a string")
		}
	case "arguments":
		q.args = value.Raw
	case "secureArguments":
		q.secure = value.Raw
	case "inputResponses":
		if !value.IsObject() {
			q.reject("inputResponses must be an object")
		}
		q.rounds.responses = map[string]json.RawMessage{}
		value.ForEach(func(name, response gjson.Result) bool {
			if !response.IsObject() {
				q.reject("each of inputResponses must be an object")
			}
			q.rounds.responses[name.Str] = json.RawMessage(response.Raw)
			return true
		})
	case "requestState":
		if value.Type != gjson.String {
			q.reject("requestState must be a string")
		}
		q.rounds.state = value.Str
	}
}

// readMeta reads _meta. Keys that do not change the answer are ignored.
func (q *request) readMeta(meta gjson.Result) {
	if !meta.IsObject() {
		q.reject("_meta must be an object")
		return
	}
	capabilities := false
	meta.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "progressToken":
			if q.token = idOf(value); q.token == "" {
				q.reject("progressToken must be a string or a number")
			}
		case sdk.MetaKeyLogLevel:
			q.wantsLog, q.simple = true, false
		case sdk.MetaKeyProtocolVersion:
			q.version = value.Str
			q.simple = q.simple && value.Type == gjson.String
		case sdk.MetaKeyClientCapabilities:
			capabilities = true
			q.simple = q.simple && value.IsObject()
			q.rounds.abilities = readAbilities(value)
			q.hasSecureExt = value.Get("extensions." + gjson.Escape(secureExtension)).IsObject()
		case sdk.MetaKeyClientInfo:
			q.simple = q.simple && isClientInfo(value)
		}
		return true
	})
	q.simple = q.simple && (q.version < statelessVersion || capabilities)
}

// readAbilities reads the capabilities of a client.
func readAbilities(capabilities gjson.Result) abilities {
	a := abilities{sampling: capabilities.Get("sampling").IsObject(), roots: capabilities.Get("roots").IsObject()}
	if e := capabilities.Get("elicitation"); e.IsObject() {
		a.url = e.Get("url").IsObject()
		a.form = e.Get("form").IsObject() || !a.url
	}
	return a
}

// isClientInfo reports whether the texts of clientInfo are texts.
func isClientInfo(v gjson.Result) bool {
	valid := v.IsObject()
	v.ForEach(func(key, value gjson.Result) bool {
		if slices.Contains([]string{"name", "version", "title"}, key.Str) {
			valid = valid && value.Type == gjson.String
		}
		return valid
	})
	return valid
}
