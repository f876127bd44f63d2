package mcpserver

import (
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"
)

// The methods that are answered here.
const (
	listTools = "tools/list"
	callTool  = "tools/call"
	cancelled = "notifications/cancelled"
)

// methods are those of all requests that are answered, here or by the SDK, and
// notes those of the notifications that the SDK takes.
var (
	methods = []string{
		listTools, callTool, "initialize", "ping", "server/discover", "subscriptions/listen",
		"resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe",
		"prompts/list", "prompts/get", "completion/complete", "logging/setLevel",
	}
	notes = []string{cancelled, "notifications/initialized", "notifications/progress", "notifications/roots/list_changed"}
)

// request is a message that came by HTTP, as far as it is understood here. The
// body passed strictjson.Check before, so that every later reader sees the same
// in it.
type request struct {
	body   []byte
	batch  bool
	method string
	id     string // as it is written in the body; "" when there is none, which null is too
	badID  bool   // the id is something that cannot be one
	tagged bool   // it is a request or a notification of JSON-RPC 2.0

	// simple: it is one call of tools/list or tools/call, or a cancellation, of
	// which nothing is left that is not below. What is not plain is the SDK's.
	simple bool

	name    string // of the tool
	args    string // JSON, "" when left out
	token   string // of progress, JSON, "" for none
	version string // of the protocol, as _meta says it; "" when it does not
	target  string // the id of the request that is to be cancelled

	secure       string // secure arguments, JSON, "" when left out
	hasSecureExt bool   // the client states secureExtension
	noSession    bool   // its version has sessions, and it is in none
}

// readRequest reads a body that is strict JSON.
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
	q.method, q.tagged = method.Str, tag.Str == "2.0" && method.Type == gjson.String
	q.simple = q.simple && q.tagged && (!params.Exists() || params.IsObject())
	q.readParams(params)
	return q
}

// idOf gives an id as it is written; "" is that it is none: neither a text nor
// a number.
func idOf(v gjson.Result) string {
	if v.Type == gjson.String || v.Type == gjson.Number {
		return v.Raw
	}
	return ""
}

// unknown says whether a request is of a method that nobody answers.
func (q *request) unknown() bool {
	return q.tagged && q.id != "" && !slices.Contains(methods, q.method)
}

// isNotification says whether nothing is done about a message, and nobody waits for an
// answer: a notification that is not known, and a request that has no id.
func (q *request) isNotification() bool {
	return q.tagged && q.id == "" && !q.badID && !slices.Contains(notes, q.method)
}

func (q *request) readParams(params gjson.Result) {
	switch q.method {
	case listTools:
		q.simple = q.simple && q.id != ""
	case callTool:
		q.simple = q.simple && q.id != ""
	case cancelled:
		q.simple = q.simple && q.id == ""
	default:
		q.simple = false
		return
	}
	named := q.method != callTool
	params.ForEach(func(key, value gjson.Result) bool {
		switch {
		case key.Str == "_meta":
			q.readMeta(value)
		case key.Str == "name" && q.method == callTool:
			q.name, named = value.Str, value.Type == gjson.String
		case key.Str == "arguments" && q.method == callTool:
			q.args = value.Raw
		case key.Str == "secureArguments" && q.method == callTool:
			q.secure = value.Raw
		case key.Str == "requestId" && q.method == cancelled:
			q.target = idOf(value)
		case key.Str == "reason" && q.method == cancelled:
		default:
			q.simple = false
		}
		return true
	})
	q.simple = q.simple && named && (q.method != cancelled || q.target != "")
}

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
			q.simple = q.simple && isInfo(value)
		}
		return true
	})
	q.simple = q.simple && (q.version < stateless || capabilities)
}

// isInfo says whether a value surely names a client.
func isInfo(v gjson.Result) bool {
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
